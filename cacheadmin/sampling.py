"""What waits and is held, noted every minute: of that nothing else keeps a record."""

from datetime import timedelta

from django.utils import timezone

from . import health, review
from .models import LoadSample

KEPT = timedelta(days=45)
_MANY = 1_000


def sample() -> LoadSample:
    """Note how things are now, and forget what is too old to be shown."""
    now = timezone.now()
    LoadSample.objects.filter(at__lt=now - KEPT).delete()
    held, limit = held_bytes()
    return LoadSample.objects.create(
        at=now,
        waiting=health.waiting().answers,
        suspects=review.queue_length(_MANY),
        kv_bytes=held,
        kv_limit=limit,
    )


def held_bytes() -> tuple[int | None, int | None]:
    """Keys and values that all engines hold, and what they may hold; None where none of them says."""
    totals = [told.figures["totals"] for told in health.engines() if told.figures]
    held = [one["held_bytes"] for one in totals if "held_bytes" in one]
    limits = [one["limit_bytes"] for one in totals if "limit_bytes" in one]
    return sum(held) if held else None, sum(limits) if limits else None
