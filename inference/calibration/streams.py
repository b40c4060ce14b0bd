"""Synthetic streams of lookups whose error is known exactly, to try a calibration on."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .fitting import Kind, Pair

Floats = npt.NDArray[np.float64]

_GRID = np.linspace(0.5, 1.0, 20_001)


@dataclass(frozen=True)
class Scores:
    """Of pairs of one kind: they lie between 0.5 and 1, `1 - score` is half a Beta(`a`, `b`); the chance that
    one is wrong is `floor` at the top, a half at `middle`, and falls the more sharply the larger `slope`;
    `bump` is added around 0.97, where wordings are near copies that ask for the opposite."""

    a: float
    b: float
    middle: float
    slope: float
    floor: float = 0.0
    bump: float = 0.0

    def wrong(self, scores: Floats) -> Floats:
        """The chance that a pair with this score is wrong."""
        falling = 1 / (1 + np.exp(self.slope * (scores - self.middle)))
        near_copies = self.bump * np.exp(-(((scores - 0.97) / 0.01) ** 2))
        return np.asarray(np.clip(self.floor + (1 - self.floor) * falling + near_copies, 0, 1))

    def draw(self, n: int, random: np.random.Generator) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Scores of n pairs, and which of them are wrong."""
        scores = 1 - random.beta(self.a, self.b, n) / 2
        return scores, random.random(n) < self.wrong(scores)

    def above(self, threshold: float) -> tuple[float, float]:
        """The share of pairs that score at least so much, and the share of all that do and are wrong."""
        x = np.clip((1 - _GRID) * 2, 1e-9, 1 - 1e-9)
        weight = x ** (self.a - 1) * (1 - x) ** (self.b - 1)
        weight /= weight.sum()
        served = threshold <= _GRID
        return float(weight[served].sum()), float((weight * self.wrong(_GRID))[served].sum())


@dataclass(frozen=True)
class Stream:
    """Lookups, of which the share `agreeing` needs `low` only; the others are served from `high` on."""

    name: str
    agreeing: float
    agree: Scores
    strict: Scores

    def draw(self, n: int, random: np.random.Generator) -> list[Pair]:
        kinds = random.random(n) < self.agreeing
        pairs: list[Pair] = []
        kind: Kind
        for kind, agreeing in (("low", True), ("high", False)):
            of = self.agree if agreeing else self.strict
            scores, wrong = of.draw(int((kinds == agreeing).sum()), random)
            drawn = enumerate(zip(scores, wrong, strict=True))
            pairs += [Pair(f"{kind}{at}", kind, float(score), not bad) for at, (score, bad) in drawn]
        return pairs

    def realised(self, high: float, low: float) -> tuple[float, float]:
        """The share of lookups that these thresholds serve, and the share of wrong ones among them (0 where
        nothing is served): exactly, not as seen."""
        parts = (
            (self.agreeing, self.agree.above(low)),
            (1 - self.agreeing, self.strict.above(high)),
        )
        served = sum(weight * share for weight, (share, _wrong) in parts)
        wrong = sum(weight * bad for weight, (_share, bad) in parts)
        return served, wrong / served if served else 0.0


# Clear: what is alike asks the same. Flat: likeness tells little. Copies: what is almost the same in words is
# wrong more often than what is less so. Stubborn: at the very limit, however alike.
STREAMS = (
    Stream("clear", 0.6, Scores(1.5, 6, 0.86, 120), Scores(1.5, 5, 0.93, 90)),
    Stream("flat", 0.5, Scores(2, 5, 0.80, 25), Scores(2, 5, 0.84, 25, floor=0.005)),
    Stream("copies", 0.5, Scores(1.5, 6, 0.84, 100, bump=0.03), Scores(1.5, 6, 0.90, 100, bump=0.08)),
    Stream("stubborn", 0.5, Scores(1.5, 6, 0.80, 100, floor=0.021), Scores(1.5, 6, 0.85, 100, floor=0.021)),
)
