"""The lowest thresholds of which it can be said how many wrong answers they let through at most.

Lookups whose truth is known are of three kinds, by the threshold that decides on them: `low` is enough for
what agrees part by part and convinces the verifier; what does not agree is served for its score from `high`
on; what neither serves is served in other words, if all evidence comes to `likely`. For each kind, the share
of wrong ones among all that score at least t is tested for falling t by exact binomial tests, from several
starts, each with its share of the error probability, and each only until it fails for the first time:
fixed-sequence testing with several starts, as in "Learn then Test" (Angelopoulos et al., 2021). So the
probability that any threshold that passes is worse than the target is at most 1 - confidence; and since no
lookup is of two kinds under the thresholds in force, what they serve together is no worse than the worst.

Starts are the threshold that is in force, the 95th percentile of the wrong ones (of a fifth of the pairs,
which then take no part in the tests), and the scores of which enough pairs lie above for 0, 3, or 10 wrong
ones to be few: none of them is chosen by the labels that are tested.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .bounds import lower, needed, upper

TARGET = 0.02
CONFIDENCE = 0.95
PERCENTILE = 95
# Of how many wrong pairs the percentile is taken at least.
_FEW = 20
# One in so many pairs only says where to start.
_STARTERS = 5
_WRONG_AT_START = (0, 3, 10)
# From one tested threshold to the next so many more pairs lie above: a single wrong one does not end it.
_STEP = 1.05
# Thresholds have three places.
_PLACES = 1_000

Kind = Literal["high", "low", "likely"]
KINDS: tuple[Kind, ...] = ("high", "low", "likely")

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Pair:
    """A lookup whose truth is known, and the threshold that decides on it, which `score` is compared with:
    would what it serves be right? `id` is stable and says whether it starts or tests."""

    id: str
    kind: Kind
    score: float
    right: bool


@dataclass(frozen=True)
class Goal:
    target: float = TARGET
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        if not (0 < self.target < 1 and 0.5 <= self.confidence < 1):
            raise ValueError("target must lie between 0 and 1, confidence between 0.5 and 1")

    @property
    def level(self) -> float:
        """The error probability of one start of one kind."""
        return (1 - self.confidence) / len(KINDS) / (len(_WRONG_AT_START) + 2)


@dataclass(frozen=True)
class Fitted:
    """One threshold. `certified` is the lowest that passed, None if none did; `start` the 95th percentile of
    the wrong ones, None where they are too few. `bound` is the upper one on the share of wrong ones at the
    certified threshold, or else at the present one; `refuted`: the present one surely lets more through than
    the target, and `retreat` is the lowest above it (and above `start`) that does not surely."""

    present: float
    certified: float | None
    start: float | None
    retreat: float
    bound: float
    refuted: bool
    n: int
    wrong: int
    hits: int
    wrong_hits: int
    curve: tuple[tuple[float, int, int, float], ...] = field(default=())
    """Threshold, pairs at or above it, wrong ones among them, upper bound."""

    @property
    def value(self) -> float:
        """What to use: the certified threshold, or else the present one, unless that is refuted."""
        if self.certified is not None:
            return self.certified
        return self.retreat if self.refuted else self.present

    def to_json(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "present": self.present,
            "certified": self.certified,
            "start": self.start,
            "bound": round(self.bound, 5),
            "refuted": self.refuted,
            "n": self.n,
            "wrong": self.wrong,
            "hits": self.hits,
            "wrong_hits": self.wrong_hits,
            "curve": [[t, n, wrong, round(bound, 5)] for t, n, wrong, bound in self.curve],
        }


@dataclass(frozen=True)
class Fit:
    """All thresholds, fitted to the same pairs. `digest` names the pairs."""

    goal: Goal
    kinds: Mapping[Kind, Fitted]
    pairs: int
    digest: str

    @property
    def thresholds(self) -> dict[Kind, float]:
        """In order: raising `high` to `low` serves fewer of the kind that it was fitted for."""
        values = {kind: fitted.value for kind, fitted in self.kinds.items()}
        return values | {"high": max(values["high"], values["low"])}

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.goal.target,
            "confidence": self.goal.confidence,
            "pairs": self.pairs,
            "digest": self.digest,
            **{kind: fitted.to_json() for kind, fitted in self.kinds.items()},
        }


def fit(
    pairs: Sequence[Pair],
    present: Mapping[Kind, float],
    goal: Goal = Goal(),
    known_from: Mapping[Kind, float] | None = None,
) -> Fit:
    """The thresholds for these pairs, given the ones in force. Pairs must be one lookup each, drawn as
    lookups are. `known_from`: below that score not all pairs are known, so that nothing is said of lower
    thresholds."""
    since = known_from or {}
    return Fit(
        goal=goal,
        kinds={
            kind: _fitted(
                [pair for pair in pairs if pair.kind == kind], present[kind], goal, since.get(kind, 0.0)
            )
            for kind in KINDS
        },
        pairs=len(pairs),
        digest=digest(pairs),
    )


def digest(pairs: Sequence[Pair]) -> str:
    """The same for the same pairs, in whatever order."""
    lines = sorted(f"{pair.id} {pair.kind} {pair.score:.6f} {pair.right}" for pair in pairs)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def _fitted(pairs: Sequence[Pair], present: float, goal: Goal, known_from: float) -> Fitted:
    starters = np.array([_starts(pair) for pair in pairs], dtype=bool)
    points = np.array([pair.score for pair in pairs], dtype=np.float64)
    wrong = np.array([not pair.right for pair in pairs], dtype=bool)
    start = _percentile(points[starters], wrong[starters])
    tested = _Counted.of(points[~starters], wrong[~starters])
    certified = _lowest(tested, [present, *([] if start is None else [start])], goal, known_from)
    hits, wrong_hits = tested.above(present if certified is None else certified)
    tail = (1 - goal.confidence) / 2
    return Fitted(
        present=present,
        certified=certified,
        start=start,
        retreat=_retreat(tested, present if start is None else max(start, present), goal),
        bound=float(upper(wrong_hits, hits, tail)),
        refuted=_refuted(tested, present, goal),
        n=len(pairs),
        wrong=int(wrong.sum()),
        hits=hits,
        wrong_hits=wrong_hits,
        curve=_curve(tested, tail),
    )


def _starts(pair: Pair) -> bool:
    return hashlib.sha256(pair.id.encode()).digest()[0] % _STARTERS == 0


def _percentile(scores: Floats, wrong: Bools) -> float | None:
    """The 95th of the wrong ones; None where they are too few."""
    if wrong.sum() < _FEW:
        return None
    value = float(np.percentile(scores[wrong], PERCENTILE))
    return min(1.0, math.ceil(round(value * _PLACES, 6)) / _PLACES)


@dataclass(frozen=True)
class _Counted:
    """Pairs by falling score, and how many of the first ones are wrong."""

    scores: Floats
    wrong: npt.NDArray[np.int64]

    @classmethod
    def of(cls, scores: Floats, wrong: Bools) -> "_Counted":
        order = np.argsort(-scores, kind="stable")
        return cls(scores[order], np.concatenate([[0], np.cumsum(wrong[order])]).astype(np.int64))

    def above(self, threshold: float) -> tuple[int, int]:
        """How many score at least so much, and how many of these are wrong."""
        n = int(np.searchsorted(-self.scores, -threshold, side="right"))
        return n, int(self.wrong[n])

    def holding(self, n: int) -> float:
        """The highest threshold at or above which at least `n` lie, 0 where there are not so many."""
        if not 0 < n <= len(self.scores):
            return 0.0
        return max(0.0, math.floor(round(float(self.scores[n - 1]) * _PLACES, 6)) / _PLACES)


def _grid(tested: _Counted) -> list[float]:
    """Thresholds to test, falling: chosen by scores alone."""
    grid: list[float] = []
    n = 1
    while n <= len(tested.scores):
        threshold = tested.holding(n)
        if not grid or threshold < grid[-1]:
            grid.append(threshold)
        n = max(n + 1, math.ceil(tested.above(threshold)[0] * _STEP))
    return grid


def _lowest(tested: _Counted, starts: Sequence[float], goal: Goal, known_from: float) -> float | None:
    """The lowest threshold, not below `known_from`, that any of the sequences reaches."""
    grid = [threshold for threshold in _grid(tested) if threshold >= known_from]
    sizes = [needed(wrong, goal.target, goal.level) for wrong in _WRONG_AT_START]
    first = [*starts, *(tested.holding(size) for size in sizes if size <= len(tested.scores))]
    reached = [_descend(tested, begin, grid, goal) for begin in first if begin >= known_from]
    return min((threshold for threshold in reached if threshold is not None), default=None)


def _descend(tested: _Counted, begin: float, grid: Sequence[float], goal: Goal) -> float | None:
    """From `begin` down until a test fails; None if the first one does."""
    passed = None
    for threshold in [begin, *(one for one in grid if one < begin)]:
        n, wrong = tested.above(threshold)
        if n == 0 or upper(wrong, n, goal.level) > goal.target:
            return passed
        passed = threshold
    return passed


def _refuted(tested: _Counted, threshold: float, goal: Goal) -> bool:
    n, wrong = tested.above(threshold)
    return bool(lower(wrong, n, (1 - goal.confidence) / 2) > goal.target)


def _retreat(tested: _Counted, begin: float, goal: Goal) -> float:
    """The lowest threshold from `begin` on that is not refuted, too; 1 where all are."""
    for threshold in [begin, *(one for one in reversed(_grid(tested)) if one > begin)]:
        if not _refuted(tested, threshold, goal):
            return threshold
    return 1.0


_CURVE = 40


def _curve(tested: _Counted, tail: float) -> tuple[tuple[float, int, int, float], ...]:
    grid = _grid(tested)
    shown = grid[:: max(1, math.ceil(len(grid) / _CURVE))]
    rows = [(threshold, *tested.above(threshold)) for threshold in shown]
    return tuple((t, n, wrong, float(upper(wrong, n, tail))) for t, n, wrong in rows)
