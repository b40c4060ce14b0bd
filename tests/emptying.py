"""Emptying the tables after a test, while tasks of the running stack may still be at work on them.

TRUNCATE wants every table for itself, one after the other. A task that holds one of them may wait for
another, or, where no database sees it, for a thread that waits for another. So it gives way at once, letting
go of all that it has, and comes back: nobody's task is ended for it, and nobody waits for ever.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError, transaction
from django.db.backends.postgresql.operations import DatabaseOperations

# Less than Postgres waits before it looks for a deadlock, and ends whoever is in one.
_PATIENCE = "200ms"
_PAUSE_SECONDS = 0.05
_SECONDS = 60.0


@contextmanager
def giving_way() -> Iterator[None]:
    """Django's flush does so meanwhile."""
    flush = DatabaseOperations.execute_sql_flush

    def flush_when_free(self: DatabaseOperations, sql_list: Any) -> None:
        until = time.monotonic() + _SECONDS
        while True:
            try:
                with transaction.atomic(using=self.connection.alias):
                    with self.connection.cursor() as cursor:
                        cursor.execute(f"SET LOCAL lock_timeout = '{_PATIENCE}'")
                    flush(self, sql_list)
                return
            except OperationalError as error:
                if time.monotonic() > until:
                    raise OperationalError(f"{error}; at work: {_at_work(self)}") from error
            time.sleep(_PAUSE_SECONDS)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseOperations, "execute_sql_flush", flush_when_free)
        yield


def _at_work(operations: DatabaseOperations) -> list[Any]:
    with operations.connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid, state, wait_event, now() - xact_start, left(query, 200) FROM pg_stat_activity"
            " WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()"
        )
        return list(cursor.fetchall())
