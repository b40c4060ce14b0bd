"""Is everything there that an answer needs, and how much waits and is held? Each part is asked on its own, so
that one that is down does not hide the others."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import redis
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.utils import timezone
from django.utils.translation import gettext as _

from inference import live_ledger, workers
from inference.cache import gray
from inference.embedding import embed
from inference.models import OPEN, Decision, Entry, Generation, Wording
from inference.redis import client

from . import figures


@dataclass(frozen=True)
class Part:
    """One thing that must be there. `said` tells how it is, or what went wrong."""

    name: str
    well: bool
    said: str


@dataclass(frozen=True)
class Amount:
    """Something that is held, of what it may be at most (None: there is no limit)."""

    name: str
    value: int
    unit: str = ""
    limit: int | None = None

    @property
    def over(self) -> bool:
        return self.limit is not None and self.value > self.limit


_OPEN = 1_000
_TROUBLES = (DatabaseError, InterfaceError, redis.RedisError)


def parts() -> list[Part]:
    return [
        _asked(_("Database"), _database),
        _asked(_("Valkey"), _valkey),
        _asked(_("Workers for answers"), lambda: _workers("answer")),
        _asked(_("Workers with an engine"), lambda: _workers("generate")),
        _asked(_("Embedder"), _embedder),
        _asked(_("Cache"), _cache),
    ]


def _asked(name: str, ask: Callable[[], tuple[bool, str]]) -> Part:
    try:
        return Part(name, *ask())
    except _TROUBLES as trouble:
        return Part(name, False, str(trouble).strip().partition("\n")[0])


def _milliseconds(act: Callable[[], object]) -> str:
    started = time.perf_counter()
    act()
    return _("answers in %(ms)s ms") % {"ms": f"{(time.perf_counter() - started) * 1000:.1f}"}


def _database() -> tuple[bool, str]:
    return True, _milliseconds(lambda: Generation.objects.only("pk").first())


def _valkey() -> tuple[bool, str]:
    return True, _milliseconds(client().ping)


def _workers(queue: str) -> tuple[bool, str]:
    alive = workers.alive(queue)
    return alive > 0, _("%(count)d alive") % {"count": alive} if alive else _("none is alive")


def _embedder() -> tuple[bool, str]:
    if settings.EMBEDDER == "none":
        return True, _("none is wanted: there is no semantic layer")
    vectors: list[Any] = []
    said = _milliseconds(lambda: vectors.append(embed(["ping"])))
    return (False, _("can't be reached: there is no semantic layer")) if vectors[0] is None else (True, said)


def _cache() -> tuple[bool, str]:
    return (True, _("on")) if settings.CACHE_ENABLED else (False, _("switched off by the settings"))


@dataclass(frozen=True)
class Waiting:
    """Answers being written, or waiting for an engine, counted to a thousand; for how long the first of them
    has, in seconds; and checks that wait until nobody else does, counted to a thousand."""

    answers: int
    longest: int
    checks: int


def waiting() -> Waiting:
    # Not ordered: Postgres would walk all generations by their time to find the few that are open.
    open_now = Generation.objects.filter(status__in=OPEN).values_list("created_at", flat=True)[:_OPEN]
    since = list(open_now)
    longest = int((timezone.now() - min(since)).total_seconds()) if since else 0
    return Waiting(len(since), longest, gray.waiting(_OPEN))


def amounts() -> list[Amount]:
    """How much waits and is held. Raises DatabaseError."""
    held, now = figures.holdings(), waiting()
    return [
        Amount(_("Answers being written or waiting"), now.answers, limit=settings.QUEUE_LIMIT),
        Amount(_("Longest wait"), now.longest, "s", settings.SILENT_SECONDS),
        Amount(_("Checks in the background that wait"), now.checks),
        Amount(_("Suspect pairings in review"), held.suspects),
        Amount(_("Entries"), held.entries, limit=settings.CACHE_ROWS),
        Amount(_("Wordings"), held.wordings),
        Amount(_("Dead entries, not yet evicted"), held.expired),
        Amount(_("Decisions"), figures.estimated(Decision)),
        Amount(_("Cache on the disk"), _mebibytes(), "MiB", settings.CACHE_MIB),
    ]


def _mebibytes() -> int:
    tables = [model._meta.db_table for model in (Entry, Wording)]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest(%s::text[]) AS name", [tables]
        )
        return int(cursor.fetchone()[0]) // 2**20


def engines() -> list[live_ledger.Told]:
    """What each worker with an engine holds, by its own word; none where Valkey can't be asked."""
    try:
        return live_ledger.found("generate")
    except redis.RedisError:
        return []
