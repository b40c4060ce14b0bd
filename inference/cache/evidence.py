"""What speaks for a candidate that neither agrees with the probe part by part nor conflicts with it.

One logistic over what is cheap to know: how near the probe is to the stored question and to the stored
answer, how far ahead of the other candidates, what the wording shares, and what the verifier says of this
wording of the entry and of another. Its weights (`evidence.json`) are fitted by
`inference.evaluation.fit_evidence`, for each language.

It is for questions in far other words. What reads almost alike and yet does not agree differs in what is
left over, and no likeness tells how much: that is refused here.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from inference.understanding.comparison import overlap_of
from inference.understanding.language import language
from inference.understanding.parts import Fingerprint

from .lookup import Candidate
from .prints import Prints
from .probe import Probe

# So many of the likest candidates are weighed against each other, and at most so many pairs verified.
CONSIDERED = 4
# From this share of characters in a row on two questions are the same in nearly the same words, or another.
_NEAR_COPY = 0.5
# How near the nearest stored question that asks something else lies where several hundred are stored: being
# ahead of few says no more than being ahead of many.
_CROWD = {"en": 0.86, "zh": 0.89}
WEIGHTS = Path(__file__).with_name("evidence.json")

Features = dict[str, float]


@dataclass(frozen=True)
class Case:
    """A candidate, what is known of it without the verifier, and the others of the same entry."""

    candidate: Candidate
    score: float
    features: Features
    siblings: tuple[int, ...]
    """Where the entry's other wordings stand among those considered."""


def eligible(probe: Probe, considered: Sequence[tuple[Candidate, float]]) -> dict[int, Case]:
    """The cases that the evidence may decide, by their place in `considered` (candidates with their scores,
    likest first)."""
    found, lang = {}, lang_of(probe)
    for at, (candidate, score) in enumerate(considered):
        known = _known(probe, candidate, score)
        if known is None:
            continue
        same = [n for n, (other, _) in enumerate(considered) if other.entry == candidate.entry and n != at]
        others = [likeness for other, likeness in considered if other.entry != candidate.entry]
        known["ahead"] = score - max([_CROWD.get(lang, 1.0), *others])
        known["reworded"] = float(bool(same))
        found[at] = Case(candidate, score, known, tuple(same))
    return found


def _known(probe: Probe, candidate: Candidate, score: float) -> Features | None:
    """None where evidence is not enough, however much there is."""
    if candidate.answer_likeness is None or candidate.own_answer_likeness is None:
        return None
    # What was written in from the history may be wrong, and the turns beside it are all alike.
    if _written_out(probe) or _written_out(candidate):
        return None
    a, b = probe.prints.meaning, Prints.from_json(candidate.fingerprint).meaning
    shared = overlap_of(a, b)
    # All that one asks is in the other, and something is added: most often a condition.
    contained = not shared.left_a or not shared.left_b
    if shared.near >= _NEAR_COPY or contained or _ask_for_different_things(a, b):
        return None
    return {
        "question": score,
        "answer": candidate.answer_likeness,
        "own_answer": candidate.own_answer_likeness,
        "one_dependent": float(probe.dependent != candidate.dependent),
        "same_intent": float(bool(set(a.intents) & set(b.intents))),
        "left_probe": len(shared.left_a) / max(1, len(set(a.terms))),
        "left_stored": len(shared.left_b) / max(1, len(set(b.terms))),
    }


def _written_out(one: Probe | Candidate) -> bool:
    return one.dependent and one.resolved not in ("", one.question)


def _ask_for_different_things(a: Fingerprint, b: Fingerprint) -> bool:
    return bool(a.intents and b.intents and not set(a.intents) & set(b.intents))


def weigh(case: Case, verified: float, sibling: float | None, lang: str) -> float:
    """How likely it asks the same, 0 to 1, given what the verifier says (0 to 1) of the pair and of the best
    pair with another wording of the entry. 0 in a language that nothing was fitted for."""
    weights = _weights().get(lang)
    if weights is None:
        return 0.0
    known = {**case.features, **of_verifier(verified, sibling)}
    score = weights["constant"] + sum(weights[name] * value for name, value in known.items())
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))


# Above where the verifier lies for unrelated questions, so that no other wording counts as one of those.
_UNRELATED = 3.0


def of_verifier(verified: float, sibling: float | None) -> Features:
    other = 0.0 if sibling is None else logit(sibling) + _UNRELATED
    return {"verifier": logit(verified), "verifier_other": other}


def at_best(case: Case, lang: str) -> float:
    """As `weigh`, should the verifier be as sure as it ever is: if that is too little, it is not asked."""
    return weigh(case, _SUREST, _SUREST if case.siblings else None, lang)


_SUREST = 0.9


def logit(p: float) -> float:
    clipped = min(1 - 1e-6, max(1e-6, p))
    return math.log(clipped / (1 - clipped))


def lang_of(probe: Probe) -> str:
    return language(probe.question)


@cache
def _weights() -> Mapping[str, Mapping[str, float]]:
    read: dict[str, dict[str, float]] = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    return read
