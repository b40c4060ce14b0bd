"""Stopping an answer, whoever has it at that moment: a queue, a worker, or one that it follows."""

from uuid import UUID

import redis

from . import claims, stream
from .cache import coalesce
from .models import Generation


def stop(generation_id: UUID, seen: int) -> None:
    """Stop a generation; it keeps what its reader had seen, up to seq `seen`. No effect on one that is
    over. Raises redis.RedisError when a worker has it and could not be asked."""
    # The request first: so whoever lets go of the generation in between finds either it or us.
    unheard: redis.RedisError | None = None
    try:
        stream.request_stop(generation_id, seen)
    except redis.RedisError as error:
        unheard = error
    if not _take_out(generation_id, seen) and unheard is not None:
        raise unheard


def stop_if_asked(generation_id: UUID) -> None:
    """For a worker that has just let go of a generation, which nobody may look at again for a long time."""
    seen = stream.stop_requested(generation_id)
    if seen is not None:
        _take_out(generation_id, seen)


def _take_out(generation_id: UUID, seen: int) -> bool:
    """Stop a generation that no worker writes; False when there is one, or it is over."""
    generation = Generation.objects.only("leader", "text").filter(pk=generation_id).first()
    if generation is None:
        return False
    text = stream.text_until(generation_id, seen) or ""
    if not claims.stop_unclaimed(generation_id, text):
        return False
    if generation.leader_id:
        coalesce.forget(generation_id, generation.leader_id)
    stream.end(generation_id, text)
    return True
