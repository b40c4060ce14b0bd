"""The books of hits: what was served, counted and explained, a few times a second for all hits together.

Each hit by itself costs Postgres three statements and two commits, and fifty of one moment wait for one row.
A worker that keeps books (`keep`) lays hits down here and writes them in the background; any other process
writes each at once. Should a worker die, the books of its last quarter of a second are lost, and no answer.
"""

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog
from django.db import DatabaseError, IntegrityError, InterfaceError, OperationalError, connection, transaction

from inference import metrics
from inference.models import Generation

from . import decision, lifecycle
from .decision import Decided
from .lifecycle import Served
from .lookup import Found

log = structlog.get_logger(__name__)

EVERY_SECONDS = 0.25
# In one transaction.
_AT_ONCE = 500
# So many are held while the database is away; older ones go uncounted then.
_MOST = 10_000


@dataclass(frozen=True)
class _Hit:
    served: Served
    decision: decision.Row


_laid_down: deque[_Hit] = deque(maxlen=_MOST)
_kept = threading.Event()
_writing = threading.Lock()


def enter(generation: Generation, decided: Decided, found: Found, ttl: timedelta | None) -> None:
    """Note that `generation` was served `found`, by what was decided. What can't be noted is counted."""
    milliseconds = generation.lookup_ms or 0.0
    metrics.looked_up(decided.layer, decided.outcome, milliseconds)
    served = Served.now(found.wording, found.entry, ttl)
    hit = _Hit(served, decision.row(generation, decided, milliseconds))
    _laid_down.append(hit)
    if not _kept.is_set():
        flush()


def keep(until: threading.Event) -> None:
    """Write down what is entered in this process, until `until` is set and everything is written."""
    _kept.set()
    try:
        while not until.wait(EVERY_SECONDS):
            flush()
    finally:
        _kept.clear()
        flush()
        connection.close()


def flush() -> int:
    """Write down what was entered so far; returns how many hits. While the database is away they stay."""
    written = 0
    with _writing:
        while _laid_down:
            hits = [_laid_down.popleft() for _ in range(min(len(_laid_down), _AT_ONCE))]
            left = _write(hits)
            written += len(hits) - len(left)
            if left:
                _laid_down.extendleft(reversed(left))
                break
    return written


def _write(hits: Sequence[_Hit]) -> Sequence[_Hit]:
    """Returns those that are to be written later: the database is away, or was busy with the same rows."""
    try:
        with transaction.atomic():
            lifecycle.count([hit.served for hit in hits])
            decision.write([hit.decision for hit in hits])
    except IntegrityError as error:
        if len(hits) > 1:  # what one of them is about was deleted meanwhile: that concerns no other
            return [left for hit in hits for left in _write([hit])]
        _not_counted(error)
    except (OperationalError, InterfaceError) as error:
        log.warning("books_wait", hits=len(hits), error=str(error).strip())
        if not connection.in_atomic_block:
            connection.close()
        return hits
    except DatabaseError as error:
        _not_counted(error)
    return ()


def _not_counted(error: Exception) -> None:
    log.warning("hits_not_counted", error=str(error).strip())
    metrics.STAGE_ERRORS.labels(stage="books").inc()
