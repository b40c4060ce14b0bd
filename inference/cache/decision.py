"""One row for each lookup: what came of it, and why in words."""

import structlog
from django.db import DatabaseError, connection

from inference import metrics
from inference.models import Generation, Outcome

from .lookup import Found

log = structlog.get_logger(__name__)


_INSERT = """
    INSERT INTO inference_decision
        (generation_id, layer, outcome, reason, milliseconds, wording_id, entry_id, created_at)
    VALUES (%s, %s, %s, %s, %s, %s, %s, STATEMENT_TIMESTAMP())
"""


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
    served = (found.wording, found.entry) if found else (None, None)
    try:
        with connection.cursor() as cursor:
            cursor.execute(_INSERT, [generation.pk, layer, outcome, reason, round(milliseconds, 3), *served])
    except DatabaseError as error:
        log.warning("decision_not_recorded", generation=str(generation.pk), error=str(error).strip())
        metrics.STAGE_ERRORS.labels(stage="decision").inc()
