"""The backend class, where Django looks for it."""

from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg_pool import ConnectionPool


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's own, with another check of a connection that the pool is about to hand out."""

    @property
    def pool(self) -> ConnectionPool[Any] | None:
        pool: ConnectionPool[Any] | None = super().pool
        if pool is not None:
            pool._check = _check  # Django passes its own to the constructor, and no setting changes that
        return pool


def _check(connection: psycopg.Connection[Any]) -> None:
    """Raises if `connection` is dead, and then renews all that wait in its pool.

    A restarted server has ended every one of them. The pool alone tries them one after the other, waiting
    1, 2, 4… s in between, so that with four of them nobody gets a connection within the time limit.
    """
    try:
        ConnectionPool.check_connection(connection)
    except psycopg.Error:
        pool = getattr(connection, "_pool", None)
        if pool is not None:
            pool.drain()
        raise
