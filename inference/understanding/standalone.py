"""Does a message stand on its own, where its words alone leave that open?

"Do goldfish sleep?" and "Is breakfast included?" are built alike. Two things that vectors tell make the
difference: whether what was said before is about the same, and whether a question like this one says itself
what it is about (one direction among the vectors of questions, found from those that lean and those that
don't). A logistic regression for each language weighs them together with the verdict of the words.

The weights lie in `standalone.json`, fitted by inference/evaluation/fit_standalone.py to the vectors of the
embedder that is named there; with another one nothing is asked.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .grounding import NOTHING, Ground
from .script import is_chinese
from .turns import Turns
from .words import content

Rows = npt.NDArray[np.float32]
Vectors = Callable[[Sequence[str]], Rows | None]
"""One row of length 1 for each text, or None while there are none to be had."""

WEIGHTS = Path(__file__).with_name("standalone.json")

# Where the words are that sure, vectors change nothing: of 340 messages that lean, none was below the first.
OPEN = (0.03, 0.985)
# What the ground names weighs that much (log odds) for standing alone. Of 48 ways to ask something of a text
# about an island, after something else of it, 36 come surely out so then and 45 likely; 24 that lean, at .97.
_NAMED = 2.0
# What somebody pastes is about what it begins with.
_CHARS = 400
# Around where two texts in one language lie that have nothing to do with each other.
_APART = 0.8


class Weights(NamedTuple):
    """`direction` (dimension,) with its `constant` says how much a question alone sounds as if it leaned."""

    embedder: str
    direction: Rows
    constant: float
    languages: Mapping[str, Mapping[str, float]]


@cache
def weights() -> Weights:
    stored = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    direction = np.asarray(stored["direction"], dtype=np.float32)
    return Weights(stored["embedder"], direction, float(stored["constant"]), stored["languages"])


def knows(embedder: str) -> bool:
    """Were the weights fitted to the vectors of this embedder, by its identity?"""
    return embedder.startswith(weights().embedder)


def likelihood(text: str, history: Turns, words: float, vectors: Vectors, ground: Ground = NOTHING) -> float:
    """How likely the message leans on its history, 0 to 1, given how likely that is by its words; the same
    while there are no vectors. Where a `ground` names what the message is about, that the history is about
    the same says nothing."""
    if not OPEN[0] <= words <= OPEN[1]:
        return words
    said = asked_before(history)
    rows = vectors([text.casefold(), *said]) if said else None
    if rows is None:
        return words
    known = weights()
    lean = float(rows[0] @ known.direction) + known.constant
    named = ground is not NOTHING
    nearest = _APART if named else float((rows[1:] @ rows[0]).max())
    found = features(text, history, words, lean, nearest, ground)
    score = -_NAMED * named + sum(
        known.languages[_language(text)].get(name, 0.0) * value for name, value in found.items()
    )
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, score))))


def asked_before(history: Turns) -> list[str]:
    """What the person said, as it is embedded."""
    said = (turn["content"].strip() for turn in history if turn["role"] == "user")
    return [text[:_CHARS].casefold() for text in said if text]


def spoken_of(history: Turns) -> frozenset[str]:
    """What was spoken of, for comparing."""
    return frozenset().union(*(content(turn["content"]) for turn in history))


def features(
    text: str, history: Turns, words: float, lean: float, nearest: float, ground: Ground = NOTHING
) -> dict[str, float]:
    """What the verdict rests on, by name. `lean`: by the direction; `nearest`: how near the likest of what
    the person said lies."""
    own = content(text)
    before = spoken_of(history) - ground.words
    chance = min(0.999, max(0.001, words))
    return {
        "constant": 1.0,
        "words": math.log(chance / (1 - chance)),
        "lean": lean,
        "nearest": 10 * (nearest - _APART),
        "known": len(own & before) / len(own) if own else 0.5,
        "none known": float(bool(own) and not own & before),
        "brings": math.log1p(len(own - before)),
    }


def _language(text: str) -> str:
    return "zh" if is_chinese(text) else "en"
