"""A changed source as somebody's action, written down with what it did."""

from django.db import transaction

from inference import sources
from inference.sources import Invalidated

from .models import Action, AuditRecord


@transaction.atomic
def invalidate(key: str, version: str, actor: str, reason: str = "") -> Invalidated:
    """See `inference.sources.invalidate`. Raises UnknownSource, ValueError."""
    done = sources.invalidate(key, version)
    AuditRecord.objects.create(
        action=Action.INVALIDATE,
        actor=actor,
        reason=reason,
        selection={"source": key, "version": version},
        entries=done.entries,
    )
    return done
