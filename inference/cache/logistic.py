"""Logistic regressions that were fitted beforehand, one for each language, in JSON beside the code."""

import json
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path

Features = dict[str, float]
Weights = Mapping[str, float]


@cache
def read(path: Path) -> Mapping[str, Weights]:
    """The weights by language; `constant` is one of them."""
    found: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def chance(weights: Weights, features: Mapping[str, float]) -> float:
    """From 0 to 1."""
    score = weights["constant"] + sum(weights[name] * value for name, value in features.items())
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))
