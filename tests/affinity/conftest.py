"""A stack with two workers that hold an engine, and services of its own, since workers are killed here."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from django.db import connections
from pytest_django import DjangoDbBlocker

from launch.embedded import Embedded
from launch.lock import FileLock
from launch.process import wait_until
from tests.faults.conftest import FragileStack
from tests.websocket import records

WORKERS = ("generate", "generate-2")
ALIAS = "affinity"
SETTINGS = {
    # Only a worker's own silence is to be what helps here.
    "SILENT_SECONDS": "300",
    "REDISPATCH_SECONDS": "300",
    "WORKER_ALIVE_SECONDS": "15",
    "QUEUE_LONG": "2",
    "QUEUE_LIMIT": "3",
    "MAX_TOKENS": "60",
    "MAX_OPEN_GENERATIONS": "50",
}


class Pair(FragileStack):
    """Its workers are called generate and generate-2."""

    def __init__(self, var_dir: Path, services: Embedded) -> None:
        super().__init__(var_dir, services, SETTINGS, generate_workers=2)
        assert services.valkey
        self._valkey: Any = redis.Redis.from_url(services.valkey.url(), decode_responses=True)

    def wait_until_ready(self, timeout: float = 120) -> None:
        super().wait_until_ready(timeout)
        both = wait_until(lambda: len(self.seats()) == 2, timeout)
        assert both, self.tail()

    def seats(self) -> dict[str, str]:
        """The seats of those that run now, each with its worker's name here."""
        return {
            seat: name
            for process, seat in self._announced()
            for name in WORKERS
            if f":{self.pid(name)}:" in process
        }

    def worker_of(self, claimed_by: str) -> str:
        """The worker that a generation was claimed by."""
        return next(name for name in WORKERS if f":{self.pid(name)}:" in claimed_by)

    def other(self, worker: str) -> str:
        return next(name for name in WORKERS if name != worker)

    def _announced(self) -> list[tuple[str, str]]:
        members = self._valkey.zrange("workers:generate", 0, -1)
        return [(process, seat) for process, _, seat in (member.partition(" ") for member in members)]


@pytest.fixture(scope="package")
def _running() -> Iterator[Pair]:
    var_dir = Path(tempfile.mkdtemp(prefix="reprise-test-"))
    lock = FileLock(var_dir / "suite.lock")
    lock.seize()
    services = Embedded(var_dir, durable=False)
    services.start()
    stack = Pair(var_dir, services)
    try:
        stack.migrate()
        stack.start()
        yield stack
    finally:
        stack.stop()
        services.discard()
        lock.release()


@pytest.fixture
def pair(
    _running: Pair, monkeypatch: pytest.MonkeyPatch, django_db_blocker: DjangoDbBlocker
) -> Iterator[Pair]:
    """The stack, whole; whom a test killed is started again after it."""
    assert _running.services.postgres
    where = {"NAME": "reprise", "HOST": str(_running.services.postgres.sockets)}
    connections.databases[ALIAS] = connections.databases["default"] | where
    monkeypatch.setattr(records, "database", ALIAS)
    with django_db_blocker.unblock():
        yield _running
    _running.mend()
