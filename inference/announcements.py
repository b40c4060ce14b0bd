"""What every open socket is told of, whoever made it happen. Who is not connected now need not know."""

import redis
import structlog
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer

from . import metrics

log = structlog.get_logger(__name__)

# The group that every socket joins.
EVERYONE = "everyone"


def version_changed(entries: int) -> bool:
    """Questions are asked with another version from now on, and so many entries are out of reach. False when
    nobody could be told, which changes nothing about it."""
    try:
        async_to_sync(get_channel_layer().group_send)(
            EVERYONE, {"type": "version.changed", "entries": entries}
        )
    except (redis.RedisError, OSError) as error:
        log.warning("announcement_failed", error=str(error))
        metrics.STAGE_ERRORS.labels(stage="announcement").inc()
        return False
    return True
