"""What the verifier says of a pair, where there is one. It vetoes and orders; alone it never accepts."""

from collections.abc import Sequence

import structlog

from inference import metrics
from inference.models import Wording

from . import verifier
from .lookup import Candidate
from .probe import Probe

log = structlog.get_logger(__name__)


def ask(probe: Probe, candidate: Candidate) -> float | None:
    """How surely both ask the same, from 0 to 1; None when nobody can say."""
    said = ask_all(probe, [candidate])
    return said[0] if said else None


def ask_all(probe: Probe, candidates: Sequence[Candidate]) -> list[float] | None:
    """The same of several, at once. Nobody is asked twice of the same pair: a lookup may be weighed by
    several policies."""
    new = [one for one in candidates if one.wording not in probe.said]
    try:
        if not verifier.available():
            return None
        if new:
            said = verifier.score([pair(probe, one) for one in new])
            probe.said.update((one.wording, float(p)) for one, p in zip(new, said, strict=True))
        return [probe.said[one.wording] for one in candidates]
    except Exception as error:
        log.warning("verifier_failed", error=str(error))
        metrics.STAGE_ERRORS.labels(stage="verifier").inc()
        return None


def pair(probe: Probe, candidate: Candidate | Wording) -> tuple[str, str]:
    """Both questions, written out. What two dependent ones lean on was compared already, and how they were
    written out may differ all the same: of them, what was asked."""
    if probe.dependent and candidate.dependent:
        return probe.question, candidate.question
    return probe.resolved, candidate.resolved or candidate.question
