"""Generations that fell silent: a worker died, or a task was lost on the way."""

from datetime import timedelta
from typing import Literal

from django.conf import settings
from django.utils import timezone

from . import claims, dispatch, stream
from .models import OPEN, Generation, Status


def reap() -> dict[str, int]:
    """End or send again every open generation that has been silent for too long; returns the counts."""
    counts = {"interrupted": 0, "resent": 0}
    silent_for = timedelta(seconds=min(settings.REDISPATCH_SECONDS, settings.SILENT_SECONDS))
    silent = Generation.objects.filter(status__in=OPEN, heartbeat_at__lt=timezone.now() - silent_for).defer(
        "question", "output_token_ids"
    )
    for generation in silent:
        came_of_it = settle(generation)
        if came_of_it:
            counts[came_of_it] += 1
    return counts


def settle(generation: Generation) -> Literal["interrupted", "resent"] | None:
    """Do what is due for one open generation: nothing, while it has been heard of lately."""
    silent = (timezone.now() - generation.heartbeat_at).total_seconds()
    if generation.status == Status.PENDING:
        return "resent" if silent > settings.REDISPATCH_SECONDS and _resend(generation) else None
    return "interrupted" if silent > settings.SILENT_SECONDS and _interrupt(generation) else None


def _resend(generation: Generation) -> bool:
    """Queue a pending generation once more. If its first task is still on its way, the second to arrive
    finds it claimed."""
    mine = Generation.objects.filter(
        pk=generation.pk, status=Status.PENDING, heartbeat_at=generation.heartbeat_at
    ).update(heartbeat_at=timezone.now())
    if mine:
        (dispatch.generate if generation.looked_up else dispatch.answer)(generation.pk)
    return bool(mine)


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
