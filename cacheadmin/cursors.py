"""Where a page of a long list begins: behind a row, by its time and its id, as text for an address."""

from datetime import datetime
from uuid import UUID

from django.utils import timezone
from django.utils.dateparse import parse_datetime


def behind(at: datetime, pk: UUID) -> str:
    return f"{at.isoformat()}_{pk}"


def place(cursor: str) -> tuple[datetime, UUID] | None:
    """None for the first page, and for a cursor that is none."""
    text, _sep, pk = cursor.partition("_")
    try:
        at = parse_datetime(text)
        return (at, UUID(pk)) if at and timezone.is_aware(at) else None
    except ValueError:
        return None
