"""Do two answers to one question say the same?

Precision first: `agree` lets the one be served in place of the other from then on, so whatever leaves room
for doubt is `unclear`, which costs nothing but another inference. What is typed (numbers, units, directions)
decides by itself; for the rest one logistic for each language weighs how alike the meanings are, what the
wordings share besides the words of the question, and what the verifier says of the two. Its weights
(`agreement.json`) are fitted by `inference.evaluation.agreement`. Where the questions differ the answers
prove something only if the verifier lets them pass for one: what fits any question fits these two as well.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import structlog

from inference import metrics
from inference.embedding import Vector
from inference.models import Verdict
from inference.understanding.comparison import overlap_of
from inference.understanding.fingerprint import Comparison, Fingerprint, Reason, compare, fingerprint
from inference.understanding.language import language
from inference.understanding.normalise import normalise
from inference.understanding.tokens import stem

from . import logistic, verifier
from .logistic import Features

log = structlog.get_logger(__name__)

WEIGHTS = Path(__file__).with_name("agreement.json")
# From which probability on two answers say the same, by their language, and up to which they don't. Read off
# the part of the pairs that the weights were fitted to: there one agreement in seventy is none.
_SAME, _OTHERWISE = {"en": 0.75, "zh": 0.85}, 0.05
# What the verifier must give two questions that are not the same: of pairs that had an answer in common which
# fits any question, nine in ten lay below, of the same questions in far other words one in twelve.
_PASS_FOR_ONE = 0.13
# Not where answers in words of their own share so much besides the questions' words: that fits no other.
_SPECIFIC = 3
# And where the answers have so many characters in a row in common: no such pair lay above. An answer to the
# same question in far other words is seldom the same word for word.
_NEARLY_THE_SAME, _PASS_FOR_ONE_THEN = 0.9, 0.33
# Answers too long for the verifier are judged by their likeness alone, which then must be that high.
_SAME_IF_LONG = {"zh": 0.965}
_SAME_IF_LONG_ELSE = 0.95
# Below that they speak of different things.
_OTHER = 0.84

# Differences of the fingerprints that stand between two answers whatever else they share. Other wording does
# not, nor a "not": an answer can say the same from the other end.
DECIDING = frozenset({"number", "opposite", "version", "date", "direction", "entity", "roles", "unit"})
# Differences of the questions that their answers may still overcome: a word that may be a synonym; and, where
# a question was written out from its history, whatever that may have brought in by mistake.
_OPEN = frozenset({"wording", "condition", "intent"})
_OPEN_IF_WRITTEN_OUT = _OPEN | {"entity", "number", "date", "version", "form"}

# From this share of characters in a row on, one answer is a copy of the other but for what differs. From the
# lower one on, that may be any word: whoever answers by himself finds words of his own.
_NEAR_COPY, _HALF_COPY = 0.75, 0.6
# The same of questions, where a part of one contradicts a part of the other, and where it only may. Of 156
# pairs of questions that ask the same, and whose answers agreed, one lay above that.
_MEANT = {"conflict": 0.5, "unknown": 0.65}
_TELLING = frozenset({"wording", "condition", "polarity", "order"})

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


@dataclass(frozen=True)
class Asked:
    """How the question that was asked compares with the one that the stored answer was given to.

    `written_out`: at least one of them was, from its history; `same`: they are spelled alike, in the same
    context; `texts`: both of them written out, `words` what they are made of, and `near` the share of their
    characters that stand in a row in both."""

    comparison: Comparison
    written_out: bool = False
    same: bool = False
    texts: tuple[str, str] = ("", "")
    words: frozenset[str] = frozenset()
    near: float = 0.0

    @property
    def meant_to_differ(self) -> bool:
        """Do they differ in nearly the same words? That was meant, whatever a word more or another one seems
        to be worth; and answers about one subject are alike whichever question they answer."""
        return self.near >= _MEANT.get(self.comparison.verdict, math.inf)


def words_of(*questions: Fingerprint) -> frozenset[str]:
    """What questions are made of, by their stems."""
    return frozenset(stem(term) for question in questions for term in question.terms)


def open_to_proof(asked: Comparison, written_out: bool) -> bool:
    """Can an answer still show that two questions ask the same, after what comparing them said?
    `written_out`: at least one of them was, from its history."""
    allowed = _OPEN_IF_WRITTEN_OUT if written_out else _OPEN
    return asked.verdict != "conflict" or {reason.code for reason in asked.reasons} <= allowed


def judge(stored: Answer, fresh: Answer, asked: Asked) -> Agreement:
    """Compare a stored answer with a fresh one, given how their questions compare. Symmetric."""
    if nothing := _incomparable(stored.text, fresh.text):
        return _unclear(nothing)
    compared = asked.comparison
    if normalise(stored.text) == normalise(fresh.text):
        same = Agreement(Verdict.AGREE, ("the same words",), 1.0)
        return _if_asked(asked, same, _PASS_FOR_ONE_THEN)
    doubts, alike = _doubts(stored.text, fresh.text, compared), _likeness(stored, fresh)
    if certain := [doubt.reason for doubt in doubts if doubt.certain]:
        return Agreement(Verdict.DISAGREE, tuple(certain), alike)
    if doubts and alike >= _OTHER:
        return _unclear("; ".join(doubt.reason for doubt in doubts), alike)
    weighed = _weigh(stored, fresh, asked)
    if weighed.verdict != Verdict.AGREE:
        return weighed
    if asked.meant_to_differ:
        return _unclear("answers alike, but to questions that differ in nearly the same words", alike)
    known = features_of(stored.text, fresh.text, alike, asked.words)
    if known["near"] >= _NEARLY_THE_SAME:
        return _if_asked(asked, weighed, _PASS_FOR_ONE_THEN)
    return _if_asked(asked, weighed, 0.0 if known["shared"] >= _SPECIFIC else _PASS_FOR_ONE)


def comparable(stored: str, fresh: str) -> bool:
    """Do both say something?"""
    return not _incomparable(stored, fresh)


def _incomparable(stored: str, fresh: str) -> str:
    """Why two texts can't be compared as answers; "" where they can."""
    if not normalise(stored) or not normalise(fresh):
        return "one of them is empty"
    refusals = [bool(_REFUSAL.search(text)) for text in (stored, fresh)]
    if any(refusals):
        return "both are refusals" if all(refusals) else "one of them is a refusal"
    return ""


def _if_asked(asked: Asked, agreement: Agreement, needed: float) -> Agreement:
    """The same, if the questions can pass for one; else the answers are alike because they say little."""
    if not open_to_proof(asked.comparison, asked.written_out):
        return _unclear("the questions differ: " + "; ".join(asked.comparison.reasons), agreement.likeness)
    if asked.same or asked.comparison.verdict == "agree" or not all(asked.texts):
        return agreement
    said = verified(*asked.texts)
    if said is None or said >= needed:
        return agreement
    reason = f"{agreement.reasons[0]}, but to questions that hardly pass for one ({said:.2f})"
    return _unclear(reason, agreement.likeness)


def verified(one: str, other: str) -> float | None:
    """What the verifier gives two texts, either way round, from 0 to 1. None where it can't say, or where
    they are too long for it."""
    try:
        if not verifier.available():
            return None
        both = verifier.score([(one, other), (other, one)])
    except Exception as error:
        log.warning("verifier_failed", error=str(error))
        metrics.STAGE_ERRORS.labels(stage="verifier").inc()
        return None
    return sum(both) / 2 if all(both) else None


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
    near = overlap_of(a, b).near
    copies = near >= _NEAR_COPY
    found = []
    if language(stored) and language(fresh) and language(stored) != language(fresh):
        found.append(_Doubt("different languages", True))
    if _polarity(stored) * _polarity(fresh) < 0:
        # "Is it safe?" and "Is it dangerous?" have the same answer with another first word.
        found.append(_Doubt("one says yes, the other no", copies or asked.verdict == "agree"))
    if _code(stored) != _code(fresh) and _code(stored) and _code(fresh):
        found.append(_Doubt("different code", copies))
    reasons = compare(a, b).reasons
    if near >= _HALF_COPY:
        found += [_Doubt(str(reason), False) for reason in reasons if reason.code in _TELLING]
    deciding = [reason for reason in reasons if reason.code in DECIDING]
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
    return likeness(stored.vector, fresh.vector)


def likeness(a: Vector | None, b: Vector | None) -> float:
    """Of two vectors, from 0 to 1; 0 where one is missing, or they are of different embedders."""
    return 0.0 if a is None or b is None or len(a) != len(b) else float(np.dot(a, b))


# --- weighing what nothing decides by itself -----------------------------------------------------------


def _weigh(stored: Answer, fresh: Answer, asked: Asked) -> Agreement:
    alike, lang = _likeness(stored, fresh), language(fresh.text)
    if not alike:
        return _unclear("nothing to compare meanings with")
    weights = logistic.read(WEIGHTS).get(lang) if lang in _SAME else None
    known = features_of(stored.text, fresh.text, alike, asked.words)
    apart = known["shared"] + known["quantities"] <= known["length"] * _IN_PASSING
    if alike < _OTHER or weights is None:
        verdict = Verdict.DISAGREE if alike < _OTHER and apart else Verdict.UNCLEAR
        return Agreement(verdict, (f"alike to {alike:.3f}",), alike)
    if logistic.chance(weights, known | of_verifier(_SUREST)) < _SAME[lang]:
        # The verifier costs as much as all the rest, and could not make them the same.
        return _unclear(f"alike to {alike:.3f}, worded apart", alike)
    said = verified(stored.text, fresh.text)
    if said is None:
        enough = alike >= _SAME_IF_LONG.get(lang, _SAME_IF_LONG_ELSE)
        reason = f"alike to {alike:.3f}, and not verified"
        return Agreement(Verdict.AGREE, (reason,), alike) if enough else _unclear(reason, alike)
    sure = logistic.chance(weights, known | of_verifier(said))
    reason = f"alike to {alike:.3f}, verified {said:.2f}: the same with {sure:.2f}"
    if sure >= _SAME[lang]:
        return Agreement(Verdict.AGREE, (reason,), alike)
    # Answers that have something in common besides the question may only tell more or less of it.
    refuted = sure <= _OTHERWISE and apart
    return Agreement(Verdict.DISAGREE if refuted else Verdict.UNCLEAR, (reason,), alike)


# What is less of the shorter answer is shared in passing.
_IN_PASSING = 1 / 3
# No pair of answers was given more.
_SUREST = 0.97
# From this share of characters in a row on, what differs counts for what it is.
_CLOSE = 0.5


def features_of(stored: str, fresh: str, alike: float, asked: frozenset[str]) -> Features:
    """What two answers share and what is left over, besides the words of what was `asked`. Symmetric."""
    a, b = fingerprint(stored), fingerprint(fresh)
    shared, compared = overlap_of(a, b), compare(a, b)
    codes = {reason.code for reason in compared.reasons}
    # A weak model says everything twice.
    told = [len(_beside(dict.fromkeys(terms), asked)) for terms in (a.terms, b.terms)]
    left = [len(_beside(terms, asked)) for terms in (shared.left_a, shared.left_b)]
    covered = [1 - one / max(1, of) if all(told) else 0.0 for one, of in zip(left, told, strict=True)]
    both, either = set(a.quantities) & set(b.quantities), (set(a.quantities), set(b.quantities))
    anything_left = bool(shared.left_a or shared.left_b)
    return {
        "like": alike,
        "near": shared.near,
        "near_but": shared.near * anything_left,
        "close_but": max(0.0, shared.near - _CLOSE) * min(3, sum(left)),
        "covered": max(covered),
        "both_covered": min(covered),
        "shared": float(min(4, max(0, min(told[0] - left[0], told[1] - left[1])))),
        "left_on_both": float(min(4, *left)),
        "quantities": float(min(3, len(both))),
        "other_quantities": float(min(3, *(len(mine - both) for mine in either))),
        "negations": float(abs(len(a.negations) - len(b.negations))),
        "yes_and_no": float(_polarity(stored) * _polarity(fresh) < 0),
        "other_order": float(shared.exact and a.terms != b.terms),
        "names": float("entity" in codes),
        "typed": float(bool(codes & _TYPED)),
        "roles": float(bool(codes & {"roles", "order"})),
        "polarity": float("polarity" in codes),
        "wording": float(bool(codes & {"wording", "condition"})),
        "length": float(min(6, len(a.terms), len(b.terms))),
        "same_letters": float(a.text == b.text),
    }


def _beside(terms: Iterable[str], asked: frozenset[str]) -> list[str]:
    return [term for term in terms if stem(term) not in asked]


def of_verifier(said: float) -> Features:
    """What the verifier said, as features."""
    clipped = min(1 - 1e-4, max(1e-4, said))
    logit = math.log(clipped / (1 - clipped))
    return {"verifier": logit, "verifier_against": min(0.0, logit)}


def best(agreements: Sequence[Agreement]) -> int | None:
    """Which of several stored answers the fresh one proves: the likest that agrees; None if none does."""
    agreeing = [at for at, one in enumerate(agreements) if one.verdict == Verdict.AGREE]
    return max(agreeing, key=lambda at: agreements[at].likeness, default=None)


def likest(agreements: Sequence[Agreement]) -> int:
    """Which of at least one stored answer is likest to the fresh one, whatever stands between them."""
    return max(range(len(agreements)), key=lambda at: agreements[at].likeness)
