"""Generations that fell silent: a worker died, a task was lost on the way, nobody is there to do it, or a
crash of Postgres took back what a worker had written last (they don't wait for the disk, see
config/celery.py)."""

from collections import Counter
from datetime import timedelta
from typing import Literal

import redis
import structlog
from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from . import claims, dispatch, metrics, stream, workers
from .models import OPEN, Generation, Status
from .redis import client

log = structlog.get_logger(__name__)

Settled = Literal["interrupted", "failed", "resent"]


def reap() -> Counter[Settled]:
    """End or send again every open generation that has been silent for too long; returns the counts."""
    counts: Counter[Settled] = Counter()
    patience = min(settings.REDISPATCH_SECONDS, settings.SILENT_SECONDS, settings.WORKER_ALIVE_SECONDS)
    silent = Q(heartbeat_at__lt=timezone.now() - timedelta(seconds=patience))
    seats = _seats()
    in_vain = Q(status=Status.PENDING, looked_up=True) & ~Q(claimed_by__in=["", *seats])
    due = Generation.objects.filter(silent | in_vain if seats else silent, status__in=OPEN)
    for generation in due.defer("question", "output_token_ids"):
        came_of_it = settle(generation, seats)
        if came_of_it:
            counts[came_of_it] += 1
    return counts


def settle(generation: Generation, seats: frozenset[str] | None = None) -> Settled | None:
    """Do what is due for one open generation: nothing, while it has been heard of lately. `seats` are those
    of the workers that are alive, where that is known."""
    silent = (timezone.now() - generation.heartbeat_at).total_seconds()
    if generation.status == Status.PENDING:
        in_vain = (
            generation.looked_up and generation.claimed_by and seats and generation.claimed_by not in seats
        )
        lost = silent > settings.REDISPATCH_SECONDS
        if lost and _nobody_serves(generation):  # it lies where whoever comes will find it
            return "failed" if silent > settings.SILENT_SECONDS and _give_up(generation) else None
        return "resent" if (in_vain or lost) and _resend(generation) else None
    if silent > settings.REDISPATCH_SECONDS and _was_taken_back(generation):
        return "resent"
    if silent > settings.WORKER_ALIVE_SECONDS and _worker_died(generation):
        if stream.stop_requested(generation.pk) is not None:
            return "interrupted" if _interrupt(generation) else None
        if _begin_anew(generation):
            return "resent"
    return "interrupted" if silent > settings.SILENT_SECONDS and _interrupt(generation) else None


def clear_seats() -> int:
    """Remove the queues of workers that have long been gone; returns how many there were."""
    try:
        gone = workers.abandoned_seats("generate")
    except redis.RedisError:
        return 0
    for seat in gone:
        dispatch.remove_queue(seat)
    return len(gone)


def _seats() -> frozenset[str]:
    """Of the workers that are alive; empty when nobody can tell, or there is none."""
    try:
        return workers.roll("generate").seats
    except redis.RedisError:
        return frozenset()


def _nobody_serves(generation: Generation) -> bool:
    """Is it certain that nobody is there who could take this from its queue?"""
    try:
        return workers.absent("generate" if generation.looked_up else "answer")
    except redis.RedisError:
        return False


def _worker_died(generation: Generation) -> bool:
    """Is whoever had this gone, while others are there who could do it?"""
    if generation.leader_id:
        return False  # nobody had it
    try:
        there = workers.roll("generate" if generation.looked_up else "answer").processes
    except redis.RedisError:
        return False
    return bool(there) and workers.process_of(generation.claimed_by) not in there


def _was_taken_back(generation: Generation) -> bool:
    """Was more done than the database knows? Then do that again: write the end that readers were told, or
    look up once more, which takes milliseconds and so has not been going on all this time."""
    told = stream.ending(generation.pk)
    if told is not None:
        return claims.end_as_told(generation, told, stream.text_until(generation.pk) or generation.text)
    return not generation.looked_up and generation.leader_id is None and _begin_anew(generation)


def _begin_anew(generation: Generation) -> bool:
    """Have a generation done by another worker. Once: the question may be what killed the first."""
    try:
        once = f"generation:{generation.pk}:begun-anew"
        if not client().set(once, 1, nx=True, ex=settings.STREAM_TTL_SECONDS):
            return False
    except redis.RedisError:
        return False
    if not claims.take_back(generation):
        return False
    log.warning("begun_anew", generation=str(generation.pk), lost=generation.claimed_by)
    _dispatch(generation)
    return True


def _resend(generation: Generation) -> bool:
    """Queue a pending generation once more. If its first task is still on its way, the second to arrive
    finds it claimed."""
    mine = Generation.objects.filter(
        pk=generation.pk, status=Status.PENDING, heartbeat_at=generation.heartbeat_at
    ).update(heartbeat_at=timezone.now())
    if mine:
        _dispatch(generation)
    return bool(mine)


def _dispatch(generation: Generation) -> None:
    (dispatch.generate if generation.looked_up else dispatch.answer)(generation.pk)


def _give_up(generation: Generation) -> bool:
    """Nobody came in all this time: who waits is told so, and may try again."""
    text = stream.text_until(generation.pk) or generation.text
    ended = claims.end_silent(generation, Status.FAILED, text, "engine_unavailable")
    if ended:
        metrics.STAGE_ERRORS.labels(stage="engine" if generation.looked_up else "answer").inc()
        stream.end(generation.pk, text)
    return ended


def _interrupt(generation: Generation) -> bool:
    """Keep what the dead worker had streamed. If it had been asked to stop, it has."""
    seen = stream.stop_requested(generation.pk)
    text = stream.text_until(generation.pk, seen)
    if text is None:
        text = generation.text
    status = Status.INTERRUPTED if seen is None else Status.STOPPED
    ended = claims.end_silent(generation, status, text)
    if ended:
        stream.end(generation.pk, text)
    return ended
