"""Does a new message take back something said before it: an answer, a plan, a condition?

Reads signs off the message and its history (`signal_reading`) and weighs them. The weights were fitted
offline by `inference.evaluation.train_signals` and lie in `signal_weights.json`. Pure Python.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from .folding import simplified
from .signal_reading import Reading, read
from .turns import Turn, Turns

Kind = Literal["correction", "rejection", "restatement", "none"]

# Part of the scope: a change of rules or weights changes it.
VERSION = "2"


@dataclass(frozen=True)
class Signal:
    """`confidence` is the probability of what was decided (that it invalidates, or that it doesn't), 0 to 1.
    `span`: the characters of the message that decided most, [start, end); None where no place did.
    `reasons`: the features that decided, the weightiest first."""

    kind: Kind
    invalidates: bool
    confidence: float
    span: tuple[int, int] | None
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Weights:
    """A logistic model for `invalidates` with its threshold on the probability, and one linear score for each
    kind of signal."""

    bias: float
    invalidates: Mapping[str, float]
    threshold: float
    kinds: Mapping[str, Mapping[str, float]]


@cache
def _stored() -> Weights:
    return weights_from(json.loads((files(__package__) / "signal_weights.json").read_text(encoding="utf-8")))


def weights_from(stored: Mapping[str, Any]) -> Weights:
    """The weights as they are kept in JSON. Raises KeyError where a part is missing."""
    return Weights(stored["bias"], stored["invalidates"], stored["threshold"], stored["kinds"])


_TAKES_BACK = ("cue outright", "cue drop", "cue change", "cue wrong", "cue said", "cue news", "cue contrast")
# What a message can be other than a plain statement.
_OTHERWISE = ("form asks", "form works", "form goes on", "cue praise", "cue accepts", "cue printed")


def crossed(reading: Reading) -> dict[str, float]:
    """All features that are weighed: those read, and those read after a question of the assistant's, since
    most signs weigh something else there."""
    found = {name: value for name, value in reading.features.items() if value}
    asked = max(found.get(f"scene {how}", 0.0) for how in ("asked", "invited", "only nodded"))
    asked = max(asked, found.get("scene opened", 0.0))
    scenes = {"asked": asked, "general": found.get("scene general", 0.0)}
    after = {
        f"{name} | {scene}": value
        for scene, holds in scenes.items()
        for name, value in found.items()
        if holds and not name.startswith("scene")
    }
    # An offer asks for no fact: a bare no declines it, but what it follows on may be denied all the same.
    if found.get("scene offered") and not found.get("scene opened"):
        after |= {f"{name} | offered": found[name] for name in _TAKES_BACK if name in found}
    quiet = not any(found.get(name) for name in _OTHERWISE)
    return {**found, **after, "plain": float(quiet), "plain answered": float(quiet and not asked)}


def detect(history: Turns, text: str, weights: Weights | None = None) -> Signal:
    """What the message does to what was said before it. Never raises; without anything said before, or
    without a text, there is nothing to take back."""
    if not text.strip() or not any(turn["role"] != "system" and turn["content"].strip() for turn in history):
        return Signal("none", False, 1.0, None, ())
    weights = weights or _stored()
    reading = read([_simplified(turn) for turn in history], simplified(text))
    found = crossed(reading)
    parts = {name: weights.invalidates.get(name, 0.0) * value for name, value in found.items()}
    probability = 1 / (1 + math.exp(-max(-60.0, min(60.0, weights.bias + sum(parts.values())))))
    invalidates = probability >= weights.threshold
    sign = 1 if invalidates else -1
    leading = sorted((name for name in parts if parts[name] * sign > 0), key=lambda name: -parts[name] * sign)
    span = next((reading.spans[name] for name in leading if name in reading.spans), None)
    kind = _kind(found, weights) if invalidates else "none"
    confidence = probability if invalidates else 1 - probability
    return Signal(kind, invalidates, round(confidence, 4), span if invalidates else None, tuple(leading[:5]))


def _simplified(turn: Turn) -> Turn:
    return {"role": turn["role"], "content": simplified(turn["content"])}


def _kind(found: Mapping[str, float], weights: Weights) -> Kind:
    def score(kind: Kind) -> float:
        known = weights.kinds[kind]
        return known.get("bias", 0.0) + sum(known.get(name, 0.0) * value for name, value in found.items())

    kinds: tuple[Kind, ...] = ("correction", "rejection", "restatement")
    return max(kinds, key=score)
