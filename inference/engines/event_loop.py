"""An event loop in a thread of its own, and its streams read from threads that know nothing of it.

Engines behind an asynchronous library or a network answer through this: whoever reads a stream (a worker's
thread) is asked whether it was cancelled even while nothing arrives, and what it abandons ends at once.
"""

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# How long a reader waits before it asks again whether it was cancelled.
POLL_SECONDS = 0.05
# How long it waits for what it abandoned to end (a request to be aborted, a connection closed).
ENDING_SECONDS = 5.0


class Cancelled(Exception):
    """The reader's `cancelled` said so."""


class LoopThread:
    """A running event loop, until `close`. Every method may be called from any thread but its own."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, run on the loop, or what it raises."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def read(self, items: AsyncGenerator[T, None], cancelled: Callable[[], bool]) -> Generator[T, None, None]:
        """`items` as they come. `cancelled` is asked before each is handed out, and every POLL_SECONDS while
        none comes. Raises Cancelled, what `items` raises and what `cancelled` raises; in each case, and when
        closed early, `items` has been closed before."""
        pump = _Pump(items)
        task = asyncio.run_coroutine_threadsafe(pump.run(), self._loop)
        try:
            while True:
                if cancelled():
                    raise Cancelled
                try:
                    item = pump.arrived.get(timeout=POLL_SECONDS)
                except queue.Empty:
                    continue
                if isinstance(item, _End):
                    item.raise_if_failed()
                    return
                if cancelled():
                    raise Cancelled
                yield item
        finally:
            task.cancel()
            pump.ended.wait(ENDING_SECONDS)

    def close(self) -> None:
        """Stops the loop; what still runs on it is cancelled first."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop).result(ENDING_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(ENDING_SECONDS)
        self._loop.close()


class _End:
    def __init__(self, error: BaseException | None) -> None:
        self._error = error

    def raise_if_failed(self) -> None:
        if self._error is not None:
            raise self._error


class _Pump(Generic[T]):
    """Carries items from the loop's side to the reader's."""

    def __init__(self, items: AsyncGenerator[T, None]) -> None:
        self._items = items
        self.arrived: queue.SimpleQueue[T | _End] = queue.SimpleQueue()
        self.ended = threading.Event()

    async def run(self) -> None:
        error: BaseException | None = None
        try:
            async for item in self._items:
                self.arrived.put(item)
        except asyncio.CancelledError as cancelled:
            error = cancelled
            raise
        except Exception as problem:
            error = problem
        finally:
            try:
                await self._items.aclose()
            finally:
                self.arrived.put(_End(error))
                self.ended.set()


async def _cancel_all() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
