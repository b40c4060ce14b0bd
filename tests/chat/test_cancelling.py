"""Who waits for Valkey can be cancelled at any moment: a socket that closes as soon as it is open, a follower
of an answer that is replaced by the next."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from channels.layers import get_channel_layer

from inference.redis import async_client

# More turns of the event loop than it takes to connect and be waiting.
STEPS = range(60)


async def of_the_channel_layer() -> Any:
    layer = get_channel_layer()
    assert layer is not None
    return await layer.receive(await layer.new_channel())


async def of_a_stream() -> Any:
    return await async_client().xread({"nobody:writes:here": "0"}, block=5_000)


@pytest.mark.parametrize("waiting", [of_the_channel_layer, of_a_stream])
@pytest.mark.parametrize("connected", [False, True])
async def test_a_cancellation_is_heeded(
    waiting: Callable[[], Coroutine[Any, Any, Any]], connected: bool
) -> None:
    for steps in STEPS:
        if not connected:
            await async_client().connection_pool.disconnect()
            await get_channel_layer().close_pools()
        task = asyncio.create_task(waiting())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=2)
        assert done, f"waits on, cancelled after {steps} turns"
        assert task.cancelled()
