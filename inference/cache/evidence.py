"""What speaks for a candidate that neither agrees with the probe part by part nor conflicts with it.

One logistic over what is cheap to know: how near the probe is to the stored question and to the stored
answer, how far ahead of the other candidates, what the wording shares, and what the verifier says of this
wording of the entry and of another. Its weights (`evidence.json`) are fitted by
`inference.evaluation.fit_evidence`, for each language.

It is for questions in far other words. What reads almost alike and yet does not agree differs in what is
left over, and no likeness tells how much: that is refused here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from inference.understanding.comparison import overlap_of
from inference.understanding.language import language
from inference.understanding.opposites import alike

from . import logistic
from .agreement import words_of
from .logistic import Features
from .lookup import Candidate
from .probe import Probe

# So many of the likest candidates are weighed against each other, and at most so many pairs verified.
CONSIDERED = 4
# From this share of characters in a row on two questions are the same in nearly the same words, or another.
_NEAR_COPY = 0.5
# Around where the contexts of different conversations lie.
_CONTEXT = 0.85
# How near the nearest stored question that asks something else lies where several hundred are stored: being
# ahead of few says no more than being ahead of many.
_CROWD = {"en": 0.86, "zh": 0.89}
# The same of stored answers.
_ANSWER_CROWD = 0.8
WEIGHTS = Path(__file__).with_name("evidence.json")


@dataclass(frozen=True)
class Case:
    """A candidate, what is known of it without the verifier, and the others of the same entry."""

    candidate: Candidate
    features: Features
    siblings: tuple[int, ...]
    """Where the entry's other wordings stand among those considered."""


def eligible(probe: Probe, considered: Sequence[Candidate], found: Sequence[Candidate]) -> dict[int, Case]:
    """The cases that the evidence may decide, by their place in `considered`: candidates that nothing speaks
    against, likest first. `found` are all, and how far one is ahead of the others counts these, too."""
    cases, lang, asked = {}, lang_of(probe), words_of(probe.prints.meaning)
    for at, candidate in enumerate(considered):
        known = _known(probe, candidate)
        if known is None:
            continue
        words = _Words.of(asked, [other for other in found if other.entry == candidate.entry])
        # For what all wordings say there is hardly another word: "car" where all say "bicycle".
        if words.new and words.left_out:
            continue
        same = [n for n, other in enumerate(considered) if other.entry == candidate.entry and n != at]
        others = [other for other in found if other.entry != candidate.entry]
        known["ahead"] = known["question"] - max([_CROWD.get(lang, 1.0), *map(_likeness, others)])
        known["reworded"] = float(bool(same))
        known["new"] = len(words.new) / max(1, len(asked))
        known["ahead_answer"] = known["answer"] - max([_ANSWER_CROWD, *map(_answer_likeness, others)])
        cases[at] = Case(candidate, known, tuple(same))
    return cases


def _known(probe: Probe, candidate: Candidate) -> Features | None:
    """None where evidence is not enough, however much there is."""
    # Without the answer's likeness too little tells: of 39 Quora questions served so 7 were others.
    if candidate.answer_likeness is None or candidate.own_answer_likeness is None:
        return None
    a, b = probe.prints.meaning, candidate.prints.meaning
    shared = overlap_of(a, b)
    # All that one asks is in the other, and something is added: most often a condition.
    contained = not shared.left_a or not shared.left_b
    if shared.near >= _NEAR_COPY or contained:
        return None
    both, written_out = (
        probe.dependent and candidate.dependent,
        _written_out(probe) or _written_out(candidate),
    )
    # What was written in from one history may be wrong, and that of the other can't tell: the turns beside
    # the right one are all alike. Of 100 cases of that kind 10 were served the answer to one of these.
    if written_out and not both:
        return None
    # Of the same follow-up in two conversations only these can tell.
    asked, stored = probe.prints.asked, candidate.prints.asked
    if asked and stored and overlap_of(asked, stored).near >= _NEAR_COPY:
        return None
    common = bool(set(a.intents) & set(b.intents))
    return {
        "question": _likeness(candidate),
        # Of two that lean on their histories these must be alike, too.
        "context": (candidate.context_likeness or 0.0) - _CONTEXT if both else 0.0,
        "both_dependent": float(both),
        "one_dependent": float(probe.dependent != candidate.dependent),
        "written_out": float(written_out),
        "same_intent": float(common),
        "other_intent": float(bool(a.intents and b.intents) and not common),
        "left_probe": len(shared.left_a) / max(1, len(set(a.terms))),
        "left_stored": len(shared.left_b) / max(1, len(set(b.terms))),
        "answer": candidate.answer_likeness,
        "own_answer": candidate.own_answer_likeness,
    }


@dataclass(frozen=True)
class _Words:
    """What is `asked` that no wording of the entry says, nor its answer; and what all of them say and is not
    asked, where there are several."""

    new: frozenset[str]
    left_out: frozenset[str]

    @classmethod
    def of(cls, asked: frozenset[str], wordings: Sequence[Candidate]) -> Self:
        each = [words_of(one.prints.meaning) for one in wordings]
        answer = wordings[0].answer.casefold()
        common = frozenset[str].intersection(*each) if len(each) > 1 else frozenset[str]()
        return cls(
            frozenset(word for word in asked.difference(*each) if word not in answer),
            frozenset(word for word in common - asked if not any(alike(word, mine) for mine in asked)),
        )


def _likeness(candidate: Candidate) -> float:
    return candidate.likeness or 0.0


def _answer_likeness(candidate: Candidate) -> float:
    return candidate.answer_likeness or 0.0


def _written_out(one: Probe | Candidate) -> bool:
    return one.dependent and one.resolved not in ("", one.question)


def weigh(case: Case, verified: float, sibling: float | None, lang: str) -> float:
    """How likely it asks the same, 0 to 1, given what the verifier says (0 to 1) of the pair and of the best
    pair with another wording of the entry. 0 in a language that nothing was fitted for."""
    weights = logistic.read(WEIGHTS).get(lang)
    if weights is None:
        return 0.0
    return logistic.chance(weights, {**case.features, **of_verifier(verified, sibling)})


# Above where the verifier lies for unrelated questions, so that no other wording counts as one of those.
_UNRELATED = 3.0


def of_verifier(verified: float, sibling: float | None) -> Features:
    other = 0.0 if sibling is None else logit(sibling) + _UNRELATED
    return {"verifier": logit(verified), "verifier_other": other}


def at_best(case: Case, lang: str) -> float:
    """As `weigh`, should the verifier be as sure as it ever is: if that is too little, it is not asked."""
    return weigh(case, _SUREST, _SUREST if case.siblings else None, lang)


_SUREST = 0.97


def logit(p: float) -> float:
    clipped = min(1 - 1e-6, max(1e-6, p))
    return math.log(clipped / (1 - clipped))


def lang_of(probe: Probe) -> str:
    return language(probe.question)
