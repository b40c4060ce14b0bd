"""What comes of a lookup: a stored answer to serve, one worth proving, or none; and why, in words.

    hit    proved, or so alike that only a conflict could speak against it
    gray   served, and to be checked: alike, nothing differs, and the verifier consents
    near   not served; the fresh answer is compared with this candidate's
    miss   nothing like it is stored

Cheap before dear: an exact hit costs one query, a fuzzy one a second, and only then is anything embedded.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import structlog
from django.db import DatabaseError, connection
from django.utils import timezone

from inference import metrics
from inference.models import Decision, Generation, Outcome
from inference.understanding import keys
from inference.understanding.fingerprint import Comparison, compare, confusable
from inference.understanding.language import language, same_language
from inference.understanding.normalise import normalise

from . import consent, conversation, evidence, followup, lookup, shadow
from .agreement import open_to_proof
from .lookup import Candidate, Found
from .measured import OUTCOMES, Measured, Step
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
    measured: Measured | None = None
    under: "Callable[[Rules], Decided] | None" = field(default=None, compare=False, repr=False)
    """What other rules would have made of the same candidates, where rules had a part in it."""

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
    forbidden: str = ""
    """What rules the pair out, whatever is asked or answered."""
    provable: bool = True
    """May the fresh answer prove that the pair asks the same?"""

    @property
    def objection(self) -> str:
        """What speaks against serving it for its likeness."""
        conflict = self.comparison.verdict == "conflict"
        return self.forbidden or ("; ".join(self.comparison.reasons) if conflict else "")

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
    if found is not None:
        reason = "the same question in the same context, spelled alike, has a proved answer"
        return Decided(Outcome.HIT, "exact", reason, found)
    if not probe.alone_key:
        return None
    found = lookup.exact(probe.alone_key, probe.scope, probe.session, first=True)
    if found is None:
        return None
    reason = "the same words were asked first thing, and nothing said here seems to change what they mean"
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
    weighed = _weighed(probe, lookup.nearest(probe), current)
    return _settle(probe, weighed, current) if weighed else None


def _weighed(probe: Probe, candidates: list[Candidate], current: Rules) -> list[Weighed]:
    """Likest first."""
    return sorted((weigh(probe, one, current) for one in candidates), key=lambda one: -one.score)


def _settle(probe: Probe, weighed: list[Weighed], current: Rules) -> Decided:
    """What these rules make of the candidates, of which there is at least one; likest first."""
    allowed = [one for one in weighed if not one.objection]
    best = allowed[0] if allowed else weighed[0]
    limits = current.of(best.candidate.content_class)
    outcome, reason, scores, measured = _judge(probe, best, limits)
    provable = max((one.nearness for one in weighed if one.provable), default=0.0)
    measured = replace(measured, provable=provable, complete=limits.likely)
    if outcome == Outcome.NEAR:
        served = (
            _resumed(probe, weighed)
            or _followed(probe, allowed, current)
            or _spelled_out(probe, allowed, current)
        )
        measured = replace(measured, otherwise=served is not None)
        if served is None and (surest := _surest(probe, weighed, current)):
            served, by_evidence = surest.served, surest.one.candidate.entry
            measured = replace(measured, evidence=surest.sure, likeliest=by_evidence)
        if served is not None:
            best, outcome, reason, scores = served.one, Outcome.GRAY, served.reason, served.scores
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
        measured=measured,
        under=lambda others: _settle(probe, weighed, others),
    )


def judged_by_thresholds(probe: Probe) -> Measured | None:
    """What they would decide on, the verifier asked and the evidence weighed in any case; None where an
    earlier layer answers, or nothing is found."""
    if _exact(probe) or _fuzzy(probe) or not (candidates := lookup.nearest(probe)):
        return None
    current = rules(probe.scope)
    weighed = _weighed(probe, candidates, current)
    limits = {one.candidate.content_class: current.of(one.candidate.content_class) for one in weighed}
    asking = {name: replace(each, likely=0.0) for name, each in limits.items()}
    decided = _settle(probe, weighed, Rules(asking, current.confusable))
    assert decided.measured is not None
    best = next(one for one in candidates if one.wording == decided.measured.wording)
    return replace(decided.measured, verifier=consent.ask(probe, best))


def measure(probe: Probe, best: Weighed) -> Measured:
    """What the thresholds are compared with; the verifier is not asked for it."""
    return Measured(
        wording=best.candidate.wording,
        entry=best.candidate.entry,
        content_class=best.candidate.content_class,
        score=best.score,
        strict=_strict(probe, best.score),
        nearness=best.nearness,
        objected=bool(best.objection),
        agrees=best.comparison.verdict == "agree",
        doubted=bool(_doubt(probe, best)),
    )


def _judge(
    probe: Probe, best: Weighed, limits: Thresholds
) -> tuple[Outcome, str, dict[str, float], Measured]:
    """The rule of the two thresholds: outcome, reason, scores, and what was compared. Whatever is in doubt is
    near."""
    said: list[float | None] = []

    def ask() -> float | None:
        said.append(consent.ask(probe, best.candidate))
        return said[0]

    measured = measure(probe, best)
    step = measured.step(limits, ask)
    verifier = said[0] if said else None
    scores = best.scores if verifier is None else {**best.scores, "verifier": round(verifier, 4)}
    reason = _reason(probe, best, limits, step, verifier)
    return OUTCOMES[step], reason, scores, replace(measured, verifier=verifier)


def _reason(probe: Probe, best: Weighed, limits: Thresholds, step: Step, verifier: float | None) -> str:
    score, high = best.score, _high(probe, limits)
    if step == Step.FAR:
        return f"the nearest stored question is not near ({best.nearness:.3f} < {limits.near:.3f})"
    if step == Step.OBJECTED:
        return f"like a stored question ({score:.3f}), but {best.objection}"
    if step == Step.SAME:
        return f"asks the same ({score:.3f} ≥ {high:.3f}), nothing differs"
    if step == Step.BELOW:
        return f"alike ({score:.3f}), but below {limits.low:.3f}"
    if step == Step.DOUBTED:
        unlike = "; ".join(best.comparison.reasons) or "nothing shows that it asks the same"
        return f"alike ({score:.3f}), but {_doubt(probe, best) or unlike}"
    if step == Step.UNCONVINCED:
        return f"alike ({score:.3f}), but the verifier gives it {verifier:.2f}"
    if step == Step.IN_OTHER_WORDS:
        return f"asks the same in other words ({score:.3f} ≥ {high:.3f}), no conflict"
    return f"likely the same ({score:.3f} ≥ {limits.low:.3f}), nothing differs"


@dataclass(frozen=True)
class _Likely:
    one: Weighed
    reason: str
    scores: dict[str, float]


def _resumed(probe: Probe, weighed: list[Weighed]) -> _Likely | None:
    """The candidate that was asked in the same words, after a conversation that went alike. Where the
    answers say all that it is about, it does not speak against it that it was opened in other words."""
    same = [
        one
        for one in weighed
        if (probe.dependent or one.candidate.dependent)
        and one.comparison.verdict != "agree"
        and (not one.objection or (not one.forbidden and conversation.of_wording(one.comparison.reasons)))
        and compare(probe.prints.words, one.candidate.prints.words).verdict == "agree"
    ]
    for one in same[: evidence.CONSIDERED]:
        context = lookup.context_of(one.candidate.wording)
        if one.objection and not conversation.say_all(probe.turns[:-1], context):
            continue
        needed = conversation.needed(probe.turns[:-1], context)
        alike = conversation.likeness(probe.turns[:-1], context, needed) if needed <= 1 else 0.0
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


# How a question is worded that was written out from its history was nobody's choice, so nearly the same words
# say more there than of two that were asked. Of 347 English pairs of a follow-up and a question of its own,
# to which nothing was fitted, 6 that ask the same lie above both and none that doesn't: the next at .947 and
# .86. Not in Chinese, where verbs of one character go unnoticed: to walk and to feed a dog, .956 and .87.
_SPELLED_OUT, _SPELLED_OUT_VERIFIED = {"en": 0.96}, 0.85


def _spelled_out(probe: Probe, allowed: list[Weighed], current: Rules) -> _Likely | None:
    """The candidate that asks by itself, in nearly the same words, what the question is when it is written
    out."""
    alike = _SPELLED_OUT.get(language(probe.question))
    if not probe.dependent or alike is None:
        return None
    for one in allowed:
        if one.candidate.dependent or one.score < alike or _doubt(probe, one):
            continue
        said = consent.ask(probe, one.candidate)
        needed = max(_SPELLED_OUT_VERIFIED, current.of(one.candidate.content_class).consent)
        if said is not None and said >= needed:
            reason = f"written out it asks the same ({one.score:.3f}), so says the verifier ({said:.2f})"
            return _Likely(one, reason, {**one.scores, "verifier": round(said, 4)})
    return None


@dataclass(frozen=True)
class _Surest:
    """The candidate that all evidence taken together speaks for most; `served` where that is enough."""

    one: Weighed
    sure: float
    verified: float
    needed: float

    @property
    def served(self) -> _Likely | None:
        if self.sure < self.needed:
            return None
        weighed = f"({self.sure:.3f} ≥ {self.needed:.3f})"
        reason = f"asks the same in other words, by all evidence {weighed}, no conflict"
        more = {"verifier": round(self.verified, 4), "evidence": round(self.sure, 4)}
        return _Likely(self.one, reason, {**self.one.scores, **more})


# What sets two questions apart, and with them all that asks the same as one of them.
_APART = frozenset({"wording", "opposite", "direction", "roles", "polarity"})


def unopposed(weighed: Sequence[Weighed]) -> list[Weighed]:
    """Those that nothing speaks against, nor against another wording of their entry: who mends a car's tyre
    does not ask how a bicycle's is mended, in whatever words."""
    opposed = {
        one.candidate.entry
        for one in weighed
        if one.comparison.verdict == "conflict"
        and any(reason.partition(":")[0] in _APART for reason in one.comparison.reasons)
    }
    return [one for one in weighed if not one.objection and one.candidate.entry not in opposed]


def _surest(probe: Probe, weighed: list[Weighed], current: Rules) -> _Surest | None:
    """Of the candidates that nothing speaks against and that could be served by evidence; None without
    any."""
    found, allowed = [one.candidate for one in weighed], unopposed(weighed)
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
    return None if at < 0 else _Surest(considered[at], sure[at], verified[at], limits[at].likely)


# In the default embedder Chinese texts lie closer together: what is missing to 1 weighs that much more.
_CLOSER = {"zh": 4.0}


def _high(probe: Probe, limits: Thresholds) -> float:
    return 1 - (1 - limits.high) / _CLOSER.get(language(probe.question), 1.0)


def _strict(probe: Probe, score: float) -> float:
    """The score as `high` sees it: `score >= _high(probe, limits)` says the same as `strict >=
    limits.high`."""
    closer = _CLOSER.get(language(probe.question), 1.0)
    return score if closer == 1 else 1 - (1 - score) * closer


def _doubt(probe: Probe, best: Weighed) -> str:
    """Why a candidate that does not agree part by part may not be served for its score, however high that is;
    empty if it may."""
    if best.comparison.verdict == "agree":
        return ""
    if same_moment(probe.prints, best.candidate.prints):
        return "; ".join(best.comparison.reasons) or "much can be asked at this point of the conversation"
    if probe.dependent and best.candidate.dependent:
        return "it follows on something else that was asked or answered"
    if rearranged(probe.resolved, best.candidate.resolved or best.candidate.question):
        return "the same words stand in another order"
    return ""


def weigh(probe: Probe, candidate: Candidate, current: Rules) -> Weighed:
    """What comparing the two says for the pairing, and what against it."""
    comparison = compare_prints(probe.prints, candidate.prints, candidate.context_likeness)
    forbidden = _forbidden(probe, candidate, current)
    provable = not forbidden and open_to_proof(comparison, probe.dependent or candidate.dependent)
    return Weighed(candidate, _score(probe, candidate), comparison, forbidden, provable)


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
    if _just_read(probe, candidate):
        return "it follows on this very answer"
    rejected, likeness = candidate.rejected_likeness, candidate.likeness
    if rejected is not None and likeness is not None and rejected >= likeness:
        return "it is nearer to a wording that was rejected for this answer"
    return ""


def _just_read(probe: Probe, candidate: Candidate) -> bool:
    """Does the question surely lean on this answer, which was given to another one? Who follows on an answer
    asks for something that it does not say, whatever a weak model makes of it."""
    if not probe.dependent or probe.alone or probe.prints.told == candidate.prints.told:
        return False
    return normalise(candidate.answer) in map(normalise, probe.told)


_LAYERS: dict[str, Callable[[Probe], Decided | None]] = {
    "exact": _exact,
    "fuzzy": _fuzzy,
    "semantic": _semantic,
}


# --- writing it down --------------------------------------------------------------------------------

_COLUMNS = (
    *("generation_id", "layer", "outcome", "reason", "milliseconds", "wording_id", "entry_id", "scores"),
    *("verdict", "policy_id", "near", "measured", "shadow_id", "shadowed", "created_at"),
)
_INSERT = f"""
    INSERT INTO inference_decision ({", ".join(_COLUMNS)})
    VALUES ({", ".join(["%s"] * 10)}, %s::uuid[], %s, %s, %s, %s)
"""


Row = list[Any]


def row(generation: Generation, decided: Decided, milliseconds: float) -> Row:
    """What is written down of a decision that was made now."""
    pairing = (decided.found.wording, decided.found.entry) if decided.found else (None, None)
    values = (decided.layer, decided.outcome, decided.reason, round(milliseconds, 3), *pairing)
    near = [found.wording for found in decided.near]
    more = (json.dumps(dict(decided.scores)), decided.verdict, decided.policy, near)
    tried = shadow.try_on(generation.scope, decided)
    compared = tried.measured or decided.measured
    measured = json.dumps(compared.to_json()) if compared else None
    last = (measured, tried.policy, json.dumps(tried.did) if tried.did else None)
    return [generation.pk, *values, *more, *last, timezone.now()]


def write(rows: Sequence[Row]) -> None:
    """Write decisions down. Raises DatabaseError, also where what one of them is about has been deleted."""
    with connection.cursor() as cursor:
        cursor.executemany(_INSERT, rows)


def record(generation: Generation, decided: Decided, milliseconds: float) -> None:
    """Write the decision down. The record never stands in the way of the answer."""
    metrics.looked_up(decided.layer, decided.outcome, milliseconds)
    try:
        write([row(generation, decided, milliseconds)])
    except DatabaseError as error:
        log.warning("decision_not_recorded", generation=str(generation.pk), error=str(error).strip())
        metrics.STAGE_ERRORS.labels(stage="decision").inc()


def overrule(generation: Generation, found: Found, reason: str) -> None:
    """What was only near when it was looked up is served after all, as doubtful. Raises DatabaseError."""
    near = Decision.objects.filter(generation=generation, outcome=Outcome.NEAR).order_by("-id").first()
    if near is not None:
        near.outcome, near.reason = Outcome.GRAY, f"{near.reason}; {reason}"
        near.wording_id, near.entry_id = found.wording, found.entry
        near.save(update_fields=["outcome", "reason", "wording", "entry"])
