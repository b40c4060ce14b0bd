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

from .asking import taken_out
from .folding import simplified
from .script import is_chinese
from .signal_reading import Reading, read
from .standalone import Vectors, asked_before
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


def detect(
    history: Turns, text: str, weights: Weights | None = None, vectors: Vectors | None = None
) -> Signal:
    """What the message does to what was said before it. `vectors` tell a statement about something else from
    one that changes what was said in words of its own. Never raises; without anything said before, or without
    a text, there is nothing to take back."""
    if not text.strip() or not any(turn["role"] != "system" and turn["content"].strip() for turn in history):
        return Signal("none", False, 1.0, None, ())
    weights = weights or _stored()
    reading = read([_simplified(turn) for turn in history], simplified(text))
    found = crossed(reading)
    parts = {name: weights.invalidates.get(name, 0.0) * value for name, value in found.items()}
    probability = 1 / (1 + math.exp(-max(-60.0, min(60.0, weights.bias + sum(parts.values())))))
    invalidates = probability >= weights.threshold
    if invalidates and vectors is not None and _is_elsewhere(found, history, text, vectors):
        return Signal("none", False, round(probability, 4), None, ("about something else",))
    sign = 1 if invalidates else -1
    leading = sorted((name for name in parts if parts[name] * sign > 0), key=lambda name: -parts[name] * sign)
    span = next((reading.spans[name] for name in leading if name in reading.spans), None)
    kind = _kind(found, weights) if invalidates else "none"
    confidence = probability if invalidates else 1 - probability
    return Signal(kind, invalidates, round(confidence, 4), span if invalidates else None, tuple(leading[:5]))


# How near a statement lies to a general question before it, with and without its answer. Of 33 that changed
# what had been answered, without a word of it, all lay above; of 48 that began something else, 30 lay below.
_FAR = {"en": 0.78, "zh": 0.836}
_ASKED, _CHARS = 3, 400


def _is_elsewhere(found: Mapping[str, float], history: Turns, text: str, vectors: Vectors) -> bool:
    """Is it a plain statement that has no word and no kind of value in common with what was said, takes
    nothing back in so many words, and is far from it in meaning? "My router shows a red light", after the
    height of a tower. After something of the person's own it may always be a condition of that."""
    exchanges = any(name.startswith(("value other", "value restored")) for name in found)
    cued = any(name in found for name in _TAKES_BACK)
    plain = found.get("plain answered") and found.get("overlap none") and found.get("scene general")
    answers = [turn["content"][:_CHARS] for turn in history if turn["role"] == "assistant"][-1:]
    if exchanges or cued or not plain or not answers:
        return False
    asked = [taken_out(said) for said in asked_before(history)[-_ASKED:]]
    if not asked:
        return False
    rows = vectors([said.casefold() for said in (text[:_CHARS], *asked, f"{asked[-1]}\n{answers[0]}")])
    if rows is None:
        return False
    *alone, answered = (rows[1:] @ rows[0]).tolist()
    return (max(alone) + answered) / 2 < _FAR["zh" if is_chinese(text) else "en"]


def _simplified(turn: Turn) -> Turn:
    return {"role": turn["role"], "content": simplified(turn["content"])}


def _kind(found: Mapping[str, float], weights: Weights) -> Kind:
    def score(kind: Kind) -> float:
        known = weights.kinds[kind]
        return known.get("bias", 0.0) + sum(known.get(name, 0.0) * value for name, value in found.items())

    kinds: tuple[Kind, ...] = ("correction", "rejection", "restatement")
    return max(kinds, key=score)
