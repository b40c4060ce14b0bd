"""What each part of a decision adds: the same cases, decided by ever more of it.

    cosine       the likest stored question, each side read without its conversation
    context      the likest by both channels, what a question leans on written in
    fingerprint  the likest that nothing conflicts with
    verifier     if the verifier consents, too
    live         the decision as it is: all of this, the exact and fuzzy layers, the evidence, and the
                 thresholds of each class

All but the last serve from one likeness on, the lower threshold that is built in.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from inference.cache import consent, decision, lookup
from inference.cache.decision import Decided, Weighed
from inference.cache.policy import BUILT_IN, rules
from inference.cache.probe import Probe
from inference.models import Outcome

from .cache import Progress, evaluate_by
from .cases import Case

Step = Callable[[Probe], Decided]


def ablate(cases: Sequence[Case], progress: Progress = lambda *_: None) -> dict[str, Any]:
    """For each step a report as `evaluate` gives it."""
    alone = [_alone(case) for case in cases]
    return evaluate_by({"cosine": _likest}, alone, progress) | evaluate_by(_STEPS, cases, progress)


def _alone(case: Case) -> Case:
    """The case without what was said before the last questions."""
    third = case.third[-1:]
    return replace(case, seed=case.seed[-2:], probe=case.probe[-1:], third=third)


def _likest(probe: Probe) -> Decided:
    return _serve(_weighed(probe)[:1])


def _without_conflict(probe: Probe) -> Decided:
    return _serve([one for one in _weighed(probe) if not one.objection][:1])


def _consented(probe: Probe) -> Decided:
    best = [one for one in _weighed(probe) if not one.objection][:1]
    return _serve([one for one in best if (consent.ask(probe, one.candidate) or 0) >= BUILT_IN.consent])


def _weighed(probe: Probe) -> list[Weighed]:
    """The candidates from the threshold on, likest first."""
    current = rules(probe.scope)
    weighed = [decision.weigh(probe, candidate, current) for candidate in lookup.nearest(probe)]
    return sorted((one for one in weighed if one.score >= BUILT_IN.low), key=lambda one: -one.score)


def _serve(found: Sequence[Weighed]) -> Decided:
    if not found:
        return Decided(Outcome.MISS, "semantic", "nothing is left")
    return Decided(Outcome.HIT, "semantic", "likest of what is left", found[0].candidate, found[0].scores)


_STEPS: dict[str, Step] = {
    "context": _likest,
    "fingerprint": _without_conflict,
    "verifier": _consented,
    "live": decision.decide,
}
