"""How much one person may send. Counted in Valkey; while that is away nobody is refused for it."""

from functools import cache

import structlog
from django.conf import settings
from limits import parse
from limits.errors import StorageError
from limits.storage import RedisStorage
from limits.strategies import MovingWindowRateLimiter
from redis.exceptions import RedisError

from .models import Owner
from .protocol import Refused

log = structlog.get_logger(__name__)


@cache
def _limiter() -> MovingWindowRateLimiter:
    url = settings.REDIS_URL
    if url.startswith("unix://"):
        url = "redis+unix://" + url.removeprefix("unix://")
    return MovingWindowRateLimiter(RedisStorage(url, wrap_exceptions=True, socket_timeout=2))


def check_message_rate(owner: Owner) -> None:
    """Count one message of this person. Raises Refused when it is one too many for this minute."""
    allowed = parse(f"{settings.MAX_MESSAGES_PER_MINUTE}/minute")
    try:
        within = _limiter().hit(allowed, "messages", owner.key)
    except (StorageError, RedisError) as error:
        log.warning("rate_limit_unavailable", error=str(error))
        return
    if not within:
        raise Refused(
            "rate_limited",
            f"At most {settings.MAX_MESSAGES_PER_MINUTE} messages a minute. Wait a moment, then send again.",
            retryable=True,
        )
