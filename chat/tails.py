"""The answers that one socket follows: a task for each, beside whatever else the socket does."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from uuid import UUID

import structlog

from inference.models import Generation, Status
from inference.service import Follow, follow

from . import protocol

log = structlog.get_logger(__name__)

# More answers than a page shows at once are not followed by one socket.
MAX_TAILS = 32


class Tails:
    """`push` sends one frame to the browser, and returns when there is room for the next."""

    def __init__(self, push: Callable[[protocol.ServerFrame], Awaitable[None]]) -> None:
        self._push = push
        self._tasks: dict[UUID, asyncio.Task[None]] = {}

    def __contains__(self, generation_id: UUID) -> bool:
        return generation_id in self._tasks

    def start(
        self, generation: Generation, *, after: int = 0, whole: bool = False, client_id: str | None = None
    ) -> None:
        """Send everything that happens to this generation behind seq `after`; if it is followed already,
        from there again. `whole`: what there is comes in one piece. Raises Refused."""
        if (running := self._tasks.pop(generation.pk, None)) is not None:
            running.cancel()
        if len(self._tasks) >= MAX_TAILS:
            raise protocol.Refused("too_many_open", "Too many answers followed at once.", retryable=True)
        task = asyncio.create_task(self._send_all(generation, after, whole, client_id))
        self._tasks[generation.pk] = task
        task.add_done_callback(lambda done: self._forget(generation.pk, done))

    def end(self) -> None:
        """Follow nothing any more. The answers themselves go on."""
        for task in self._tasks.values():
            task.cancel()

    def _forget(self, generation_id: UUID, task: asyncio.Task[None]) -> None:
        if self._tasks.get(generation_id) is task:
            del self._tasks[generation_id]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("tail_failed", generation=str(generation_id), exc_info=error)

    async def _send_all(self, generation: Generation, after: int, whole: bool, client_id: str | None) -> None:
        async with aclosing(follow(generation, after, whole=whole)) as events:
            async for event in events:
                for frame in _frames(generation, event, client_id):
                    await self._push(frame)


def _frames(followed: Generation, event: Follow, client_id: str | None) -> list[protocol.ServerFrame]:
    generation = followed.pk
    if event.kind == "delta":
        return [protocol.Delta(generation=generation, seq=event.seq, text=event.text)]
    if event.kind == "snapshot":
        return [protocol.Snapshot(generation=generation, seq=event.seq, text=event.text)]
    if event.invalidated is not None:
        return [protocol.invalidated(followed.session_id, event.invalidated)]
    assert event.ended is not None
    done = protocol.done(generation, event.ended)
    if event.ended.status == Status.FAILED:
        return [protocol.failure(event.ended.error_code, client_id), done]
    return [done]
