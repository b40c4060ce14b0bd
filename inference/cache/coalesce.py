"""The same question in flight is computed once: the first who asks leads, the others follow its stream.

A follower who sees no token for a while computes for itself. Everything here lives in Valkey and may be lost:
then questions are computed more than once, and nothing else happens.
"""

from uuid import UUID

import redis
import structlog
from django.conf import settings
from django.db import transaction

from inference import claims, dispatch, metrics, stream
from inference.models import OPEN, Generation, Status
from inference.redis import client

log = structlog.get_logger(__name__)

_FLIGHT_SECONDS = 120


def _flight_key(generation: Generation, shareable: bool) -> str:
    where = "shared" if shareable else str(generation.session_id)
    return f"flight:{where}:{generation.exact_key}"


def _followers_key(leader: UUID) -> str:
    return f"flight:{leader}:followers"


def join(generation: Generation, shareable: bool) -> bool:
    """Follow whoever computes this already; False when this generation is to lead (or must go alone)."""
    try:
        leader_id = _leader_in_flight(generation, _flight_key(generation, shareable))
        if leader_id is None:
            return False
        if not claims.follow(generation, leader_id):
            return True  # ended by someone else; there is nothing left to do
        client().sadd(_followers_key(leader_id), str(generation.pk))
        client().expire(_followers_key(leader_id), settings.STREAM_TTL_SECONDS)
    except redis.RedisError as error:
        log.warning("coalescing_unavailable", error=str(error))
        metrics.STAGE_ERRORS.labels(stage="coalesce").inc()
        return generation.claimed_by.startswith("leader:")
    if _is_open(leader_id):
        at = stream.position_of(generation.pk) or stream.START
        dispatch.check_follower(generation.pk, at, settings.COALESCE_PATIENCE_SECONDS)
    else:  # it ended between the look and the step
        leave(generation.pk, leader_id)
    return True


def _leader_in_flight(generation: Generation, key: str) -> UUID | None:
    """Who leads this flight; None after `generation` has become the one."""
    if client().set(key, str(generation.pk), nx=True, ex=_FLIGHT_SECONDS):
        return None
    leader = client().get(key)
    if leader and leader != str(generation.pk) and _is_open(UUID(leader)):
        return UUID(leader)
    client().set(key, str(generation.pk), ex=_FLIGHT_SECONDS)  # a dead flight
    return None


def _is_open(leader_id: UUID) -> bool:
    return Generation.objects.filter(pk=leader_id, status__in=OPEN, leader=None).exists()


def followers(leader: UUID) -> set[UUID]:
    """Who follows `leader` now."""
    try:
        members = client().smembers(_followers_key(leader))
    except redis.RedisError:
        return set()
    return {UUID(member) for member in members}


def check(follower_id: UUID, position: str) -> None:
    """Has this follower's stream moved on from `position`? If not, it computes for itself."""
    follower = (
        Generation.objects.select_related("leader")
        .filter(pk=follower_id, status=Status.RUNNING, leader__isnull=False)
        .first()
    )
    if follower is None or follower.leader is None:
        return
    now_at = stream.position_of(follower_id)
    if now_at not in (None, position) and follower.leader.is_open:
        dispatch.check_follower(follower_id, now_at or position, settings.COALESCE_PATIENCE_SECONDS)
        return
    leave(follower_id, follower.leader.pk)


def leave(follower_id: UUID, leader_id: UUID) -> None:
    """Stop following and queue for the engine."""
    forget(follower_id, leader_id)
    if claims.unfollow(follower_id):
        transaction.on_commit(lambda: dispatch.generate(follower_id))


def forget(follower_id: UUID, leader_id: UUID) -> None:
    """Write to this follower's stream no longer."""
    try:
        client().srem(_followers_key(leader_id), str(follower_id))
    except redis.RedisError:
        metrics.STAGE_ERRORS.labels(stage="coalesce").inc()


def disband(leader: Generation) -> None:
    """The leader has no answer to share: everyone computes for themselves."""
    for follower_id in Generation.objects.filter(leader=leader, status=Status.RUNNING).values_list(
        "pk", flat=True
    ):
        leave(follower_id, leader.pk)


def land(generation: Generation, shareable: bool) -> None:
    """The flight is over; the next who asks this finds an entry, or leads."""
    key = _flight_key(generation, shareable)
    try:
        if client().get(key) == str(generation.pk):
            client().delete(key)
        client().delete(_followers_key(generation.pk))
    except redis.RedisError:
        metrics.STAGE_ERRORS.labels(stage="coalesce").inc()
