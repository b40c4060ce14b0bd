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


class _Cancellable:
    """A connection whose task can be cancelled at any moment. redis-py sends by asyncio.wait_for, which
    before Python 3.12 loses a cancellation that comes as the command is sent (python/cpython#86296): the
    task would wait on, for an answer that may never come, and whoever waits for its end would too."""

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        task = asyncio.current_task()
        assert task is not None
        before = task.cancelling()
        await super().send_packed_command(command, check_health)  # type: ignore[misc]
        if task.cancelling() > before:
            await self.disconnect(nowait=True)  # type: ignore[attr-defined]
            raise asyncio.CancelledError


def cancellable(pool: redis.asyncio.ConnectionPool) -> redis.asyncio.ConnectionPool:
    """The same pool; what waits for its connections heeds every cancellation."""
    plain = pool.connection_class
    pool.connection_class = type(f"Cancellable{plain.__name__}", (_Cancellable, plain), {})
    return pool


def _new_async_client() -> Any:
    """A command may wait for 5 s at the server, so an answer is given up after twice that and not, as by
    default, after 5 s."""
    client = redis.asyncio.Redis.from_url(
        settings.REDIS_URL,
        decode_responses=True,
        retry=AsyncRetry(NoBackoff(), 0),
        socket_timeout=10,
        socket_connect_timeout=5,
        driver_info=_DRIVER,
    )
    cancellable(client.connection_pool)
    return client
