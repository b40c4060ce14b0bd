"""Bounds on a share of which k of n were seen.

Exact ones (`upper`, `lower`, `interval`) after Clopper and Pearson (Biometrika 26, 1934): the share under
which k or fewer (or more) would be that unlikely. Where it is enough to hold on average, and k and n are sums
of weights, Wilson's score interval (JASA 22, 1927).
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtri

Floats = npt.NDArray[np.float64]


def upper(k: Any, n: Any, level: float) -> Floats:
    """The share is above this with a probability of at most `level`. Of numbers or arrays of the same shape;
    1 where n is 0."""
    k, n = np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64)
    bound = betaincinv(k + 1, np.maximum(n - k, 1e-300), 1 - level)
    return np.asarray(np.where(k >= n, 1.0, bound), dtype=np.float64)


def lower(k: Any, n: Any, level: float) -> Floats:
    """The share is below this with a probability of at most `level`; 0 where n is 0."""
    k, n = np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64)
    bound = betaincinv(np.maximum(k, 1e-300), n - k + 1, level)
    return np.asarray(np.where(k <= 0, 0.0, bound), dtype=np.float64)


def interval(k: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Holds the share with at least `confidence`."""
    tail = (1 - confidence) / 2
    return float(lower(k, n, tail)), float(upper(k, n, tail))


def wilson(k: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Between these lies the share with about `confidence`; (0, 1) where nothing was seen."""
    if n <= 0:
        return 0.0, 1.0
    z2 = float(ndtri((1 + confidence) / 2)) ** 2
    share, scale = k / n, 1 + z2 / n
    middle, spread = share + z2 / (2 * n), math.sqrt(z2 * (share * (1 - share) + z2 / (4 * n)) / n)
    low, high = (middle - spread) / scale, (middle + spread) / scale
    return min(share, max(0.0, low)), max(share, min(1.0, high))  # where rounding would leave it outside


def needed(k: int, target: float, level: float) -> int:
    """Of how many k may be wrong so that the upper bound is at most `target`. Raises ValueError for a target
    or a level that isn't between 0 and 1."""
    if not (0 < target < 1 and 0 < level < 1):
        raise ValueError("target and level must lie between 0 and 1")
    low, high = k, max(k + 1, math.ceil((k + 1) / target))
    while upper(k, high, level) > target:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if upper(k, middle, level) > target:
            low = middle
        else:
            high = middle
    return high
