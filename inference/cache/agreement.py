"""Do two answers to one question say the same?

Precision first: `agree` lets the one be served in place of the other from then on, so whatever leaves room
for doubt is `unclear`, which costs nothing but another inference.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inference.embedding import Vector
from inference.models import Verdict
from inference.understanding.comparison import overlap_of
from inference.understanding.fingerprint import Comparison, Reason, compare, fingerprint
from inference.understanding.language import language
from inference.understanding.normalise import normalise

# From which likeness on two answers say the same, by their language, if nothing in them differs: answers that
# other people wrote to the same question lie above, in nine of ten cases. Chinese ones lie closer together.
_SAME = {"zh": 0.94}
_SAME_ELSE = 0.915
# Where the questions differ in a word, it takes that much more.
_MORE_IF_ASKED_OTHERWISE = 0.04
# Below that they speak of different things.
_OTHER = 0.84

# Differences of the fingerprints that stand between two answers whatever else they share. Other wording does
# not, nor a "not": an answer can say the same from the other end.
_DECIDING = frozenset({"number", "opposite", "version", "date", "direction", "entity", "roles", "unit"})
# Differences of the questions that their answers may still overcome: a word that may be a synonym; and, where
# a question was written out from its history, whatever that may have brought in by mistake.
_OPEN = frozenset({"wording", "condition", "intent"})
_OPEN_IF_WRITTEN_OUT = _OPEN | {"entity", "number", "date", "version", "form"}

# From this share of characters in a row on, one answer is a copy of the other but for what differs.
_NEAR_COPY = 0.75

_CODE = re.compile(r"```[^\n]*\n(.*?)(?:```|\Z)|`([^`\n]+)`", re.DOTALL)
_REFUSAL = re.compile(
    r"\b(?:i (?:can(?:no|')t|am (?:not able|unable)|don't (?:know|have)|do not (?:know|have))"
    r"|i'm (?:sorry|unable|not sure)|as an ai|cannot (?:help|assist|provide))\b"
    r"|我(?:无法|不能|不知道|不清楚|不确定)|抱歉|作为(?:一个)?(?:AI|人工智能)",
    re.IGNORECASE,
)
_YES = re.compile(
    r"\W*(?:(?:yes|yeah|yep|correct|true|right)\b|是的|对的?[，,。]|可以|能|会[，,。]|有的?[，,。]|没错)",
    re.I,
)
_NO = re.compile(r"\W*(?:(?:no|nope|not|false|incorrect|wrong|never)\b|不|没(?!错)|否|别|无需|无法)", re.I)


@dataclass(frozen=True)
class Agreement:
    verdict: Verdict
    reasons: tuple[str, ...]
    likeness: float = 0.0


@dataclass(frozen=True)
class Answer:
    """An answer and its vector; None where there is none to be had."""

    text: str
    vector: Vector | None


def open_to_proof(asked: Comparison, written_out: bool) -> bool:
    """Can an answer still show that two questions ask the same, after what comparing them said?
    `written_out`: at least one of them was, from its history."""
    allowed = _OPEN_IF_WRITTEN_OUT if written_out else _OPEN
    return asked.verdict != "conflict" or {reason.code for reason in asked.reasons} <= allowed


def judge(stored: Answer, fresh: Answer, asked: Comparison, written_out: bool = False) -> Agreement:
    """Compare a stored answer with a fresh one, given how their questions compare (and whether one of them
    was written out from its history). Symmetric."""
    a, b = normalise(stored.text), normalise(fresh.text)
    if not a or not b:
        return _unclear("one of them is empty")
    if not open_to_proof(asked, written_out):
        return _unclear("the questions differ: " + "; ".join(asked.reasons))
    refusals = [bool(_REFUSAL.search(text)) for text in (stored.text, fresh.text)]
    if any(refusals):
        return _unclear("both are refusals" if all(refusals) else "one of them is a refusal")
    if a == b:
        return Agreement(Verdict.AGREE, ("the same words",), 1.0)
    doubts = _doubts(stored.text, fresh.text, asked)
    if certain := [doubt.reason for doubt in doubts if doubt.certain]:
        return Agreement(Verdict.DISAGREE, tuple(certain), _likeness(stored, fresh))
    if doubts and _likeness(stored, fresh) >= _OTHER:
        return _unclear("; ".join(doubt.reason for doubt in doubts), _likeness(stored, fresh))
    return _by_likeness(stored, fresh, asked)


def _unclear(reason: str, likeness: float = 0.0) -> Agreement:
    return Agreement(Verdict.UNCLEAR, (reason,), likeness)


@dataclass(frozen=True)
class _Doubt:
    """A difference between two answers; `certain` if they contradict each other, and not only one of them
    says more, or says it in other words."""

    reason: str
    certain: bool


def _doubts(stored: str, fresh: str, asked: Comparison) -> list[_Doubt]:
    a, b = fingerprint(stored), fingerprint(fresh)
    # What differs in nearly the same words was meant to differ.
    copies = overlap_of(a, b).near >= _NEAR_COPY
    found = []
    if language(stored) and language(fresh) and language(stored) != language(fresh):
        found.append(_Doubt("different languages", True))
    if _polarity(stored) * _polarity(fresh) < 0:
        # "Is it safe?" and "Is it dangerous?" have the same answer with another first word.
        found.append(_Doubt("one says yes, the other no", copies or asked.verdict == "agree"))
    if _code(stored) != _code(fresh) and _code(stored) and _code(fresh):
        found.append(_Doubt("different code", copies))
    deciding = [reason for reason in compare(a, b).reasons if reason.code in _DECIDING]
    return found + [_Doubt(str(reason), copies or _contradicts(reason)) for reason in deciding]


# Typed differences; what names there are in an answer depends on how much it tells.
_TYPED = frozenset({"number", "version", "date", "direction", "opposite", "unit"})


def _contradicts(reason: Reason) -> bool:
    """Do both answers name a value, and none the same?"""
    sides = [set(side.split()) for side in reason.detail.split(" / ")]
    if reason.code not in _TYPED or len(sides) != 2:
        return False
    return not sides[0] & sides[1] and {"-"} not in sides


def _polarity(text: str) -> int:
    return 1 if _YES.match(text) else -1 if _NO.match(text) else 0


def _code(text: str) -> frozenset[str]:
    """All code in the text, spacing aside."""
    return frozenset(" ".join((block or inline).split()) for block, inline in _CODE.findall(text))


def _likeness(stored: Answer, fresh: Answer) -> float:
    if stored.vector is None or fresh.vector is None or len(stored.vector) != len(fresh.vector):
        return 0.0
    return float(np.dot(stored.vector, fresh.vector))


def _by_likeness(stored: Answer, fresh: Answer, asked: Comparison) -> Agreement:
    likeness = _likeness(stored, fresh)
    if not likeness:
        return _unclear("nothing to compare meanings with")
    needed = _SAME.get(language(fresh.text), _SAME_ELSE)
    if asked.verdict == "conflict":
        needed += _MORE_IF_ASKED_OTHERWISE
    said = f"alike to {likeness:.3f}"
    if likeness < _OTHER:
        return Agreement(Verdict.DISAGREE, (said,), likeness)
    return Agreement(Verdict.AGREE, (said,), likeness) if likeness >= needed else _unclear(said, likeness)


def best(agreements: Sequence[Agreement]) -> int | None:
    """Which of several stored answers the fresh one proves: the likest that agrees; None if none does."""
    agreeing = [at for at, one in enumerate(agreements) if one.verdict == Verdict.AGREE]
    return max(agreeing, key=lambda at: agreements[at].likeness, default=None)


def likest(agreements: Sequence[Agreement]) -> int:
    """Which of at least one stored answer is likest to the fresh one, whatever stands between them."""
    return max(range(len(agreements)), key=lambda at: agreements[at].likeness)
