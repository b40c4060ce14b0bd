"""What the stack has in its database, for tests that run in an event loop."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from uuid import UUID

from channels.db import database_sync_to_async
from django.db.models import QuerySet

from inference.models import Generation, Status
from tests.websocket.client import PATIENCE_SECONDS

T = TypeVar("T")

database = "default"  # the alias; other stacks than the suite's have one of their own


async def look(query: Callable[[], T]) -> T:
    """What `query` finds; its connection is given back at once."""
    return await database_sync_to_async(query, thread_sensitive=False)()


def generations() -> QuerySet[Generation]:
    return Generation.objects.using(database)


async def generation(pk: UUID) -> Generation:
    return await look(lambda: generations().get(pk=pk))


async def change(pk: UUID, **values: Any) -> None:
    await look(lambda: generations().filter(pk=pk).update(**values))


async def is_waiting(pk: UUID) -> bool:
    """Has it been looked up, and does it wait for the engine?"""
    return await look(generations().filter(pk=pk, status=Status.PENDING, looked_up=True).exists)


async def eventually(condition: Callable[[], Awaitable[Any]], within: float = PATIENCE_SECONDS) -> None:
    """Wait until `condition` holds. Raises AssertionError."""
    deadline = time.monotonic() + within
    while not await condition():
        assert time.monotonic() < deadline, f"It did not come to that within {within} s"
        await asyncio.sleep(0.05)


async def ended(pk: UUID, within: float = PATIENCE_SECONDS) -> Generation:
    """The generation, once it is over."""

    async def over() -> bool:
        return not (await generation(pk)).is_open

    await eventually(over, within)
    return await generation(pk)
