"""The channel layer between a person's tabs, made to outlast Valkey."""

import asyncio
from collections import defaultdict
from typing import Any

import structlog
from channels_redis.core import RedisChannelLayer
from redis.asyncio import ConnectionPool
from redis.exceptions import RedisError

from inference.redis import cancellable

log = structlog.get_logger(__name__)

_PAUSE_SECONDS = 1.0


class PatientLayer(RedisChannelLayer):
    """Waits for a Valkey that went away, where the original ends every socket that is open; and joins the
    groups again that an emptied one has forgotten."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._groups: defaultdict[str, set[str]] = defaultdict(set)

    def create_pool(self, index: int) -> ConnectionPool:
        return cancellable(super().create_pool(index))

    async def receive(self, channel: str) -> dict[str, Any]:
        lost = False
        while True:
            try:
                if lost:
                    await self._rejoin(channel)
                    lost = False
                return await super().receive(channel)
            except (RedisError, OSError) as error:
                log.warning("channel_layer_unavailable", error=str(error))
                lost = True
                await asyncio.sleep(_PAUSE_SECONDS)

    async def group_add(self, group: str, channel: str) -> None:
        self._groups[channel].add(group)
        await super().group_add(group, channel)

    async def group_discard(self, group: str, channel: str) -> None:
        self._groups.pop(channel, None)
        await super().group_discard(group, channel)

    async def is_alone(self, group: str) -> bool:
        """Has the group one member at most? A member that died without a word may still be counted."""
        key = self._group_key(group)
        return int(await self.connection(self.consistent_hash(group)).zcard(key)) <= 1

    async def _rejoin(self, channel: str) -> None:
        for group in self._groups.get(channel, set()):
            await super().group_add(group, channel)
