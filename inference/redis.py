"""Connections to Valkey, one pool a process. What lies there may be lost at any time."""

from functools import cache

import redis
import redis.asyncio
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry


@cache
def client() -> "redis.Redis":
    """The synchronous client of this process; thread-safe. A command that fails is not silently repeated:
    an append repeated by the library would be an append doubled."""
    return redis.Redis.from_url(
        settings.REDIS_URL,
        decode_responses=True,
        retry=Retry(NoBackoff(), 0),
        socket_timeout=5,
        socket_connect_timeout=5,
    )


def async_client() -> "redis.asyncio.Redis":
    """A new asynchronous client, bound to the running loop; the caller closes it."""
    return redis.asyncio.Redis.from_url(
        settings.REDIS_URL, decode_responses=True, socket_connect_timeout=5
    )
