"""The websocket: authenticates, reads frames, calls one service each; `tails` follows the answers."""

import json
import time
from collections import deque
from typing import Any

import structlog
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.db import DatabaseError, InterfaceError
from redis.exceptions import RedisError

from inference import announcements
from inference.models import Status

from . import protocol, services
from .models import Owner
from .owners import owner_of_scope
from .tails import Tails

log = structlog.get_logger(__name__)

UNAUTHENTICATED = 4401
RESTART = 1012  # come again


async def in_thread(function: Any, *arguments: Any) -> Any:
    """Run what queries the database beside the loop, and beside other sockets' queries."""
    return await database_sync_to_async(function, thread_sensitive=False)(*arguments)


class ChatConsumer(AsyncWebsocketConsumer):
    """One browser tab. No handler waits for an answer: each open generation has a task of its own."""

    owner: Owner

    async def connect(self) -> None:
        self.tails = Tails(self.push)
        self.recent: deque[float] = deque(maxlen=settings.MAX_FRAMES_PER_10_SECONDS)
        owner = await in_thread(owner_of_scope, self.scope)
        if owner is None:
            await self.accept()
            await self.push(
                protocol.Error(code="unauthenticated", message="Log in to chat, then reload the page.")
            )
            await self.close(UNAUTHENTICATED)
            return
        self.owner = owner
        await self.join_group()
        # Open means: told of all that happens from now on. What happened before it, the page asks for then.
        await self.accept()

    async def disconnect(self, code: int) -> None:
        self.tails.end()
        if hasattr(self, "owner"):
            try:
                await self.channel_layer.group_discard(self.owner.group, self.channel_name)
                await self.channel_layer.group_discard(announcements.EVERYONE, self.channel_name)
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
                await in_thread(services.stop, self.owner, frame.generation, frame.seen)
            case protocol.Resume():
                generation = await in_thread(services.get_generation, self.owner, frame.generation)
                self.tails.start(generation, after=frame.after, whole=frame.after == 0)

    async def ask(self, act: Any, client_id: str, *arguments: Any) -> None:
        reply = await in_thread(act, self.owner, client_id, *arguments)
        accepted = protocol.accepted(client_id, reply)
        await self.push(accepted)
        if reply.generation_id not in self.tails:  # else this frame came twice, and the answer is under way
            known = reply.generation.status != Status.PENDING
            self.tails.start(reply.generation, whole=known, client_id=client_id)
        await self.announce(accepted)

    # --- frames out -------------------------------------------------------------------------------

    async def push(self, frame: protocol.ServerFrame) -> None:
        await self.send(text_data=protocol.encode(frame))

    # --- to the owner's other tabs ------------------------------------------------------------------

    async def join_group(self) -> None:
        try:
            await self.channel_layer.group_add(self.owner.group, self.channel_name)
            await self.channel_layer.group_add(announcements.EVERYONE, self.channel_name)
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
            if not await self.channel_layer.is_alone(self.owner.group):
                await self.channel_layer.group_send(self.owner.group, message)
        except (RedisError, OSError) as error:
            log.warning("group_unavailable", error=str(error))

    async def owner_frame(self, message: dict[str, str]) -> None:
        if message["sender"] != self.channel_name:
            await self.send(text_data=message["frame"])

    async def version_changed(self, message: dict[str, Any]) -> None:
        """Questions are asked with another knowledge or system prompt from now on, in every conversation."""
        await self.push(protocol.Invalidated(conversation=None, signal="version", entries=message["entries"]))

    async def owner_left(self, message: dict[str, str]) -> None:
        """This person signed out somewhere: who is still signed in connects again."""
        await self.close(RESTART)
