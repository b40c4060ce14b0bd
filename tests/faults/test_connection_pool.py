"""A process whose every pooled connection died with the server."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connections

from tests.faults.conftest import ALIAS
from tests.fragile import FragileStack

CONNECTIONS = 8


@pytest.mark.parametrize("crash", [False, True])
def test_the_first_query_after_a_restart_is_answered(fragile: FragileStack, crash: bool) -> None:
    together = Barrier(CONNECTIONS)
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        before = set(threads.map(lambda _: backend(together), range(CONNECTIONS)))
    assert len(before) == CONNECTIONS
    fragile.restart_postgres(crash=crash)
    assert backend() not in before  # though the pool still held eight dead ones


def backend(together: Barrier | None = None) -> int:
    """Which of Postgres's processes answers this thread."""
    try:
        with connections[ALIAS].cursor() as cursor:
            if together:
                together.wait(20)  # so that each has a connection of its own
            cursor.execute("SELECT pg_backend_pid()")
            return int(cursor.fetchone()[0])
    finally:
        connections[ALIAS].close()
