"""What has happened since one last looked: told to every open page, so that it renews what it shows.

A few looks at the ends of indexes, at most once a second for each process, however many pages are open.
"""

import threading
import time
from dataclasses import dataclass, fields
from typing import Any

from django.db.models import Max, Sum

from inference.models import Decision, Observation

from . import review
from .models import AuditRecord, ReviewClaim, Status

_FRESH_SECONDS = 1.0
COUNTED = 99  # in the bar there is room for two digits


@dataclass(frozen=True)
class Pulse:
    """Each part changes when something of its kind has happened; what it holds means nothing else."""

    lookups: Any
    queue: Any
    audit: Any
    flush: Any
    suspects: int

    def beside(self, before: "Pulse | None") -> list[str]:
        """The parts that have changed since `before`."""
        names = [field.name for field in fields(self) if field.name != "suspects"]
        return [name for name in names if before and getattr(self, name) != getattr(before, name)]


_lock = threading.Lock()
_last: tuple[float, Pulse] | None = None


def now() -> Pulse:
    """At most a second old."""
    global _last
    with _lock:
        if _last is None or time.monotonic() - _last[0] > _FRESH_SECONDS:
            _last = (time.monotonic(), _read())
        return _last[1]


def _read() -> Pulse:
    lookups = Decision.objects.aggregate(last=Max("pk"))["last"]
    observed = Observation.objects.aggregate(last=Max("pk"))["last"]
    claims = sorted(ReviewClaim.objects.values_list("wording", "operator"))
    # After what is seen to have happened: told of that, a page shows the number that it led to.
    suspects = review.queue_length(COUNTED + 1)
    open_flushes = AuditRecord.objects.exclude(status=Status.DONE)
    last = AuditRecord.objects.aggregate(last=Max("pk"))["last"]
    return Pulse(
        lookups=lookups,
        queue=(suspects, observed, claims),
        audit=last,
        # With the last record: before one begins it is as after it is done, but for that.
        flush=(last, open_flushes.count(), open_flushes.aggregate(deleted=Sum("entries"))["deleted"]),
        suspects=suspects,
    )
