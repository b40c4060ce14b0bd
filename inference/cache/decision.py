"""What comes of a lookup: a stored answer to serve, one worth proving, or none; and why, in words.

    hit    proved, or so alike that only a conflict could speak against it
    gray   served, and to be checked: alike, nothing differs, and the verifier consents
    near   not served; the fresh answer is compared with this candidate's
    miss   nothing like it is stored

Cheap before dear: an exact hit costs one query, a fuzzy one a second, and only then is anything embedded.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import structlog
from django.db import DatabaseError, connection

from inference import metrics
from inference.models import Generation, Outcome
from inference.understanding import keys
from inference.understanding.fingerprint import Comparison, compare, confusable
from inference.understanding.language import language, same_language

from . import consent, conversation, evidence, followup, lookup
from .agreement import open_to_proof
from .lookup import Candidate, Found
from .policy import Rules, Thresholds, rules
from .prints import compare_prints, same_moment
from .probe import Probe
from .spelling import mistyped, rearranged

log = structlog.get_logger(__name__)

SERVED = (Outcome.HIT, Outcome.GRAY)


@dataclass(frozen=True)
class Decided:
    """The outcome of one lookup. `found` is what is served; for a near, the likest of the `near` pairings,
    which the fresh answer may prove."""

    outcome: Outcome
    layer: str
    reason: str
    found: Found | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    verdict: str = ""
    policy: int | None = None
    near: tuple[Found, ...] = ()

    @property
    def served(self) -> Found | None:
        """The pairing whose answer is to be given; None when there is to be a fresh one."""
        return self.found if self.outcome in SERVED else None


@dataclass(frozen=True)
class Weighed:
    """A candidate with all that speaks for it and against it."""

    candidate: Candidate
    score: float
    comparison: Comparison
    objection: str = ""
    provable: bool = True
    """May the fresh answer prove that the pair asks the same?"""

    @property
    def nearness(self) -> float:
        """By whichever channel is likest: for what is proved before it is served, that is enough."""
        return max(self.candidate.likeness or 0.0, self.candidate.context_likeness or 0.0)

    @property
    def scores(self) -> dict[str, float]:
        known = {
            "score": self.score,
            "question": self.candidate.likeness,
            "context": self.candidate.context_likeness,
            "rejected": self.candidate.rejected_likeness,
        }
        return {name: round(value, 4) for name, value in known.items() if value is not None}


def decide(probe: Probe) -> Decided:
    """Ask the layers in turn. One that fails is skipped and counted; if all did, nothing was found."""
    failed: list[str] = []
    for name, layer in _LAYERS.items():
        try:
            decided = layer(probe)
        except DatabaseError as error:
            failed.append(name)
            log.warning("lookup_failed", layer=name, error=str(error).strip())
            metrics.STAGE_ERRORS.labels(stage=name).inc()
            continue
        if decided is not None:
            return decided
    reason = f"skipped: {', '.join(failed)}" if failed else "nothing like it was answered yet"
    return Decided(Outcome.MISS, "semantic", reason)


def _exact(probe: Probe) -> Decided | None:
    found = lookup.exact(probe.exact_key, probe.scope, probe.session)
    if found is None:
        return None
    reason = "the same question in the same context, spelled alike, has a proved answer"
    return Decided(Outcome.HIT, "exact", reason, found)


# --- fuzzy ------------------------------------------------------------------------------------------


def _fuzzy(probe: Probe) -> Decided | None:
    current = rules(probe.scope)
    for candidate in lookup.alike(probe):
        reason = _spelled_alike(probe, candidate)
        if not reason:
            continue
        weighed = weigh(probe, candidate, current)
        if not weighed.objection and (weighed.comparison.verdict == "agree" or reason.in_order):
            verdict = weighed.comparison.verdict
            return Decided(Outcome.HIT, "fuzzy", reason.words, candidate, weighed.scores, verdict)
    return None


@dataclass(frozen=True)
class _Alike:
    words: str
    in_order: bool


def _spelled_alike(probe: Probe, candidate: Candidate) -> _Alike | None:
    """In which way the candidate's question is the probe's in other letters; None if it is not."""
    if probe.template[1] != candidate.parameters or probe.dependent != candidate.dependent:
        return None
    asked, stored = keys.keywords(probe.question), keys.keywords(candidate.question)
    if asked and asked == stored:
        return _Alike("the same words, but for courtesies", True)
    if asked and sorted(asked) == sorted(stored):
        return _Alike("the same words in another order", False)
    if mistyped(probe.question, candidate.question):
        return _Alike("the same question but for a typo", True)
    return None


# --- semantic ---------------------------------------------------------------------------------------


def _semantic(probe: Probe) -> Decided | None:
    current = rules(probe.scope)
    weighed = [weigh(probe, candidate, current) for candidate in lookup.nearest(probe)]
    weighed.sort(key=lambda one: -one.score)
    if not weighed:
        return None
    allowed = [one for one in weighed if not one.objection]
    best = allowed[0] if allowed else weighed[0]
    limits = current.of(best.candidate.content_class)
    outcome, reason, scores = _judge(probe, best, limits)
    if outcome == Outcome.NEAR and (likely := _in_other_ways(probe, weighed, current)):
        best, outcome, reason, scores = likely.one, Outcome.GRAY, likely.reason, likely.scores
    near = [one.candidate for one in weighed if one.provable and one.nearness >= limits.near]
    if outcome == Outcome.NEAR and not near:
        outcome = Outcome.MISS
    return Decided(
        outcome=outcome,
        layer="semantic",
        reason=reason,
        found=best.candidate if outcome in SERVED else near[0] if outcome == Outcome.NEAR else None,
        scores=scores,
        verdict=best.comparison.verdict,
        policy=limits.policy,
        near=tuple(near) if outcome == Outcome.NEAR else (),
    )


def _judge(probe: Probe, best: Weighed, limits: Thresholds) -> tuple[Outcome, str, dict[str, float]]:
    """The rule of the two thresholds: outcome, reason, scores. Whatever is in doubt is near."""
    score, scores, high = best.score, best.scores, _high(probe, limits)
    if best.nearness < limits.near:
        reason = f"the nearest stored question is not near ({best.nearness:.3f} < {limits.near:.3f})"
        return Outcome.MISS, reason, scores
    if best.objection:
        return Outcome.NEAR, f"like a stored question ({score:.3f}), but {best.objection}", scores
    agrees = best.comparison.verdict == "agree"
    if score >= high and agrees:
        return Outcome.HIT, f"asks the same ({score:.3f} ≥ {high:.3f}), nothing differs", scores
    if doubt := _doubt(probe, best, limits):
        return Outcome.NEAR, f"alike ({score:.3f}), but {doubt}", scores
    said = consent.ask(probe, best.candidate)
    if said is not None:
        scores = {**scores, "verifier": round(said, 4)}
        if said < limits.consent:
            return Outcome.NEAR, f"alike ({score:.3f}), but the verifier gives it {said:.2f}", scores
    if score >= high:
        return Outcome.HIT, f"asks the same in other words ({score:.3f} ≥ {high:.3f}), no conflict", scores
    return Outcome.GRAY, f"likely the same ({score:.3f} ≥ {limits.low:.3f}), nothing differs", scores


@dataclass(frozen=True)
class _Likely:
    one: Weighed
    reason: str
    scores: dict[str, float]


def _in_other_ways(probe: Probe, weighed: list[Weighed], current: Rules) -> _Likely | None:
    """What is served though it is not alike enough, or does not agree part by part."""
    allowed = [one for one in weighed if not one.objection]
    return (
        _resumed(probe, allowed, current)
        or _followed(probe, allowed, current)
        or _likely(probe, allowed, [one.candidate for one in weighed], current)
    )


def _resumed(probe: Probe, allowed: list[Weighed], current: Rules) -> _Likely | None:
    """The candidate that was asked in the same words, after a conversation that went alike."""
    same = [
        one
        for one in allowed
        if (probe.dependent or one.candidate.dependent)
        and one.comparison.verdict != "agree"
        and compare(probe.prints.words, one.candidate.prints.words).verdict == "agree"
    ]
    for one in same[: evidence.CONSIDERED]:
        context = lookup.context_of(one.candidate.wording)
        needed = conversation.needed(probe.turns[:-1], context)
        alike = conversation.likeness(probe.turns[:-1], context) if needed <= 1 else 0.0
        if alike >= needed:
            reason = f"the same words after a conversation that went alike ({alike:.3f} ≥ {needed:.3f})"
            return _Likely(one, reason, {**one.scores, "conversation": round(alike, 4)})
    return None


def _followed(probe: Probe, allowed: list[Weighed], current: Rules) -> _Likely | None:
    """Of the candidates that were asked at this very moment of the conversation, the one that surely asks
    the same."""
    here = [one for one in allowed if same_moment(probe.prints, one.candidate.prints)][: followup.CONSIDERED]
    best: _Likely | None = None
    surest = 0.0
    for one in here:
        limits = current.of(one.candidate.content_class)
        sure, needed = followup.weigh(probe, one.candidate), max(limits.followed, limits.consent)
        if sure >= needed and sure > surest:
            surest = sure
            reason = f"asks the same at the same moment of a conversation ({sure:.3f} ≥ {needed:.3f})"
            best = _Likely(one, reason, {**one.scores, "evidence": round(sure, 4)})
    return best


def _likely(probe: Probe, allowed: list[Weighed], found: list[Candidate], current: Rules) -> _Likely | None:
    """Of the candidates that nothing speaks against, the one that all evidence taken together speaks for."""
    # What was asked at the same moment has the same context, answers and all: that says nothing there.
    elsewhere = [one for one in allowed if not same_moment(probe.prints, one.candidate.prints)]
    considered = elsewhere[: evidence.CONSIDERED]
    lang = evidence.lang_of(probe)
    cases = evidence.eligible(probe, [one.candidate for one in considered], found)
    limits = {at: current.of(case.candidate.content_class) for at, case in cases.items()}
    cases = {at: case for at, case in cases.items() if evidence.at_best(case, lang) >= limits[at].likely}
    asked = sorted({*cases, *(other for case in cases.values() for other in case.siblings)})
    said = consent.ask_all(probe, [considered[at].candidate for at in asked]) if cases else None
    if said is None:
        return None
    verified = dict(zip(asked, said, strict=True))
    sure = {}
    for at, case in cases.items():
        if verified[at] < limits[at].consent:
            continue  # whatever else speaks for it: no other evidence has seen both questions at once
        other = max((verified[sibling] for sibling in case.siblings), default=None)
        sure[at] = evidence.weigh(case, verified[at], other, lang)
    at = max(sure, key=sure.__getitem__, default=-1)
    if at < 0 or sure[at] < limits[at].likely:
        return None
    one, likely = considered[at], limits[at].likely
    reason = f"asks the same in other words, by all evidence ({sure[at]:.3f} ≥ {likely:.3f}), no conflict"
    more = {"verifier": round(verified[at], 4), "evidence": round(sure[at], 4)}
    return _Likely(one, reason, {**one.scores, **more})


# In the default embedder Chinese texts lie closer together: what is missing to 1 weighs that much more.
_CLOSER = {"zh": 4.0}


def _high(probe: Probe, limits: Thresholds) -> float:
    return 1 - (1 - limits.high) / _CLOSER.get(language(probe.question), 1.0)


def _doubt(probe: Probe, best: Weighed, limits: Thresholds) -> str:
    """Why a candidate that nothing speaks against may not be served all the same; empty if it may, as far as
    can be told without the verifier."""
    if best.score < limits.low:
        return f"below {limits.low:.3f}"
    if best.comparison.verdict == "agree":
        return ""
    if same_moment(probe.prints, best.candidate.prints):
        return "; ".join(best.comparison.reasons) or "much can be asked at this point of the conversation"
    if probe.dependent and best.candidate.dependent:
        return "it follows on something else that was asked or answered"
    if best.score < _high(probe, limits):
        return "; ".join(best.comparison.reasons) or "nothing shows that it asks the same"
    if rearranged(probe.resolved, best.candidate.resolved or best.candidate.question):
        return "the same words stand in another order"
    return ""


def weigh(probe: Probe, candidate: Candidate, current: Rules) -> Weighed:
    """What comparing the two says for the pairing, and what against it."""
    comparison = compare_prints(probe.prints, candidate.prints, candidate.context_likeness)
    weighed = Weighed(candidate, _score(probe, candidate), comparison)
    forbidden = _forbidden(probe, candidate, current)
    conflict = "; ".join(comparison.reasons) if comparison.verdict == "conflict" else ""
    provable = not forbidden and open_to_proof(comparison, probe.dependent or candidate.dependent)
    return replace(weighed, objection=forbidden or conflict, provable=provable)


def _score(probe: Probe, candidate: Candidate) -> float:
    """Likeness from 0 to 1. What says all itself is compared by question; if both lean on their context, by
    the resolved question and the context, whichever is less alike."""
    likeness = candidate.likeness or 0.0
    if probe.dependent and candidate.dependent and candidate.context_likeness is not None:
        likeness = min(likeness, candidate.context_likeness)
    return min(1.0, max(0.0, likeness))


def _forbidden(probe: Probe, candidate: Candidate, current: Rules) -> str:
    """What forbids this pairing whatever is asked or answered; empty if nothing does."""
    if not same_language(probe.question, candidate.answer):
        return "its answer is in another language"
    if pair := confusable(probe.resolved, candidate.resolved or candidate.question, current.confusable):
        return str(pair)
    rejected, likeness = candidate.rejected_likeness, candidate.likeness
    if rejected is not None and likeness is not None and rejected >= likeness:
        return "it is nearer to a wording that was rejected for this answer"
    return ""


_LAYERS: dict[str, Callable[[Probe], Decided | None]] = {
    "exact": _exact,
    "fuzzy": _fuzzy,
    "semantic": _semantic,
}


# --- writing it down --------------------------------------------------------------------------------

_INSERT = """
    INSERT INTO inference_decision
        (generation_id, layer, outcome, reason, milliseconds, wording_id, entry_id, scores, verdict,
         policy_id, near, created_at)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s::uuid[], STATEMENT_TIMESTAMP())
"""


def record(generation: Generation, decided: Decided, milliseconds: float) -> None:
    """Write the decision down. The record never stands in the way of the answer."""
    metrics.LOOKUPS.labels(layer=decided.layer, outcome=decided.outcome).inc()
    pairing = (decided.found.wording, decided.found.entry) if decided.found else (None, None)
    values = (decided.layer, decided.outcome, decided.reason, round(milliseconds, 3), *pairing)
    near = [found.wording for found in decided.near]
    more = (json.dumps(dict(decided.scores)), decided.verdict, decided.policy, near)
    try:
        with connection.cursor() as cursor:
            cursor.execute(_INSERT, [generation.pk, *values, *more])
    except DatabaseError as error:
        log.warning("decision_not_recorded", generation=str(generation.pk), error=str(error).strip())
        metrics.STAGE_ERRORS.labels(stage="decision").inc()
