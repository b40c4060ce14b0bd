"""The websocket: authenticates, reads frames, calls one service each, and tails what is being answered."""

import asyncio
import json
import time
from collections import deque
from typing import Any
from uuid import UUID

import structlog
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.db import DatabaseError, InterfaceError
from redis.exceptions import RedisError

from inference.models import Generation, Status
from inference.service import follow

from . import protocol, services
from .models import Owner
from .owners import owner_of_scope

log = structlog.get_logger(__name__)

UNAUTHENTICATED = 4401
# More answers than a page shows at once are not tailed by one socket.
MAX_TAILS = 32


class ChatConsumer(AsyncWebsocketConsumer):
    """One browser tab. No handler waits for an answer: each open generation has a task of its own."""

    owner: Owner
    owner_group: str

    async def connect(self) -> None:
        await self.accept()
        self.tails: dict[UUID, asyncio.Task[None]] = {}
        self.recent: deque[float] = deque(maxlen=settings.MAX_FRAMES_PER_10_SECONDS)
        owner = await database_sync_to_async(owner_of_scope)(self.scope)
        if owner is None:
            await self.push(
                protocol.Error(code="unauthenticated", message="Log in to chat, then reload the page.")
            )
            await self.close(UNAUTHENTICATED)
            return
        self.owner, self.owner_group = owner, f"owner.{owner.key}"
        await self.join_group()

    async def disconnect(self, code: int) -> None:
        for tail in self.tails.values():
            tail.cancel()
        if hasattr(self, "owner"):
            try:
                await self.channel_layer.group_discard(self.owner_group, self.channel_name)
            except (RedisError, OSError) as error:
                log.warning("group_unavailable", error=str(error))

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if not hasattr(self, "owner"):
            return
        client_id = None
        try:
            frame = self.read(text_data)
            client_id = getattr(frame, "client_id", None)
            await self.handle(frame)
        except protocol.BadFrame as refused:
            await self.push(refused.frame(refused.client_id))
        except protocol.Refused as refused:
            await self.push(refused.frame(client_id))
        except (DatabaseError, InterfaceError) as error:
            log.warning("database_unavailable", error=str(error).strip())
            message = "The server can't save this right now. It is kept here; try again in a moment."
            await self.push(
                protocol.Error(code="unavailable", message=message, retryable=True, client_id=client_id)
            )
        except Exception:
            log.exception("frame_failed")
            await self.push(protocol.failure("internal", client_id))

    # --- frames in --------------------------------------------------------------------------------

    def read(self, text: str | None) -> Any:
        """The frame in a message. Raises BadFrame."""
        now = time.monotonic()
        if len(self.recent) == self.recent.maxlen and now - self.recent[0] < 10:
            raise protocol.BadFrame("too_many_frames", "Too many frames; slow down.")
        self.recent.append(now)
        if text is None:
            raise protocol.BadFrame("invalid_frame", "Frames are JSON text, not binary.")
        if len(text.encode(errors="surrogatepass")) > settings.MAX_FRAME_BYTES:
            raise protocol.BadFrame("frame_too_large", "A frame may have 64 KiB.")
        try:
            return protocol.parse(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise protocol.BadFrame("invalid_frame", "This is not JSON.") from error

    async def handle(self, frame: Any) -> None:
        match frame:
            case protocol.Ping():
                await self.push(protocol.Pong())
            case protocol.Send():
                await self.ask(
                    services.send_message, frame.client_id, frame.text, frame.conversation, frame.parent
                )
            case protocol.Edit():
                await self.ask(services.edit_message, frame.client_id, frame.message, frame.text)
            case protocol.Regenerate():
                await self.ask(services.regenerate, frame.client_id, frame.message)
            case protocol.Stop():
                await database_sync_to_async(services.stop)(
                    self.owner, frame.generation, frame.seen
                )
            case protocol.Resume():
                generation = await database_sync_to_async(services.get_generation)(
                    self.owner, frame.generation
                )
                self.tail(generation, after=frame.after, resumed=True)

    async def ask(self, act: Any, client_id: str, *arguments: Any) -> None:
        accepted, generation = await database_sync_to_async(self.act_and_load)(
            act, client_id, *arguments
        )
        await self.push(accepted)
        self.tail(generation, client_id=client_id)
        await self.announce(accepted)

    def act_and_load(
        self, act: Any, *arguments: Any
    ) -> tuple[protocol.Accepted, Generation]:
        accepted = act(self.owner, *arguments)
        return accepted, services.get_generation(self.owner, accepted.generation)

    # --- frames out -------------------------------------------------------------------------------

    async def push(self, frame: protocol.ServerFrame) -> None:
        await self.send(text_data=protocol.encode(frame))

    def tail(
        self,
        generation: Generation,
        *,
        after: int = 0,
        resumed: bool = False,
        client_id: str | None = None,
    ) -> None:
        """Send everything that happens to this generation from now on, beside whatever else goes on."""
        if (running := self.tails.pop(generation.pk, None)) is not None:
            running.cancel()
        if len(self.tails) >= MAX_TAILS:
            raise protocol.Refused("too_many_open", "Too many answers followed at once.", retryable=True)
        task = asyncio.create_task(self.send_all(generation, after, resumed, client_id))
        self.tails[generation.pk] = task
        task.add_done_callback(lambda done: self.forget(generation.pk, done))

    def forget(self, generation_id: UUID, task: asyncio.Task[None]) -> None:
        if self.tails.get(generation_id) is task:
            del self.tails[generation_id]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("tail_failed", generation=str(generation_id), exc_info=error)

    async def send_all(
        self, generation: Generation, after: int, resumed: bool, client_id: str | None
    ) -> None:
        async for event in follow(generation, after, resumed=resumed):
            if event.kind == "delta":
                await self.push(
                    protocol.Delta(generation=generation.pk, seq=event.seq, text=event.text)
                )
            elif event.kind == "snapshot":
                await self.push(
                    protocol.Snapshot(generation=generation.pk, seq=event.seq, text=event.text)
                )
            elif event.ended is not None:
                if event.ended.status == Status.FAILED:
                    await self.push(protocol.failure(event.ended.error_code, client_id))
                await self.push(protocol.done(event.ended))

    # --- to the owner's other tabs ------------------------------------------------------------------

    async def join_group(self) -> None:
        try:
            await self.channel_layer.group_add(self.owner_group, self.channel_name)
        except (RedisError, OSError) as error:
            log.warning("group_unavailable", error=str(error))

    async def announce(self, accepted: protocol.Accepted) -> None:
        """Tell the other tabs that there is something to follow. Only this travels by channel layer."""
        message = {
            "type": "owner.frame",
            "frame": protocol.encode(accepted),
            "sender": self.channel_name,
        }
        try:
            await self.channel_layer.group_send(self.owner_group, message)
        except (RedisError, OSError) as error:
            log.warning("group_unavailable", error=str(error))

    async def owner_frame(self, message: dict[str, str]) -> None:
        if message["sender"] != self.channel_name:
            await self.send(text_data=message["frame"])
