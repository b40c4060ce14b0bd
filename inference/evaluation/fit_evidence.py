"""The weights of `inference.cache.evidence`, fitted to cases.

Of case files with `fresh` and `third` (tests/cases): every seed is stored, every probe asked; then every
probe that expects a hit is another wording of its entry, every other one an entry of its own with its fresh
answer, and every third wording is asked.
"""

import hashlib
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inference import embedding
from inference.cache import consent, decision, evidence, probe
from inference.cache.lookup import Candidate
from inference.cache.policy import BUILT_IN, Rules
from inference.cache.probe import Probe
from inference.embedding import Vectors
from inference.evaluation.cases import Case
from inference.evaluation.pair_measures import logistic
from inference.models import Scope
from inference.understanding.turns import Turns

_RIDGE = 1.0
_NEAREST = 8
_ASKED_FOR = (0.9, 0.93, 0.95, 0.97, 0.98)
_RULES = Rules({"": BUILT_IN}, ())

Floats = npt.NDArray[np.float64]


class NothingToAsk(Exception):
    """Without embedder or verifier there is nothing to fit."""


@dataclass(frozen=True)
class Row:
    """One case of one question: `question` names it, `half` is the half of the cases that it is in."""

    question: tuple[str, str]
    lang: str
    half: int
    same: bool
    features: dict[str, float]


@dataclass(frozen=True)
class _Wording:
    entry: str
    probe: Probe
    answer: str


def rows_of(cases: Sequence[Case]) -> list[Row]:
    """All that the evidence may decide in these cases. Raises NothingToAsk."""
    scope = Scope(hash="fit", pk=1)

    def asked(turns: Turns) -> Probe:
        return probe.read(scope, uuid.uuid4(), turns)

    entries: dict[str, str] = {}
    stored, learned, first, again = [], [], [], []
    for case in cases:
        seed = asked(case.seed[:-1])
        entry = entries.setdefault(seed.exact_key, case.id)
        if entry == case.id:
            stored.append(_Wording(entry, seed, case.answer))
        question = asked(case.probe)
        hit = case.expect == "hit"
        first.append((case, "first", question, entry if hit else ""))
        learned.append(
            _Wording(entry if hit else f"+{case.id}", question, case.answer if hit else case.fresh)
        )
        if hit and case.third:
            again.append((case, "again", asked(case.third), entry))
    return [row for one in first for row in _rows(*one, stored)] + [
        row for one in again for row in _rows(*one, [*stored, *learned])
    ]


def _rows(case: Case, when: str, question: Probe, right: str, stored: Sequence[_Wording]) -> Iterator[Row]:
    if any(one.probe.exact_key == question.exact_key for one in stored):
        return
    allowed = [
        one
        for one in (decision.weigh(question, candidate, _RULES) for candidate in _nearest(question, stored))
        if not one.objection
        and (one.comparison.verdict == "agree" or not (question.dependent and one.candidate.dependent))
    ]
    allowed.sort(key=lambda one: -one.score)
    considered = allowed[: evidence.CONSIDERED]
    found = evidence.eligible(question, [(one.candidate, one.score) for one in considered])
    if not found:
        return
    said = consent.ask_all(question, [one.candidate for one in considered])
    if said is None:
        raise NothingToAsk("There is no verifier to ask.")
    half = hashlib.sha256(case.id.encode()).digest()[0] % 2
    for at, each in found.items():
        other = max((said[sibling] for sibling in each.siblings), default=None)
        features = {**each.features, **evidence.of_verifier(said[at], other)}
        yield Row((case.id, when), case.lang, half, str(each.candidate.entry) == right, features)


def _nearest(question: Probe, stored: Sequence[_Wording]) -> list[Candidate]:
    vector = _present(question.question_vector)
    likeness = np.array([vector @ _present(one.probe.question_vector) for one in stored])
    found = []
    for at in np.argsort(-likeness)[:_NEAREST]:
        one = stored[at]
        answer = _present(embedding.embed([one.answer]))[0]
        found.append(
            Candidate(
                wording=one.entry,
                entry=one.entry,
                answer=one.answer,
                content_class="fact",
                question=one.probe.question,
                resolved=one.probe.resolved,
                dependent=one.probe.dependent,
                fingerprint=one.probe.prints.to_json(),
                parameters=(),
                likeness=float(likeness[at]),
                answer_likeness=float(answer @ vector),
                own_answer_likeness=float(answer @ _present(one.probe.question_vector)),
            )
        )
    return found


def _present(vectors: Vectors | None) -> Vectors:
    if vectors is None:
        raise NothingToAsk("There is no embedder to ask.")
    return vectors


def fitted(rows: Sequence[Row]) -> dict[str, float]:
    """The weights for these rows, of one language, and the constant."""
    names = sorted(rows[0].features)
    x = _matrix(rows, names)
    mean, deviation = x.mean(0), x.std(0) + 1e-9
    found = logistic((x - mean) / deviation, [row.same for row in rows], ridge=_RIDGE)
    weights = found[:-1] / deviation
    known = {name: round(float(weight), 3) for name, weight in zip(names, weights, strict=True)}
    return {"constant": round(float(found[-1] - mean @ weights), 3), **known}


def _matrix(rows: Sequence[Row], names: Sequence[str]) -> Floats:
    return np.array([[row.features[name] for name in names] for row in rows])


def _sure(row: Row, weights: dict[str, float]) -> float:
    score = weights["constant"] + sum(weights[name] * value for name, value in row.features.items())
    return float(1 / (1 + np.exp(-score)))


def crossed(rows: Sequence[Row]) -> dict[str, str]:
    """Each half of the cases weighed by the weights fitted on the other: "right/wrong" answers, by when it
    was asked and the probability asked for."""
    best: dict[tuple[str, str], tuple[float, bool]] = {}
    for half in (0, 1):
        weights = fitted([row for row in rows if row.half != half])
        for row in rows:
            if row.half == half:
                found = (_sure(row, weights), row.same)
                best[row.question] = max(best.get(row.question, (0.0, False)), found)
    figures = {}
    for when in ("first", "again"):
        ours = [found for (_, asked), found in best.items() if asked == when]
        for needed in _ASKED_FOR:
            served = [same for sure, same in ours if sure >= needed]
            figures[f"{when} {needed}"] = f"{sum(served)}/{len(served) - sum(served)}"
    return figures
