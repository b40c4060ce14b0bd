"""A stack to break: with a Postgres and a Valkey of its own, so that only the tests that use it suffer."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from django.db import connections
from pytest_django import DjangoDbBlocker

from launch.embedded import Embedded
from launch.lock import FileLock
from launch.options import REPOSITORY
from launch.programs import python
from tests.stack import Stack
from tests.websocket import records


class FragileStack(Stack):
    """Can be broken in more ways than others."""

    def __init__(self, var_dir: Path, services: Embedded, environ: Mapping[str, str], **more: int) -> None:
        self.services = services
        self._bent: set[str] = set()
        super().__init__("reprise", var_dir, services, {**services.environment(), **environ}, **more)

    def migrate(self) -> None:
        subprocess.run(python("manage.py", "migrate", "-v0"), cwd=REPOSITORY, env=self._environ, check=True)

    def stop_valkey(self, *, emptied: bool = False) -> None:
        """Crash it; where `emptied`, nothing of what it held comes back."""
        assert self.services.valkey
        self.services.valkey.kill()
        if emptied:
            shutil.rmtree(self.services.valkey.data_dir / "appendonlydir")

    def start_valkey(self) -> None:
        assert self.services.valkey
        self.services.valkey.start()

    def stop_postgres(self) -> None:
        assert self.services.postgres
        self.services.postgres.stop()

    def start_postgres(self) -> None:
        assert self.services.postgres
        self.services.postgres.start()

    def restart_with(self, program: str, **environ: str) -> None:
        """Start a program again with another environment; without waiting until it is ready."""
        before, self._environ = self._environ, self._environ | environ
        self._bent.add(program)
        try:
            self.restart(program, ready=False)
        finally:
            self._environ = before

    def mend(self) -> None:
        """Everything runs again, as it was."""
        self.services.ensure_running()
        for name, process in self._processes.items():
            if process.poll() is not None or name in self._bent:
                self.restart(name, ready=False)
        self._bent.clear()
        self.wait_until_ready()


Fragile = TypeVar("Fragile", bound=FragileStack)


@contextmanager
def running(make: Callable[[Path, Embedded], Fragile], *, durable: bool) -> Iterator[Fragile]:
    """The stack that `make` returns, migrated and started. Where `durable`, what is committed outlives a
    crash."""
    # Named and locked like the suite's own, so that the next run sweeps away what a killed one left.
    var_dir = Path(tempfile.mkdtemp(prefix="reprise-test-"))
    lock = FileLock(var_dir / "suite.lock")
    lock.seize()
    services = Embedded(var_dir, durable=durable)
    services.start()
    stack = make(var_dir, services)
    try:
        stack.migrate()
        stack.start()
        yield stack
    finally:
        stack.stop()
        services.discard()
        lock.release()


@contextmanager
def reached(
    stack: Fragile, alias: str, monkeypatch: pytest.MonkeyPatch, blocker: DjangoDbBlocker
) -> Iterator[Fragile]:
    """The test looks into the stack's database, by the name `alias`; what it broke is mended after it."""
    assert stack.services.postgres
    where = {"NAME": "reprise", "HOST": str(stack.services.postgres.sockets)}
    connections.databases[alias] = connections.databases["default"] | where
    monkeypatch.setattr(records, "database", alias)
    with blocker.unblock():
        yield stack
    stack.mend()
