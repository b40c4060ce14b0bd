"""What an operator sees before changing a threshold: how right and wrong pairs are spread, what other
thresholds would come to, and which of the last decisions would have been others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from uuid import UUID

from django.conf import settings

from inference.cache import policy, shadow
from inference.cache.measured import Measured, NotAsked
from inference.cache.policy import Standing, Thresholds
from inference.calibration import pairs
from inference.calibration.bounds import interval, upper
from inference.calibration.fitting import KINDS
from inference.calibration.pairs import Histogram, Labelled
from inference.models import Decision, Entry, Outcome, Policy, Scope

from . import tuning
from .remembering import Memory

SERVED = (Outcome.HIT, Outcome.GRAY)
# Decisions that are tried on other thresholds, looked for among so many of the newest.
LAST, LOOKED_AT = 200, 20_000
# Labelled lookups that the figures come from, at most.
LABELLED = 2_000
HISTORY = 30
# What can be changed.
NAMES = ("high", "low", "near", "consent", "likely")


@dataclass(frozen=True)
class Figures:
    """What thresholds come to on lookups whose truth is known: of `n`, so many `hits`, so many of them
    `wrong`."""

    n: int
    hits: int
    wrong: int
    sure: float

    @property
    def hit_share(self) -> float | None:
        return self.hits / self.n if self.n else None

    @property
    def wrong_share(self) -> float | None:
        return self.wrong / self.hits if self.hits else None

    @property
    def bound(self) -> float | None:
        """Not more of the hits are wrong, as surely as calibration wants to be."""
        return float(upper(self.wrong, self.hits, 1 - self.sure)) if self.hits else None

    @property
    def wrong_per_thousand(self) -> tuple[float, float, float] | None:
        """Wrong hits in 1,000 lookups, with their 95% interval."""
        if not self.n:
            return None
        low, high = interval(self.wrong, self.n)
        return 1000 * self.wrong / self.n, 1000 * low, 1000 * high


@dataclass(frozen=True)
class Change:
    """A decision that would have been another. `would` is None where that hangs on a verifier that was not
    asked; `there`: the entry has not been deleted since."""

    decision: Decision
    measured: Measured
    would: str | None
    there: bool = False

    @property
    def serves_more(self) -> bool:
        return self.would in SERVED and self.decision.outcome not in SERVED


@dataclass(frozen=True)
class Picture:
    """Everything about the thresholds of one scope (None: all) and class ("": all), and about `limits`, which
    somebody considers."""

    scope: Scope | None
    content_class: str
    standing: Standing
    limits: Thresholds

    most_history = HISTORY

    @cached_property
    def labelled(self) -> Sequence[Labelled]:
        return _labelled(self.scope.pk if self.scope else None, self.content_class)

    @cached_property
    def now(self) -> Figures:
        return figures(self.labelled, self.standing.live)

    @cached_property
    def then(self) -> Figures:
        return figures(self.labelled, self.limits)

    @property
    def target(self) -> float:
        return float(settings.CALIBRATION_TARGET)

    @property
    def holds(self) -> bool:
        """Is it sure enough that no more than the target is wrong?"""
        return self.then.bound is not None and self.then.bound <= self.target

    @property
    def lowers(self) -> bool:
        return self.limits.lowers(self.standing.live)

    @property
    def differs(self) -> bool:
        return not self.limits.same_as(self.standing.live)

    @cached_property
    def spread(self) -> "Spread | None":
        """Of the labelled lookups, or else of those of the last fit; None without any."""
        if self.labelled:
            return Spread(pairs.histogram(self.labelled), self.limits, self.standing.live)
        stored = self.fitted and self.fitted.data.get("scores")
        return Spread(_histogram(stored), self.limits, self.standing.live) if stored else None

    @cached_property
    def fitted(self) -> "LastFit | None":
        row = tuning.last_fitted(self.scope, self.content_class)
        return LastFit(row, row.fit) if row and row.fit else None

    @cached_property
    def decisions(self) -> list[Decision]:
        return _last(self.scope, self.content_class)

    @cached_property
    def changes(self) -> list[Change]:
        found = changes(self.decisions, self.limits)
        there = _still_there([one.measured.entry for one in found])
        return [replace(one, there=one.measured.entry in there) for one in found]

    @property
    def more_hits(self) -> int:
        return sum(change.serves_more for change in self.changes)

    @property
    def fewer_hits(self) -> int:
        lost = [change for change in self.changes if change.would is not None]
        return sum(one.decision.outcome in SERVED and one.would not in SERVED for one in lost)

    @cached_property
    def history(self) -> list[Policy]:
        rows = Policy.objects.filter(scope=self.scope, content_class=self.content_class)
        return list(rows.order_by("-version")[: self.most_history])

    @cached_property
    def report(self) -> shadow.Report | None:
        row = self.standing.shadow
        if row is None:
            return None
        return _MEMORY.get(("report", row.pk), lambda: shadow.report(row, most=shadow.SHOWN))

    @cached_property
    def examples(self) -> list["Example"]:
        """The last lookups on which the policy on trial would have done something else."""
        rows = self.report.examples if self.report else []
        found = [(row, _entry_of(row)) for row in rows]
        there = _still_there([entry for _row, entry in found if entry])
        return [Example(row, entry if entry in there else None) for row, entry in found]

    @property
    def report_after(self) -> int:
        """On so many lookups the trial must have been tried to be worth reading."""
        return int(settings.SHADOW_LOOKUPS)

    @cached_property
    def tried(self) -> int:
        """On how many it was, counted until that many."""
        row = self.standing.shadow
        return shadow.tried_on(row, self.report_after) if row else 0


@dataclass(frozen=True)
class Example:
    """A decision on which two policies differ; `entry` is what the one on trial, or else the live one,
    serves: None where it has been deleted since."""

    decision: Decision
    entry: UUID | None


def _entry_of(row: Decision) -> UUID | None:
    served = (row.shadowed or {}).get("entry") or row.entry_id
    return UUID(str(served)) if served else None


def _still_there(entries: Sequence[UUID]) -> set[UUID]:
    return set(Entry.objects.filter(pk__in=entries).values_list("pk", flat=True))


def picture(scope: Scope | None, content_class: str, wanted: Mapping[str, float]) -> Picture:
    """`wanted` are thresholds by name in the place of those in force."""
    standing = policy.standing(scope, content_class)
    live = standing.live
    values = {name: getattr(live, name) for name in NAMES} | dict(wanted)
    return Picture(scope, content_class, standing, limits_of(values))


def limits_of(values: Mapping[str, float]) -> Thresholds:
    """Of all by name."""
    first = (values["high"], values["low"], values["near"], values["consent"])
    return Thresholds(*first, likely=values["likely"])


def figures(labelled: Sequence[Labelled], limits: Thresholds) -> Figures:
    """Where the verifier was not asked, it counts as consenting: that is the worse case."""
    hits = [one for one in labelled if (_would(one.measured, limits) or Outcome.GRAY) in SERVED]
    wrong = sum(not one.right for one in hits)
    return Figures(len(labelled), len(hits), wrong, float(settings.CALIBRATION_CONFIDENCE))


def changes(decisions: Sequence[Decision], limits: Thresholds) -> list[Change]:
    found = []
    for row in decisions:
        measured = Measured.from_json(row.measured or {})
        would = _would(measured, limits)
        if would is None or would != row.outcome:
            found.append(Change(row, measured, would))
    return found


def _would(measured: Measured, limits: Thresholds) -> str | None:
    try:
        return measured.outcome(limits)
    except NotAsked:
        return None


_MEMORY = Memory(seconds=20.0)  # a slider asks often


def _labelled(scope: int | None, content_class: str) -> Sequence[Labelled]:
    return _MEMORY.get(
        ("labelled", scope, content_class),
        lambda: pairs.observed(scope, content_class, most=LABELLED, newest=LABELLED),
    )


def forget() -> None:
    """Read it all anew."""
    _MEMORY.forget()


def _last(scope: Scope | None, content_class: str) -> list[Decision]:
    """The last decisions that thresholds had a part in."""
    newest = Decision.objects.order_by("-id").values_list("pk", flat=True).first() or 0
    rows = Decision.objects.filter(pk__gt=newest - LOOKED_AT, measured__isnull=False)
    if scope is not None:
        rows = rows.filter(generation__scope=scope)
    if content_class:
        rows = rows.filter(measured__content_class=content_class)
    large = ("question", "output_token_ids", "text", "model_question", "sources")
    rows = rows.select_related("generation").defer(*(f"generation__{name}" for name in large))
    return list(rows.order_by("-id")[:LAST])


# --- the last fit -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class LastFit:
    """What a version was fitted to, and what that says of each threshold."""

    row: Policy
    fit: Mapping[str, Any]

    @property
    def data(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.fit.get("data", {})
        return found

    @property
    def target(self) -> float:
        return float(self.fit.get("target", settings.CALIBRATION_TARGET))

    @property
    def sure(self) -> float:
        return float(self.fit.get("confidence", settings.CALIBRATION_CONFIDENCE))

    @property
    def classes(self) -> list[tuple[str, int]]:
        return sorted(self.data.get("by_class", {}).items(), key=lambda one: -one[1])

    @property
    def kinds(self) -> list["Kind"]:
        return [
            Kind(name, self.fit[name], self.target) for name in KINDS if "value" in self.fit.get(name, {})
        ]


@dataclass(frozen=True)
class Kind:
    """One threshold of a fit, with `fitted` as the fit's row has it. Its curve is drawn from the lowest
    threshold to 1, and up to four times the target: what is above is too bad to be told apart."""

    name: str
    fitted: Mapping[str, Any]
    target: float

    width, height = 240.0, 80.0

    @property
    def curve(self) -> list[tuple[float, int, int, float]]:
        """Threshold, pairs at or above it, wrong ones among them, upper bound on their share; rising."""
        return sorted(tuple(row) for row in self.fitted.get("curve", []))

    @property
    def first(self) -> float:
        return min([self.curve[0][0], self.fitted["value"]]) if self.curve else 0.0

    def _x(self, threshold: float) -> float:
        return round(self.width * (threshold - self.first) / max(0.001, 1 - self.first), 1)

    def _y(self, share: float) -> float:
        return round(self.height * (1 - min(1.0, share / (4 * self.target))), 1)

    @property
    def points(self) -> str:
        """As SVG has them."""
        return " ".join(f"{self._x(at)},{self._y(bound)}" for at, _n, _wrong, bound in self.curve)

    @property
    def x_value(self) -> float:
        return self._x(self.fitted["value"])

    @property
    def y_target(self) -> float:
        return self._y(self.target)


# --- the drawing ------------------------------------------------------------------------------------

_WIDTH, _UP, _DOWN = 720.0, 130.0, 90.0


@dataclass(frozen=True)
class Bar:
    """Of one bin, in the drawing's units; what it says."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    says: str


@dataclass(frozen=True)
class Line:
    x: float
    kind: str
    at: float


@dataclass(frozen=True)
class Spread:
    """Right pairs upwards, wrong ones downwards, by score; the thresholds as lines."""

    histogram: Histogram
    limits: Thresholds
    live: Thresholds

    width, height, axis = _WIDTH, _UP + _DOWN, _UP

    @property
    def right(self) -> int:
        return sum(self.histogram.right)

    @property
    def wrong(self) -> int:
        return sum(self.histogram.wrong)

    def x(self, score: float) -> float:
        first = self.histogram.first
        return round(_WIDTH * min(1.0, max(0.0, (score - first) / (1 - first))), 1)

    @property
    def x_low(self) -> float:
        return self.x(self.limits.low)

    @property
    def gray_width(self) -> float:
        """Of what is between the two thresholds."""
        return max(0.0, self.x(self.limits.high) - self.x_low)

    @property
    def bars(self) -> list[Bar]:
        most = max(1, *self.histogram.right, *self.histogram.wrong)
        found = []
        for at, counts in enumerate(zip(self.histogram.right, self.histogram.wrong, strict=True)):
            for kind, count, room in zip(("right", "wrong"), counts, (_UP, _DOWN), strict=True):
                if count:
                    found.append(self._bar(at, kind, count, max(2.0, room * count / most)))
        return found

    def _bar(self, at: int, kind: str, count: int, height: float) -> Bar:
        low = self.histogram.first + at * self.histogram.width
        x, until = self.x(low), self.x(low + self.histogram.width)
        y = _UP - height if kind == "right" else _UP
        says = f"{low:.3f}–{low + self.histogram.width:.3f}: {count}"
        return Bar(x, round(y, 1), round(max(1.0, until - x - 1), 1), round(height, 1), kind, says)

    @property
    def lines(self) -> list[Line]:
        """Those in force behind the ones considered."""
        sets = (("live", self.live), ("new", self.limits))
        return [
            Line(self.x(getattr(limits, name)), f"{which} {name}", getattr(limits, name))
            for which, limits in sets
            for name in ("low", "high")
        ]

    @property
    def ticks(self) -> list[Line]:
        first = round(self.histogram.first * 20)
        return [Line(self.x(at / 20), "tick", at / 20) for at in range(first, 21)]

    @property
    def table(self) -> list[tuple[float, float, int, int]]:
        """The same in figures: from, until, right, wrong; bins with something in them."""
        width = self.histogram.width
        rows = []
        for at, (right, wrong) in enumerate(zip(self.histogram.right, self.histogram.wrong, strict=True)):
            if right or wrong:
                low = self.histogram.first + at * width
                rows.append((low, low + width, right, wrong))
        return rows


def _histogram(stored: Mapping[str, Any]) -> Histogram:
    return Histogram(stored["first"], stored["width"], tuple(stored["right"]), tuple(stored["wrong"]))
