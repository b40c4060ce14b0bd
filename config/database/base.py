"""The backend class, where Django looks for it."""

from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg_pool import ConnectionPool
from psycopg_pool.base import AttemptWithBackoff


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's own, with a pool that an outage of the server does not outlast."""

    @property
    def pool(self) -> ConnectionPool[Any] | None:
        pool: ConnectionPool[Any] | None = super().pool
        if pool is not None and not isinstance(pool, _Pool):
            # Django makes it, of a class that no setting changes; nothing has used it yet.
            pool.__class__ = _Pool
            pool._check = _check
        return pool


class _Steadily(AttemptWithBackoff):
    DELAY_BACKOFF = 1.0


class _Pool(ConnectionPool[Any]):
    """Tries every second to reach the server again. With pauses that grow, an outage of 4 s is one of 7 to
    whoever waits."""

    def _add_connection(self, attempt: AttemptWithBackoff | None, growing: bool = False) -> None:
        super()._add_connection(attempt or _Steadily(timeout=self.reconnect_timeout), growing)


def _check(connection: psycopg.Connection[Any]) -> None:
    """Raises if `connection` is dead, and then renews all that wait in its pool.

    A restarted server has ended every one of them. The pool alone tries them one after the other, with
    pauses in between, so that with four of them nobody gets a connection within the time limit.
    """
    try:
        ConnectionPool.check_connection(connection)
    except psycopg.Error:
        pool = getattr(connection, "_pool", None)
        if pool is not None:
            pool.drain()
        raise
