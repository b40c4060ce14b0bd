"""How well a score tells pairs of the same from pairs of different questions."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Figures:
    """`auc`: how often a pair of the same scores above one of different. `recall_at_*`: the part of the pairs
    of the same above the lowest threshold where that precision still holds; 0 where none does. `vetoed`: the
    part of the pairs of different that score below 95% of those of the same."""

    pairs: int
    same: int
    auc: float
    recall_at_95: float
    recall_at_90: float
    vetoed: float

    def as_dict(self) -> dict[str, float]:
        return {name: round(value, 3) for name, value in asdict(self).items()}


def figures(scores: Sequence[float] | npt.NDArray[np.float64], same: Sequence[bool]) -> Figures:
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(same, dtype=bool)
    return Figures(
        len(truth),
        int(truth.sum()),
        _auc(values, truth),
        recall_at(values, truth, 0.95),
        recall_at(values, truth, 0.90),
        float((values[~truth] < np.quantile(values[truth], 0.05)).mean()),
    )


def _auc(values: npt.NDArray[np.float64], truth: npt.NDArray[np.bool_]) -> float:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    positives, negatives = int(truth.sum()), int((~truth).sum())
    if not positives or not negatives:
        return float("nan")
    return float((ranks[truth].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def recall_at(values: npt.NDArray[np.float64], truth: npt.NDArray[np.bool_], precision: float) -> float:
    order = np.argsort(-values, kind="stable")
    hits = np.cumsum(truth[order])
    # A threshold takes all that score alike.
    ends = np.append(np.diff(values[order]) != 0, True)
    good = ends & (hits / np.arange(1, len(hits) + 1) >= precision)
    return float(hits[good].max() / truth.sum()) if good.any() else 0.0


def weights_of(
    features: Sequence[Mapping[str, float]], same: Sequence[bool], ridge: float
) -> dict[str, float]:
    """The weights of a logistic regression by the names of the features, and its `constant`, to three digits.
    Fitted to features that are brought to one scale first."""
    names = sorted(features[0])
    x = np.array([[row[name] for name in names] for row in features])
    mean, deviation = x.mean(0), x.std(0) + 1e-9
    found = logistic((x - mean) / deviation, same, ridge=ridge)
    weights = found[:-1] / deviation
    known = {name: round(float(weight), 3) for name, weight in zip(names, weights, strict=True)}
    return {"constant": round(float(found[-1] - mean @ weights), 3), **known}


def logistic(
    features: npt.NDArray[np.float64], same: Sequence[bool], steps: int = 50, ridge: float = 1e-3
) -> npt.NDArray[np.float64]:
    """Weights (features + 1, the last is the constant) of a logistic regression, by Newton's method with a
    ridge. `features` (pairs, features)."""
    x = np.hstack([features, np.ones((len(features), 1))])
    y = np.asarray(same, dtype=np.float64)
    weights = np.zeros(x.shape[1])
    for _ in range(steps):
        p = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        hessian = (x * (p * (1 - p))[:, None]).T @ x + ridge * np.eye(x.shape[1])
        weights -= np.linalg.solve(hessian, x.T @ (p - y) + ridge * weights)
    return weights
