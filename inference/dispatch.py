"""Sending work to the queues. A task is named by the id of a generation (or summary)."""

from collections import Counter
from uuid import UUID

import redis
import structlog
from django.conf import settings
from django.db import DatabaseError
from django.db.models import Count
from kombu import Exchange, Queue
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

from config.celery import app

from . import affinity, metrics, trail, workers
from .models import Generation, Status

log = structlog.get_logger(__name__)

# Every worker that holds an engine serves this one too: for what no worker is known for.
SHARED = "generate"


# Redis knows no priorities; a worker takes tasks of this one only when there is none of the others.
_LAST = 9


def _send(
    task: str,
    subject: UUID | int,
    queue: str,
    countdown: float | None,
    *args: object,
    priority: int | None = None,
    headers: trail.Headers | None = None,
) -> None:
    """A broker that can't be reached is no error here: the generation stays pending in the database and
    the reaper sends it again."""
    try:
        app.send_task(
            f"inference.tasks.{task}",
            (str(subject), *args),
            queue=queue,
            countdown=countdown,
            priority=priority,
            headers=headers or trail.headers(subject),
            retry=False,
            ignore_result=True,
        )
    except (KombuError, RedisError, OSError) as error:
        log.warning("dispatch_failed", task=task, subject=str(subject), error=str(error))
        metrics.STAGE_ERRORS.labels(stage="dispatch").inc()


def answer(generation: UUID, headers: trail.Headers | None = None) -> None:
    """`headers`: of the trail, where it began before now."""
    _send("answer", generation, "answer", None, headers=headers)


def check_follower(generation: UUID, position: str, seconds: float) -> None:
    _send("check_follower", generation, "answer", seconds, position)


# --- to the engines ---------------------------------------------------------------------------------


def generate(generation: UUID) -> None:
    """Queue a looked-up generation at the worker that its session belongs to."""
    _send("generate", generation, _assign(generation) or SHARED, None)


def summarise(summary: int) -> None:
    """Should this be lost, the extract stays."""
    _send("summarise", summary, SHARED, None, priority=_LAST)


def observe(check: int) -> None:
    """Should this be lost, it is sent again when nobody waits."""
    _send("observe", check, SHARED, None, priority=_LAST)


def is_full() -> bool:
    """Has every worker as many questions before it as its queue may hold? Raises redis.RedisError."""
    waiting = _waiting()
    loads = _loads(workers.roll("generate").seats, waiting)
    return min(loads.values(), default=waiting.total()) >= settings.QUEUE_LIMIT


def is_anyone_waiting() -> bool:
    """Does any question wait for an engine?"""
    return _waiting().total() > 0


def written_here() -> int:
    """How many answers that people wait for this process is writing."""
    running = Generation.objects.filter(status=Status.RUNNING, looked_up=True)
    return running.filter(claimed_by__startswith=f"{workers.process()}:").count()


def _assign(generation: UUID) -> str | None:
    """Choose a seat and write it down, so that its queue's length is known, and what waits there when its
    worker is gone. None: whoever comes first."""
    waits = Generation.objects.filter(pk=generation, status=Status.PENDING, looked_up=True)
    try:
        session = waits.values_list("session_id", flat=True).first()
        seats = workers.roll("generate").seats
        if workers.leaving.is_set():
            seats -= {workers.own_seat()}
        long = min(settings.QUEUE_LONG, settings.QUEUE_LIMIT)
        seat = affinity.choose(str(session), _loads(seats, _waiting(apart_from=generation)), long)
        waits.update(claimed_by=seat or "")
    except (redis.RedisError, DatabaseError) as error:
        log.warning("no_seat", generation=str(generation), error=str(error).strip())
        metrics.STAGE_ERRORS.labels(stage="affinity").inc()
        return None
    return seat


def _waiting(apart_from: UUID | None = None) -> Counter[str]:
    """How many questions wait for an engine, by seat; under "" those that wait for whoever comes first."""
    waits = Generation.objects.filter(status=Status.PENDING, looked_up=True)
    if apart_from:
        waits = waits.exclude(pk=apart_from)
    return Counter(dict(waits.values_list("claimed_by").annotate(Count("pk")).order_by()))


def _loads(seats: frozenset[str], waiting: Counter[str]) -> dict[str, int]:
    return {seat: waiting[seat] + waiting[""] for seat in seats}


def remove_queue(name: str) -> None:
    """Delete a queue that nobody serves any more, and what lies in it; raises no error if it can't be."""
    try:
        with app.connection_for_write() as connection:
            queue = Queue(name, Exchange(name), name).bind(connection.default_channel)
            queue.declare()  # else the library doesn't know what to delete
            queue.delete()
    except (KombuError, RedisError, OSError) as error:
        log.warning("queue_not_removed", queue=name, error=str(error))
