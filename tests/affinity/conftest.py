"""A stack with two workers that hold an engine, and services of its own, since workers are killed here."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from pytest_django import DjangoDbBlocker

from launch.embedded import Embedded
from launch.process import wait_until
from tests.fragile import FragileStack, reached, running

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
    with running(Pair, durable=False) as stack:
        yield stack


@pytest.fixture
def pair(
    _running: Pair, monkeypatch: pytest.MonkeyPatch, django_db_blocker: DjangoDbBlocker
) -> Iterator[Pair]:
    """The stack, whole; whom a test killed is started again after it."""
    with reached(_running, ALIAS, monkeypatch, django_db_blocker) as stack:
        yield stack
