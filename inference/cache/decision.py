"""One row for each lookup: what came of it, and why in words."""

import structlog
from django.db import DatabaseError

from inference import metrics
from inference.models import Decision, Generation, Outcome

from .lookup import Found

log = structlog.get_logger(__name__)


def record(
    generation: Generation,
    layer: str,
    outcome: Outcome,
    reason: str,
    milliseconds: float,
    found: Found | None = None,
) -> None:
    """Write the decision down. The record never stands in the way of the answer."""
    metrics.LOOKUPS.labels(layer=layer, outcome=outcome).inc()
    try:
        Decision.objects.create(
            generation=generation,
            layer=layer,
            outcome=outcome,
            reason=reason,
            milliseconds=round(milliseconds, 3),
            wording_id=found.wording if found else None,
            entry_id=found.entry if found else None,
        )
    except DatabaseError as error:
        log.warning("decision_not_recorded", generation=str(generation.pk), error=str(error).strip())
        metrics.STAGE_ERRORS.labels(stage="decision").inc()
