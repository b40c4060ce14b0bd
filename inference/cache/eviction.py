"""What goes when room is needed: by meaning first, then by worth.

An answer that somebody corrected, or that a closed conversation left behind, can serve nobody: it goes first.
Then what has expired. Then what saves least for the room it takes; only between equals counts which was used
last. A person's correction outranks all of this: it freezes at once, and here only the row is freed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.db.models.functions import Now
from psycopg import errors

from inference import metrics
from inference.models import Entry, State

# Roughly what a wording's row and its places in the indexes take besides its texts: two vectors in half
# precision, twice more for their places in the graphs, keys and fingerprint.
_WORDING_BYTES = 5_000
_BATCH = 500
_SAMPLE = 5_000
_AT_MOST = 50_000


@dataclass(frozen=True)
class Freed:
    """How many entries went, and why."""

    over: int = 0
    expired: int = 0
    least_worth: int = 0

    @property
    def entries(self) -> int:
        return self.over + self.expired + self.least_worth


Progress = Callable[[int], object]
"""Called with the number of entries that a batch was."""


def _unseen(deleted: int) -> None:
    """Nobody looks."""


# An entry's room: its texts, its wordings'.
_BYTES = f"""
    (SELECT length(e.answer)
        + coalesce(sum({_WORDING_BYTES} + length(w.question) + length(w.context::text)), 0)
     FROM inference_wording w WHERE w.entry_id = e.id)
"""

# Seconds an entry is expected to save in its coming day, per byte: hits per day of age (one is granted to
# what is too young to have had any), times what a hit saves. A token counts as a 39th of a second, the pace
# of the default engine.
_WORTH = f"""
    (e.hits + 1) / (1 + extract(epoch FROM now() - e.created_at) / 86400)
    * (e.seconds_to_compute + e.tokens_to_compute / 39.0) / greatest(1, {_BYTES})
"""

# A rejected entry is a tombstone, which keeps the same from being admitted again as long as it would live.
# What somebody took back waits for an hour, in case that was misread and they undo it.
_OVER = """
    e.state = 'frozen' AND NOT EXISTS (
        SELECT 1 FROM inference_invalidation i WHERE i.session_id = e.session_id
        AND i.undone_at IS NULL AND i.created_at > now() - interval '1 hour' AND i.frozen ? e.id::text
    )
"""


def evict(progress: Progress = _unseen) -> Freed:
    """Free what is over and what is dead, then bring every scope under its quota and the whole under the
    caps. In batches, each a transaction of its own, so that nobody waits long for a lock; `progress` hears of
    those of what is over or dead."""
    over = _in_batches(f"SELECT e.id FROM inference_entry e WHERE {_OVER}", progress)
    expired = _in_batches("SELECT e.id FROM inference_entry e WHERE e.expires_at < now()", progress)
    least = sum(_shrink(scope, rows) for scope, rows in _scopes_over_quota())
    least += _shrink(None, _rows_over_caps())
    metrics.EVICTED.labels(cause="over").inc(over)
    metrics.EVICTED.labels(cause="expired").inc(expired)
    metrics.EVICTED.labels(cause="worth").inc(least)
    return Freed(over, expired, least)


def _in_batches(query: str, progress: Progress) -> int:
    """Delete the entries that `query` selects; how many there were."""
    gone = 0
    while deleted := _delete(f"IN ({query} LIMIT {_BATCH})", []):
        gone += deleted
        progress(deleted)
    return gone


def _delete(which: str, parameters: list[Any]) -> int:
    """Delete entries whose id is `which`. One that somebody is just serving is left for the next time."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM inference_entry WHERE id {which} FOR UPDATE SKIP LOCKED", parameters)
        ids = [row[0] for row in cursor.fetchall()]
        Entry.objects.filter(pk__in=ids).delete()
    return len(ids)


def delete(ids: list[UUID]) -> int:
    """Delete these entries, in one transaction; returns how many that was. Left out is what somebody is just
    serving, and all of them where they get into each other's way."""
    try:
        return _delete("= ANY(%s)", [ids])
    except OperationalError as error:
        if not isinstance(error.__cause__, errors.DeadlockDetected):
            raise
        return 0


def overdue() -> Freed:
    """What `evict` would free at least: what is over, and what has expired."""
    dead = Entry.objects.filter(state=State.FROZEN)
    expired = Entry.objects.filter(expires_at__lt=Now()).exclude(state=State.FROZEN)
    return Freed(dead.count(), expired.count())


def _scopes_over_quota() -> list[tuple[int, int]]:
    """Scopes that hold more entries than one may, and by how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT scope_id, count(*) - %s FROM inference_entry GROUP BY scope_id HAVING count(*) > %s",
            [settings.CACHE_SCOPE_ROWS, settings.CACHE_SCOPE_ROWS],
        )
        return [(scope, rows) for scope, rows in cursor.fetchall()]


def _rows_over_caps() -> int:
    """How many entries must go for the tables to fit their caps of rows and bytes. What an entry takes is
    estimated from a sample of some thousands: weighing a million takes longer than it is worth."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM inference_entry")
        rows = int(cursor.fetchone()[0])
        share = min(100.0, 100 * _SAMPLE / max(1, rows))
        cursor.execute(f"SELECT avg({_BYTES}) FROM inference_entry e TABLESAMPLE SYSTEM ({share})")
        each = float(cursor.fetchone()[0] or 1)
    return max(0, rows - min(settings.CACHE_ROWS, int(settings.CACHE_MIB * 2**20 / each)))


def _shrink(scope: int | None, rows: int) -> int:
    """Delete the `rows` entries that are worth least, of one scope or of all; at most so many at a time."""
    if rows <= 0:
        return 0
    where = "WHERE e.scope_id = %s" if scope is not None else ""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
                SELECT e.id FROM inference_entry e {where}
                ORDER BY {_WORTH}, e.last_hit_at NULLS FIRST, e.created_at LIMIT {min(rows, _AT_MOST)}
            """,
            [scope] if scope is not None else [],
        )
        ids = [row[0] for row in cursor.fetchall()]
    batches = (ids[at : at + _BATCH] for at in range(0, len(ids), _BATCH))
    return sum(_delete("= ANY(%s)", [batch]) for batch in batches)
