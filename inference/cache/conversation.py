"""Do two conversations go so alike that the same words, asked next in both, ask the same?

The same words mean another thing after another conversation, and whether they lean on it at all is told with
some doubt only. So what was said is compared as a whole: what was answered, since the answer to the question
before is what the next one is mostly about, and what was asked, in which nothing may differ for certain.
"""

import math
from collections.abc import Iterable, Sequence

from inference.embedding import embed
from inference.understanding.fingerprint import Reason, compare, fingerprint
from inference.understanding.turns import Turn

from .agreement import DECIDING

# Of what was said long before little is asked; and what is read here is read while somebody waits.
_TURNS = 4
_CHARS = 1_000


# From which likeness on two conversations are the same to whoever asks the same next. Where nothing differs
# in what was asked, the likest of 109 pairs that were not lay at 0.922; where only words do, at 0.969.
_SAME = 0.94
_SAME_IN_OTHER_WORDS = 0.973
_NEVER = math.inf
# Characters. Eleven openings that meant the same were answered in over 600; "day pass", "month pass" in 7.
_SAYS_ALL = 200
# Differences that other wording makes by itself; all else is meant.
_OF_WORDING = frozenset({"wording", "condition", "intent"})


def likeness(a: Sequence[Turn], b: Sequence[Turn], needed: float = 0.0) -> float:
    """How alike all that was said last is, and how alike what was answered: whichever is less, from 0 to 1.
    0 where nothing was answered, or while there is no embedder. What is below `needed` by the answers alone
    is compared no further: long texts take the embedder a while."""
    answers = _likeness(_said(a, "assistant"), _said(b, "assistant"))
    if answers <= 0 or answers < needed:
        return answers
    return min(answers, _likeness(_said(a, ""), _said(b, "")))


def _likeness(one: str, other: str) -> float:
    if not one or not other:
        return 0.0
    vectors = embed([one, other])
    return 0.0 if vectors is None else float(vectors[0] @ vectors[1])


def needed(a: Sequence[Turn], b: Sequence[Turn]) -> float:
    """The likeness from which on they are the same, after what the person asked in them; above 1 if that
    differs in something that was meant."""
    found = compare(fingerprint(_said(a, "user")), fingerprint(_said(b, "user")))
    if found.verdict != "conflict":
        return _SAME
    return _SAME_IN_OTHER_WORDS if of_wording(found.reasons) else _NEVER


def say_all(a: Sequence[Turn], b: Sequence[Turn]) -> bool:
    """Was so much answered in both, and nothing differently for certain, that whatever follows is about that,
    in whichever words it was asked for? A short answer leaves to its question what it is about."""
    answers = _said(a, "assistant"), _said(b, "assistant")
    if min(map(len, answers)) < _SAYS_ALL:
        return False
    return not {reason.code for reason in compare(*map(fingerprint, answers)).reasons} & DECIDING


def of_wording(reasons: Iterable[Reason]) -> bool:
    """Can other wording alone have made all of these differences?"""
    return all(map(_is_wording, reasons))


def _is_wording(reason: Reason) -> bool:
    """A number that only one of them names ("Newton's three laws") is a word more."""
    added = reason.code == "number" and "-" in reason.detail.split(" / ")
    return added or reason.code in _OF_WORDING


def _said(turns: Sequence[Turn], role: str) -> str:
    texts = [turn["content"] for turn in turns[-_TURNS:] if role in ("", turn["role"])]
    return "\n".join(text.strip()[:_CHARS] for text in texts).strip().casefold()
