"""Who works on a generation, and how it ends: conditional updates, so that of two workers one wins.

pending ──for_lookup──> running ──hand_over──> pending, looked up ──for_engine──> running ──finish──> …

`claimed_by` names the thread that works on a running one, and the seat at which a looked-up one waits.
"""

import time
from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DatabaseError, IntegrityError, InterfaceError, OperationalError, connection
from django.db.models import Q
from django.utils import timezone

from . import metrics, premises, scopes, workers
from .ending import Ending
from .models import OPEN, Generation, ServedBy, Status
from .premises import Premises

log = structlog.get_logger(__name__)
T = TypeVar("T")

# A restart of Postgres takes seconds; an answer that was computed is worth waiting for longer than that.
PATIENCE_SECONDS = 60.0


def persist(write: Callable[[], T]) -> T:
    """Carry out `write`, again if the database went away in the middle. Raises what it last raised."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return write()
        except (OperationalError, InterfaceError) as error:
            if time.monotonic() > deadline:
                raise
            log.warning("database_unavailable", error=str(error).strip())
            metrics.STAGE_ERRORS.labels(stage="database").inc()
            connection.close()
            time.sleep(0.5)


# One round trip where the ORM needs two: claim the row and read it.
_CLAIM = """
    UPDATE inference_generation g SET status = %(running)s, claimed_by = %(name)s, heartbeat_at = %(now)s
    WHERE id = %(id)s AND status = %(pending)s AND looked_up = %(looked_up)s RETURNING g.*
"""
_CLAIM_AND_READ = f"{_CLAIM}, {premises.COLUMN}::text AS premises_read"


def _claim(statement: str, generation_id: UUID | str, **values: object) -> Generation | None:
    whose = {"name": workers.name(), "now": timezone.now(), "id": generation_id}
    states = {"running": Status.RUNNING, "pending": Status.PENDING}
    claimed = Generation.objects.raw(statement, {**whose, **states, **values})
    return next(iter(claimed), None)


def for_lookup(generation_id: UUID | str) -> Generation | None:
    """Claim a new generation, and read what it is to be answered on (its `premises`); None when someone else
    has it or it is over."""
    looked_for = {"app": settings.APP_NAME, "guess": scopes.last()}
    claimed = persist(lambda: _claim(_CLAIM_AND_READ, generation_id, looked_up=False, **looked_for))
    if claimed is not None:
        claimed.premises = Premises.from_json(getattr(claimed, "premises_read"))  # noqa: B009
    return claimed


def for_engine(generation_id: UUID | str) -> Generation | None:
    """Claim a generation that the cache could not answer."""
    return persist(lambda: _claim(_CLAIM, generation_id, looked_up=True))


def _mine(generation: Generation) -> Any:
    return Generation.objects.filter(
        pk=generation.pk, status=Status.RUNNING, claimed_by=generation.claimed_by
    )


def hand_over(generation: Generation) -> bool:
    """Let go of a looked-up generation, for the engine's worker. False when it was taken away meanwhile."""
    changed = _mine(generation).update(
        status=Status.PENDING,
        looked_up=True,
        claimed_by="",
        leader=None,
        heartbeat_at=timezone.now(),
        **_understood(generation),
    )
    return bool(changed)


def _understood(generation: Generation) -> dict[str, Any]:
    """What the lookup found out, for whoever goes on with it."""
    columns = (
        *("scope_id", "canonical_question", "exact_key", "queue_ms", "lookup_ms"),
        *("reuse", "entry_id", "wording_id"),
    )
    return {column: getattr(generation, column) for column in columns}


def heartbeat(generation: Generation, text: str) -> bool:
    """Say that this worker is alive, for the generation and those who follow it, and save the text so far.
    False when the generation is no longer this worker's."""
    now = timezone.now()
    try:
        alive = _mine(generation).update(heartbeat_at=now, text=text)
        Generation.objects.filter(leader=generation, status=Status.RUNNING).update(heartbeat_at=now)
    except DatabaseError as error:
        log.warning("heartbeat_failed", generation=str(generation.pk), error=str(error).strip())
        connection.close()
        return True
    return bool(alive)


def milliseconds_since(generation: Generation) -> float:
    return round((timezone.now() - generation.created_at).total_seconds() * 1000, 2)


_OUTCOME = (
    *("status", "text", "served_by", "entry_id", "wording_id", "scope_id", "canonical_question"),
    *("exact_key", "error_code", "finish_reason", "prompt_tokens", "cached_tokens", "completion_tokens"),
    *("queue_ms", "lookup_ms", "first_token_ms", "total_ms", "output_token_ids", "finished_at", "looked_up"),
    *("reuse",),
)


# Written once here, since the ORM takes longer to put twenty columns together than Postgres to store them.
_FINISH = f"""
    UPDATE inference_generation SET {", ".join(f"{column} = %s" for column in _OUTCOME)}
    WHERE id = %s AND status = %s AND claimed_by = %s
"""


def _write_outcome(generation: Generation) -> bool:
    values = [getattr(generation, column) for column in _OUTCOME]
    with connection.cursor() as cursor:
        cursor.execute(_FINISH, [*values, generation.pk, Status.RUNNING, generation.claimed_by])
        return bool(cursor.rowcount)


def _write_outcome_at_last(generation: Generation) -> bool:
    try:
        return _write_outcome(generation)
    except IntegrityError:
        # The entry it was served from was deleted in this very moment. The answer was given all the same.
        generation.entry_id = generation.wording_id = None
        return _write_outcome(generation)


def finish(generation: Generation, status: Status) -> bool:
    """Write the end of this worker's generation, with everything that was set on it. False when it was
    ended by someone else (reaped, stopped, deleted): then nothing may come of it."""
    generation.status = status
    generation.total_ms = milliseconds_since(generation)
    generation.finished_at = timezone.now()
    ended = persist(lambda: _write_outcome_at_last(generation))
    if ended:
        log.info(
            "answered",
            generation=str(generation.pk),
            status=str(status),
            served_by=str(generation.served_by),
            milliseconds=generation.total_ms,
        )
        metrics.ANSWERS.labels(served_by=generation.served_by or "none", status=status).inc()
        if generation.first_token_ms is not None:
            metrics.FIRST_TOKEN.labels(served_by=generation.served_by).observe(
                generation.first_token_ms / 1000
            )
        if generation.prompt_tokens:
            tokens = (generation.prompt_tokens, generation.cached_tokens, generation.completion_tokens)
            metrics.computed(*tokens)
    return ended


def fail(generation: Generation, code: str) -> bool:
    """End this worker's generation as failed; what was streamed so far stays readable."""
    generation.error_code = code
    return finish(generation, Status.FAILED)


def follow(generation: Generation, leader_id: UUID) -> bool:
    """Leave the work to `leader_id`, which computes the same answer."""
    changed = _mine(generation).update(
        leader_id=leader_id,
        claimed_by=f"leader:{leader_id}",
        served_by=ServedBy.COALESCED,
        **_understood(generation),
    )
    if changed:
        generation.claimed_by = f"leader:{leader_id}"
    return bool(changed)


def unfollow(follower_id: UUID) -> bool:
    """Take a follower back into the queue of those who compute for themselves."""
    changed = Generation.objects.filter(pk=follower_id, status=Status.RUNNING, leader__isnull=False).update(
        status=Status.PENDING,
        looked_up=True,
        leader=None,
        claimed_by="",
        served_by="",
        heartbeat_at=timezone.now(),
    )
    return bool(changed)


def finish_followers(leader: Generation, first_token_at: Any) -> list[UUID]:
    """Give everyone who follows `leader` its complete answer; returns whom."""
    followers = list(Generation.objects.filter(leader=leader, status=Status.RUNNING).only("pk", "created_at"))
    finished = []
    for follower in followers:
        waited = max(0.0, (first_token_at - follower.created_at).total_seconds() * 1000)
        changed = Generation.objects.filter(pk=follower.pk, leader=leader, status=Status.RUNNING).update(
            status=Status.COMPLETE,
            text=leader.text,
            entry_id=leader.entry_id,
            wording_id=leader.wording_id,
            finish_reason=leader.finish_reason,
            prompt_tokens=leader.prompt_tokens,
            completion_tokens=leader.completion_tokens,
            cached_tokens=leader.prompt_tokens,
            first_token_ms=round(waited, 2),
            total_ms=milliseconds_since(follower),
            finished_at=timezone.now(),
        )
        if changed:
            metrics.ANSWERS.labels(served_by=ServedBy.COALESCED, status=Status.COMPLETE).inc()
            metrics.FIRST_TOKEN.labels(served_by=ServedBy.COALESCED).observe(waited / 1000)
            finished.append(follower.pk)
    return finished


def stop_unclaimed(generation_id: UUID, text: str) -> bool:
    """End a generation that no worker writes (queued, or following another) as stopped, with `text`."""
    changed = (
        Generation.objects.filter(pk=generation_id)
        .filter(Q(status=Status.PENDING) | Q(status=Status.RUNNING, leader__isnull=False))
        .update(status=Status.STOPPED, text=text, leader=None, finished_at=timezone.now())
    )
    return bool(changed)


def _silent(generation: Generation, *statuses: Status) -> Any:
    """This generation, while its worker has not been heard of since the heartbeat that `generation` holds."""
    return Generation.objects.filter(
        pk=generation.pk, status__in=statuses, heartbeat_at=generation.heartbeat_at
    )


def take_back(generation: Generation) -> bool:
    """Have a generation done by someone else, whose worker has not been heard of since the heartbeat that
    `generation` holds."""
    changed = _silent(generation, Status.RUNNING).update(
        status=Status.PENDING, claimed_by="", leader=None, heartbeat_at=timezone.now()
    )
    return bool(changed)


def end_as_told(generation: Generation, told: Ending, text: str) -> bool:
    """Write once more how a generation ended, which its readers know and the database has lost."""
    changed = _silent(generation, Status.RUNNING).update(
        text=text, finished_at=timezone.now(), looked_up=True, leader=None, **told.columns()
    )
    return bool(changed)


def end_silent(generation: Generation, status: Status, text: str, code: str = "") -> bool:
    """End a generation whose worker has not been heard of since the heartbeat that `generation` holds."""
    changed = _silent(generation, *OPEN).update(
        status=status, text=text, error_code=code, leader=None, finished_at=timezone.now()
    )
    if changed:
        metrics.ANSWERS.labels(served_by=generation.served_by or "none", status=status).inc()
    return bool(changed)
