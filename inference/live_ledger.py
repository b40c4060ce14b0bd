"""Who holds which keys and values now: each worker's own snapshot, with its engine's figures for Prometheus,
in Valkey for as long as it is alive.

In a thread of its own beside the one that announces the worker: an engine far away may take its time, and the
worker must not count as gone meanwhile.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import redis
import structlog
from django.conf import settings

from inference.engines.base import Engine, EngineUnavailable
from inference.kv.snapshot import Snapshot

from . import workers
from .redis import client

log = structlog.get_logger(__name__)

# However often the worker is announced: books of thousands of nodes take some milliseconds to read.
LEAST_SECONDS = 2.0


def publish_seconds() -> float:
    """Between two snapshots: as between two announcements, but never less than LEAST_SECONDS."""
    return max(LEAST_SECONDS, workers.announce_seconds())


def _key(seat: str) -> str:
    return f"workers:ledger:{seat}"


def publish(snapshot: Snapshot, report: Mapping[str, int] | None = None) -> None:
    """Put this worker's snapshot, and its engine's `kv_report`, where `found` finds them, until it would
    count as gone. Raises redis.RedisError."""
    told = {
        "seat": workers.own_seat(),
        "process": workers.process(),
        "engine": settings.ENGINE,
        "at": workers.now(),
        **snapshot.as_dict(),
        "report": dict(report or {}),
    }
    lasts = max(settings.WORKER_ALIVE_SECONDS, 3 * publish_seconds())
    client().set(_key(workers.own_seat()), json.dumps(told), px=round(1000 * lasts))


def keep_publishing(engine: Engine) -> None:
    """Publish what `engine` tells until this process is `leaving`. What fails is tried again next time."""
    _try_to_publish(engine)
    while not workers.leaving.wait(publish_seconds()):
        _try_to_publish(engine)


def _try_to_publish(engine: Engine) -> None:
    try:
        publish(engine.kv_snapshot(), engine.kv_report())
    except (redis.RedisError, EngineUnavailable) as error:
        log.warning("ledger_not_published", error=str(error))
    except Exception:  # a broken figure must not end the view for good
        log.exception("ledger_not_published")


@dataclass(frozen=True)
class Told:
    """A live worker with an engine. `figures`: its snapshot as a dict, with `engine` and `report`, None until
    there is one; `age` of it in seconds."""

    seat: str
    figures: dict[str, Any] | None = None
    age: float = 0.0


def found(queue: str) -> list[Told]:
    """The live workers that have a seat and serve `queue`. Raises redis.RedisError."""
    roll = workers.roll(queue)
    seats = sorted(roll.seats)
    if not seats:
        return []
    now = workers.now()
    texts = client().mget([_key(seat) for seat in seats])
    return [_told(seat, text, roll.processes, now) for seat, text in zip(seats, texts, strict=True)]


def _told(seat: str, text: str | None, alive: frozenset[str], now: float) -> Told:
    figures = json.loads(text) if text else None
    if figures is None or figures["process"] not in alive:  # what sat there before has left it behind
        return Told(seat)
    return Told(seat, figures, max(0.0, now - figures["at"]))
