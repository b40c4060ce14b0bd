"""Connections to Valkey, one pool a process. What lies there may be lost at any time.

Typed Any: redis-py declares every reply as bytes or str, whatever `decode_responses` says.
"""

import asyncio
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import redis
import redis.asyncio
from django.conf import settings
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.driver_info import DriverInfo
from redis.retry import Retry

# Made once: left to itself, each new connection reads redis-py's version from its package's metadata (1 ms).
_DRIVER = DriverInfo()


@cache
def client() -> Any:
    """The synchronous client of this process; thread-safe. A command that fails is not silently repeated:
    an append repeated by the library would be an append doubled."""
    return redis.Redis.from_url(
        settings.REDIS_URL,
        decode_responses=True,
        retry=Retry(NoBackoff(), 0),
        socket_timeout=5,
        socket_connect_timeout=5,
        driver_info=_DRIVER,
    )


_of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()


def async_client() -> Any:
    """The asynchronous client of the running loop. Whoever waits holds a connection of the pool meanwhile."""
    loop = asyncio.get_running_loop()
    if loop not in _of_loop:
        _of_loop[loop] = _new_async_client()
    return _of_loop[loop]


def _new_async_client() -> Any:
    """A command may wait for 5 s at the server, so an answer is given up after twice that and not, as by
    default, after 5 s."""
    return redis.asyncio.Redis.from_url(
        settings.REDIS_URL,
        decode_responses=True,
        retry=AsyncRetry(NoBackoff(), 0),
        socket_timeout=10,
        socket_connect_timeout=5,
        driver_info=_DRIVER,
    )
