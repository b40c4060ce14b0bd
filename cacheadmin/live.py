"""The console's websocket: tells an open page what has changed. It carries no figures: the page asks for
those itself, as whoever is signed in, so that nothing is shown here that may not be seen there."""

import asyncio
import json
from typing import Any

import structlog
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.contrib.auth import get_user_model
from django.db import DatabaseError, InterfaceError

from . import pulse
from .access import may

log = structlog.get_logger(__name__)

UNAUTHENTICATED, FORBIDDEN = 4401, 4403
EVERY_SECONDS = 2.0
# So many looks at what happened, and one at whether the person still may.
_CHECKED_EVERY = 15


async def _in_thread(function: Any, *arguments: Any) -> Any:
    return await database_sync_to_async(function, thread_sensitive=False)(*arguments)


def _allowed(pk: int) -> bool:
    user = get_user_model().objects.filter(pk=pk, is_active=True).first()
    return user is not None and may(user, "view")


class ConsoleConsumer(AsyncWebsocketConsumer):
    """One page. Whatever it sends is not read, and nobody sends to it: it needs no channel layer, which would
    keep a connection to Valkey waiting for each page."""

    channel_layer_alias = ""
    _telling: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        await self.accept()
        user = self.scope["user"]
        if not user.is_authenticated:
            await self.close(UNAUTHENTICATED)
        elif not await _in_thread(_allowed, user.pk):
            await self.close(FORBIDDEN)
        else:
            self._telling = asyncio.create_task(self._tell(user.pk))

    async def disconnect(self, code: int) -> None:
        if self._telling is not None:
            self._telling.cancel()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        return

    async def _tell(self, user: int) -> None:
        before: pulse.Pulse | None = None
        looked = 0
        while True:
            try:
                if looked % _CHECKED_EVERY == 0 and not await _in_thread(_allowed, user):
                    await self.close(FORBIDDEN)
                    return
                present = await _in_thread(pulse.now)
                changed = present.beside(before)
                if changed or before is None:
                    await self.send(json.dumps({"changed": changed, "suspects": present.suspects}))
                before = present
            except (DatabaseError, InterfaceError) as error:
                log.warning("pulse_failed", error=str(error).strip())
            looked += 1
            await asyncio.sleep(EVERY_SECONDS)
