"""What a conversation has taken back ("不对，我是说 B", "no, I meant B", "make it 3, not 2"), and what holds.

Which turns do so is for `signals` to say, message by message; here it is read off a whole history.
"""

import re
from collections.abc import Sequence, Set
from functools import lru_cache

from .chitchat import is_chitchat
from .dependence import topic_start
from .folding import fold
from .mentions import mentions
from .signal_reading import clauses
from .signals import detect
from .standalone import Vectors
from .turns import Role, Turn, Turns

# What `detect` looks at, at most: the last answer, and some questions before it.
_LOOKS_BACK = 14


@lru_cache(maxsize=4096)
def _takes_back(said: tuple[tuple[Role, str], ...], text: str, vectors: Vectors | None) -> bool:
    """Every message of a history was new once: what it does is found out then, and asked again with each
    message after it."""
    history = [Turn(role=role, content=content) for role, content in said]
    return detect(history, text, vectors=vectors).invalidates


def takes_back(turns: Turns, at: int, vectors: Vectors | None = None) -> bool:
    """Does the person take something back with turn `at` that was said before it?"""
    if turns[at]["role"] != "user":
        return False
    before = turns[max(0, at - _LOOKS_BACK) : at]
    said = tuple((turn["role"], turn["content"]) for turn in before)
    return _takes_back(said, turns[at]["content"], vectors)


def corrections(
    turns: Turns, misread: Set[int] = frozenset(), vectors: Vectors | None = None
) -> tuple[int, ...]:
    """The turns that take something back, in order; without those that the person said were misread."""
    return tuple(at for at in range(1, len(turns)) if at not in misread and takes_back(turns, at, vectors))


def last_correction(history: Turns) -> int:
    """The index of the last user turn that corrects an earlier one; -1 if none does."""
    return next((at for at in range(len(history) - 1, 0, -1) if takes_back(history, at)), -1)


def subject_of(history: Turns) -> tuple[int, ...]:
    """What a message that takes something back may take back: the answers since the topic began that the
    history ends with, in order; not those to a greeting or thanks."""
    start = topic_start(history)
    return tuple(
        at
        for at in range(max(1, start), len(history))
        if history[at]["role"] == "assistant" and not is_chitchat(history[at - 1]["content"])
    )


def replaced(history: Turns, taken_back: Sequence[int]) -> frozenset[int]:
    """The turns that the corrections at `taken_back` took back: before each, those of its topic."""
    return frozenset(at for end in taken_back for at in range(topic_start(history[:end]), end))


# In such a clause stands what no longer holds, where another one says what does.
_DENIES = re.compile(
    r"n['’]t\b|\b(?:not|no|never|cannot|instead of|rather than|off|wrong)\b|不|没|别(?!的)|取消|无法|错",
    re.IGNORECASE,
)


def what_holds(history: Turns, at: int) -> str:
    """What the correction at `at` puts in the place of what it takes back: its clauses that name something
    new ("不对，A 不行，改走 B" → "改走 B"); all of it where it only takes back."""
    text = history[at]["content"]
    known = fold(" ".join(turn["content"] for turn in history[:at])).casefold()
    new = [part.text.strip() for part in clauses(text) if _names_new(part.text, known)]
    return " ".join([part for part in new if not _DENIES.search(part)] or new) or text.strip()


def _names_new(clause: str, known: str) -> bool:
    return any(fold(phrase.text).casefold() not in known for phrase in mentions(clause))
