"""The weights of `inference.cache.evidence`, fitted to cases.

Of case files with `fresh` and `third` (tests/cases): every seed is stored, every probe asked, and every third
wording too: the probes of rejects are nearly their seed's words and those of hits are not, the third wordings
are all far from them. What expects a hit is asked once more of a store without its entry: most of what is
asked has no answer yet. Then every probe that expects a hit is another wording of its entry, every other one
with its third wording an entry of its own with its fresh answer. The third wordings of hits are asked, with
and without their entry; and the seeds of rejects without theirs: what is nearly the same can then be reached
by several wordings, too, which must not speak for it.
"""

import hashlib
import uuid
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
import numpy.typing as npt

from inference import embedding
from inference.cache import consent, decision, evidence, probe
from inference.cache.logistic import chance
from inference.cache.lookup import NEAREST, Candidate
from inference.cache.policy import BUILT_IN, Rules
from inference.cache.probe import Probe
from inference.embedding import Vector, Vectors
from inference.evaluation.cache import NO_ANSWER
from inference.evaluation.cases import Case
from inference.evaluation.pair_measures import weights_of
from inference.models import Scope
from inference.understanding.turns import Turns

_RIDGE = 1.0
_ASKED_FOR = (0.9, 0.93, 0.95, 0.97, 0.98)
_ASKED = ("first", "reworded", "first, absent", "reworded, absent", "again", "again, absent")
_RULES = Rules({"": BUILT_IN}, ())

# So many may be wrong of all answers, of those to what is asked first, and of the questions of each kind.
_WRONG = 0.02

Floats = npt.NDArray[np.float64]
Weights = dict[str, float]


class NothingToAsk(Exception):
    """Without embedder or verifier there is nothing to fit."""


@dataclass(frozen=True)
class Row:
    """One case of one question: `question` names it, `half` is the half of the cases that it is in."""

    question: tuple[str, str]
    lang: str
    kind: str
    half: int
    same: bool
    features: dict[str, float]


@dataclass(frozen=True)
class _Wording:
    entry: UUID
    probe: Probe
    answer: str


def rows_of(cases: Sequence[Case]) -> list[Row]:
    """All that the evidence may decide in these cases. Raises NothingToAsk."""
    scope = Scope(hash="fit", pk=1)

    def asked(turns: Turns) -> Probe:
        return probe.read(scope, uuid.uuid4(), turns)

    entries: dict[str, UUID] = {}
    stored, learned, cold, warm = [], [], [], []
    for case in cases:
        seed, question = asked(case.seed[:-1]), asked(case.probe)
        third = asked(case.third) if case.third else None
        entry = entries.setdefault(seed.exact_key, _named(case.id))
        if entry == _named(case.id):
            stored.append(_Wording(entry, seed, case.answer))
        hit = case.expect == "hit"
        cold.append((case, "first", question, entry if hit else None))
        if third:
            cold.append((case, "reworded", third, entry if hit else None))
        if not case.fresh:
            continue
        own = entry if hit else _named(f"+{case.id}")
        learned.append(_Wording(own, question, case.answer if hit else case.fresh))
        if third and hit:
            warm.append((case, "again", third, entry))
        elif third:
            # Seen from the other side it is a near miss that can be asked in two ways.
            learned.append(_Wording(own, third, case.fresh))
            warm.append((case, "again", seed, entry))
    both = [*stored, *learned]
    return [
        *(row for one in cold for row in _rows(*one, stored)),
        *(row for one in cold for row in _absent(*one, stored)),
        *(row for one in warm if one[0].expect == "hit" for row in _rows(*one, both)),
        *(row for one in warm for row in _absent(*one, both)),
    ]


def _absent(
    case: Case, when: str, question: Probe, right: UUID | None, stored: Sequence[_Wording]
) -> Iterator[Row]:
    """As if the right entry had not been stored yet; where there is none, it was asked so already."""
    if right is not None:
        others = [one for one in stored if one.entry != right]
        yield from _rows(case, f"{when}, absent", question, None, others)


def _named(case: str) -> UUID:
    return uuid.uuid5(uuid.NAMESPACE_OID, case)


def _rows(
    case: Case, when: str, question: Probe, right: UUID | None, stored: Sequence[_Wording]
) -> Iterator[Row]:
    if any(one.probe.exact_key == question.exact_key for one in stored):
        return
    weighed = [decision.weigh(question, candidate, _RULES) for candidate in _nearest(question, stored)]
    weighed.sort(key=lambda one: -one.score)
    found = [one.candidate for one in weighed]
    considered = [one.candidate for one in decision.unopposed(weighed)][: evidence.CONSIDERED]
    cases = evidence.eligible(question, considered, found)
    if not cases:
        return
    said = consent.ask_all(question, considered)
    if said is None:
        raise NothingToAsk("There is no verifier to ask.")
    half = hashlib.sha256(case.id.encode()).digest()[0] % 2
    for at, each in cases.items():
        if said[at] < BUILT_IN.consent:
            continue
        other = max((said[sibling] for sibling in each.siblings), default=None)
        features = {**each.features, **evidence.of_verifier(said[at], other)}
        same = each.candidate.entry == right
        yield Row((case.id, when), case.lang, _kind(case, when), half, same, features)


def _kind(case: Case, when: str) -> str:
    return f"{case.lang}/{case.kind if case.expect == 'reject' else 'hit'}, {when}"


def _nearest(question: Probe, stored: Sequence[_Wording]) -> list[Candidate]:
    """As `lookup.nearest`: by the question, and of a dependent one also by the context."""
    by_question = _likenesses(question.question_vector, [one.probe.question_vector for one in stored])
    by_context = _likenesses(question.context_vector, [one.probe.context_vector for one in stored])
    nearest = {at for by in (by_question, by_context) for at in np.argsort(-by)[:NEAREST] if by[at] > -1}
    return [_candidate(question, stored[at], by_question[at], by_context[at]) for at in sorted(nearest)]


def _likenesses(vector: Vector | None, others: Sequence[Vector | None]) -> Floats:
    """-1 where one has no vector."""
    return np.array([-1 if vector is None or other is None else vector @ other for other in others])


def _candidate(question: Probe, one: _Wording, likeness: float, context_likeness: float) -> Candidate:
    answer = _present(embedding.embed([one.answer]))[0] if one.answer else None
    asked, stored = _present(question.question_vector), _present(one.probe.question_vector)
    return Candidate(
        wording=uuid.uuid5(one.entry, one.probe.exact_key),
        entry=one.entry,
        answer=one.answer or NO_ANSWER,
        content_class="fact",
        proved=True,
        question=one.probe.question,
        resolved=one.probe.resolved,
        dependent=one.probe.dependent,
        fingerprint=one.probe.prints.to_json(),
        parameters=(),
        likeness=float(likeness),
        context_likeness=float(context_likeness) if context_likeness > -1 else None,
        answer_likeness=None if answer is None else float(answer @ asked),
        own_answer_likeness=None if answer is None else float(answer @ stored),
    )


def _present(vectors: Vectors | None) -> Vectors:
    if vectors is None:
        raise NothingToAsk("There is no embedder to ask.")
    return vectors


def fitted(rows: Sequence[Row]) -> Weights:
    """The weights for these rows, of one language, and the constant. What the verifier says never counts
    against the pair it speaks for: where a fit would have it so, it only vetoes."""
    weights = _fitted(rows)
    against = {name: 0.0 for name in evidence.of_verifier(1.0, 1.0) if weights.get(name, 0.0) < 0}
    return _fitted(rows, without=against) | against if against else weights


def _fitted(rows: Sequence[Row], without: Collection[str] = ()) -> Weights:
    features = [{name: value for name, value in row.features.items() if name not in without} for row in rows]
    return weights_of(features, [row.same for row in rows], _RIDGE)


@dataclass(frozen=True)
class Answered:
    """What is served to one question, if so much is asked for: by the weights that its half of the cases had
    no part in."""

    sure: float
    row: Row


def crossed(rows: Sequence[Row]) -> list[Answered]:
    """For every question the likest case, each half of the cases weighed by the weights fitted on the
    other."""
    return [
        one
        for half in (0, 1)
        for one in answers(
            [row for row in rows if row.half == half], fitted([row for row in rows if row.half != half])
        )
    ]


def answers(rows: Sequence[Row], weights: Weights) -> list[Answered]:
    """For every question the likest case by these weights."""
    best: dict[tuple[str, str], Answered] = {}
    for row in rows:
        found = Answered(chance(weights, row.features), row)
        best[row.question] = max(best.get(row.question, found), found, key=lambda one: one.sure)
    return list(best.values())


def figures(answered: Sequence[Answered]) -> dict[str, str]:
    """ "right/wrong" answers, by when it was asked and the probability asked for."""
    found = {}
    for when in _ASKED:
        for needed in _ASKED_FOR:
            served = [one.row.same for one in answered if one.row.question[1] == when and one.sure >= needed]
            found[f"{when} {needed}"] = f"{sum(served)}/{len(served) - sum(served)}"
    return found


def enough(answered: Sequence[Answered], without: Mapping[str, int]) -> float:
    """The least probability from which on the answers are as right as they must be: few wrong ones among
    those to the cases as they are, and few among the questions of each kind that have no right answer, as
    they are, in far other words, or before their entry is stored; `without` says how many of each kind these
    are. 1 where nothing is enough."""
    needed, wrong, plain = 1.0, Counter[str](), Counter[bool]()
    for one in sorted(answered, key=lambda one: -one.sure):
        wrong[one.row.kind] += not one.row.same
        plain[one.row.same] += one.row.question[1] in ("first", "again")
        few = plain[False] <= _WRONG * plain.total()
        if few and all(wrong[kind] <= _WRONG * n for kind, n in without.items()):
            needed = one.sure
    return needed


def without_answer(cases: Sequence[Case]) -> Counter[str]:
    """How many questions of each kind have no right answer when they are asked."""
    found = Counter[str]()
    for case in cases:
        ending = "" if case.expect == "reject" else ", absent"
        for when in ("first", "reworded") if case.third else ("first",):
            found[_kind(case, when + ending)] += 1
        found[_kind(case, "again, absent")] += bool(case.third and case.fresh)
    return found


def shifted(weights: Weights, needed: float) -> Weights:
    """The weights, so that what came to `needed` comes to the threshold that is built in."""
    by = evidence.logit(BUILT_IN.likely) - evidence.logit(needed)
    return {**weights, "constant": round(weights["constant"] + by, 3)}
