"""Sessions that are over, told to every engine that may hold their keys and values.

A log in Valkey, which each generate worker reads on from where it stands: one whose connection was lost for a
while hears of them later. What is lost along with Valkey, the engines' own sweeps find.
"""

from collections.abc import Callable
from uuid import UUID

import redis
import structlog

from . import metrics
from .redis import client

log = structlog.get_logger(__name__)

_KEY = "sessions:ended"
_KEPT = 10_000  # far more than end while a connection is lost


def tell(session: UUID) -> None:
    """Let everyone know that `session` is over. Failing to is counted, and costs some memory for a while."""
    try:
        client().xadd(_KEY, {"session": str(session)}, maxlen=_KEPT, approximate=True)
    except redis.RedisError as error:
        log.warning("farewell_failed", session=str(session), error=str(error))
        metrics.STAGE_ERRORS.labels(stage="farewell").inc()


class Listener:
    """Calls `end` with each session that was told of since the listener was made."""

    def __init__(self, end: Callable[[str], None]) -> None:
        self._end = end
        self._position: str | None = None
        self._find_position()

    def hear(self) -> int:
        """Pass on what is new; returns how many sessions. A lost Valkey is left to the next call."""
        try:
            rows = self._read()
        except redis.RedisError as error:
            log.warning("farewells_unreadable", error=str(error))
            return 0
        for position, fields in rows:
            self._position = position
            try:
                self._end(fields["session"])
            except Exception:  # one that can't be ended must not keep the others from it
                log.exception("session_not_ended", session=fields["session"])
                metrics.STAGE_ERRORS.labels(stage="farewell").inc()
        return len(rows)

    def _find_position(self) -> None:
        try:
            last = client().xrevrange(_KEY, count=1)
            self._position = last[0][0] if last else "0-0"
        except redis.RedisError as error:
            log.warning("farewells_unreadable", error=str(error))

    def _read(self) -> list[tuple[str, dict[str, str]]]:
        if self._position is None:
            self._find_position()
        if self._position is None:
            return []
        rows: list[tuple[str, dict[str, str]]] = client().xrange(_KEY, min=f"({self._position}", count=500)
        return rows
