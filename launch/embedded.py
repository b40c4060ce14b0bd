"""Embedded Postgres and Valkey under VAR_DIR, shared by every process that needs them.

Whoever comes first starts them, the last one out stops them. Who is in holds a shared file lock, so a
killed process counts as gone.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path

from launch.lock import FileLock
from launch.options import var_dir as default_var_dir
from launch.postgres import Postgres
from launch.problem import Problem
from launch.sockets import socket_dir
from launch.valkey import Valkey


class Embedded:
    """The services under one VAR_DIR, as one process uses them.

    With durable=False they may lose data when the machine fails (not when a service does): for tests.
    Either service can be left out, for one that is to be had elsewhere.
    """

    def __init__(
        self, var_dir: Path, *, durable: bool = True, postgres: bool = True, valkey: bool = True
    ) -> None:
        self.var_dir = var_dir.resolve()
        sockets = socket_dir(self.var_dir)
        self.postgres = Postgres(self.var_dir / "postgres", sockets, durable=durable) if postgres else None
        self.valkey = Valkey(self.var_dir / "valkey", sockets, durable=durable) if valkey else None
        self._users: list[FileLock] = []

    @property
    def services(self) -> list[Postgres | Valkey]:
        return [service for service in (self.postgres, self.valkey) if service is not None]

    def environment(self) -> dict[str, str]:
        """What a program has to find in its environment to use them."""
        return {service.variable: service.url() for service in self.services}

    def start(self) -> None:
        """Have them running until `stop`. Raises: Problem if one cannot be started."""
        with self._mutex():
            users = [self._lock(service) for service in self.services]
            for lock in users:
                lock.share()
            self._users = users
            try:
                self._start_missing()
            except BaseException:
                self._leave()
                raise

    def ensure_running(self) -> list[str]:
        """Start again what died. Returns the names of those. Raises: Problem."""
        if all(service.is_running() for service in self.services):
            return []
        with self._mutex():
            return self._start_missing()

    def stop(self) -> list[str]:
        """Be done with them. Returns the names of those that nobody else uses and were stopped."""
        if not self._users:
            return []
        with self._mutex():
            return self._leave()

    def discard(self) -> None:
        """Stop them, whoever may use them, and delete VAR_DIR: for throw-away services."""
        for service in reversed(self.services):
            service.stop()
        self.stop()
        shutil.rmtree(self.var_dir, ignore_errors=True)
        shutil.rmtree(socket_dir(self.var_dir), ignore_errors=True)

    def _start_missing(self) -> list[str]:
        """Start all that can be started, and only then complain about one that can't."""
        started = []
        problems = []
        for service in self.services:
            if not service.is_running():
                started.append(service.name)
            try:
                service.start()
            except Problem as problem:
                problems.append(problem)
        if problems:
            raise problems[0]
        return started

    def _leave(self) -> list[str]:
        users, self._users = self._users, []
        stopped = []
        # Last started, first stopped.
        for service, lock in reversed(list(zip(self.services, users, strict=True))):
            if lock.seize():
                service.stop()
                stopped.append(service.name)
            lock.release()
        return stopped

    @contextmanager
    def _mutex(self) -> Iterator[None]:
        """One process at a time starts or stops."""
        lock = FileLock(self.var_dir / "locks" / "services")
        try:
            with lock.alone():
                yield
        finally:
            lock.release()

    def _lock(self, service: Postgres | Valkey) -> FileLock:
        return FileLock(self.var_dir / "locks" / service.name.lower())


def needed(environ: Mapping[str, str] = os.environ) -> Embedded | None:
    """The services that `environ` gives no address for, not yet started; None if it gives both."""
    postgres = not environ.get("DATABASE_URL")
    valkey = not environ.get("REDIS_URL")
    if not postgres and not valkey:
        return None
    return Embedded(default_var_dir(environ), postgres=postgres, valkey=valkey)


@contextmanager
def where_running(environ: MutableMapping[str, str] = os.environ) -> Iterator[None]:
    """Within the block, `environ` has the addresses of those embedded services that run anyway. None is
    started, and none kept from being stopped."""
    embedded = needed(environ)
    running = [service for service in embedded.services if service.is_running()] if embedded else []
    found = {service.variable: service.url() for service in running}
    environ.update(found)
    try:
        yield
    finally:
        for name in found:
            environ.pop(name, None)


@contextmanager
def on_demand(environ: MutableMapping[str, str] = os.environ) -> Iterator[None]:
    """Within the block, `environ` has addresses of a Postgres and a Valkey that run.

    Raises: Problem if one cannot be started.
    """
    embedded = needed(environ)
    if embedded is None:
        yield
        return
    embedded.start()
    environ.update(embedded.environment())
    environ["VAR_DIR"] = str(embedded.var_dir)
    try:
        yield
    finally:
        for name in embedded.environment():
            environ.pop(name, None)
        embedded.stop()
