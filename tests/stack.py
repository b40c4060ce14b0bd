"""The real thing for tests: web, both workers and beat as processes, on the suite's database and Valkey."""

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from launch.embedded import Embedded
from launch.health import missing
from launch.options import REPOSITORY
from launch.process import wait_until
from launch.programs import beat, python, web, worker

_READY_SECONDS = 120
_STOP_SECONDS = 10


class Stack:
    """Start with `start`, then talk to `url` and `ws_url`.

    `environ` is added to the programs' environment, and `release` is the code they run. The programs are
    named web, answer, generate and beat; further `generate_workers` generate-2 and so on.
    """

    def __init__(
        self,
        database: str,
        var_dir: Path,
        embedded: Embedded | None = None,
        environ: Mapping[str, str] | None = None,
        generate_workers: int = 1,
        release: Path = REPOSITORY,
    ) -> None:
        self._release = release
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.ws_url = f"ws://127.0.0.1:{self.port}/ws/chat/"
        self.logs = var_dir / "log"
        self._embedded = embedded
        self._counted = var_dir / "metrics"
        counting = {"PROMETHEUS_MULTIPROC_DIR": str(self._counted)}
        self._environ = _environ(database) | counting | dict(environ or {})
        self._commands = {
            "answer": worker("answer", 4),
            "generate": worker("generate", 2),
            **{f"generate-{n}": worker("generate", 2, n) for n in range(2, generate_workers + 1)},
            "beat": beat(var_dir / "beat-schedule"),
            "web": web(),
        }
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Returns once a question would be answered. Raises: AssertionError, with the logs' ends."""
        self.logs.mkdir(parents=True, exist_ok=True)
        self._counted.mkdir(exist_ok=True)
        for name in self._commands:
            self._spawn(name)
        self.wait_until_ready()

    def wait_until_ready(self, timeout: float = _READY_SECONDS) -> None:
        """Until /healthz is 200. Raises: AssertionError naming what was missing, with the logs' ends."""
        if not wait_until(lambda: missing(self.url) is None, timeout, pause=0.2):
            raise AssertionError(f"The stack is not ready: {missing(self.url)} missing.\n{self.tail()}")

    def pid(self, name: str) -> int:
        return self._processes[name].pid

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to one program, and with SIGKILL or SIGTERM wait until it has ended."""
        process = self._processes[name]
        process.send_signal(number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            process.wait(30)

    def restart(self, name: str, *, ready: bool = True) -> None:
        """Start one program again, stopping it first where it still runs."""
        self._end(name)
        self._spawn(name)
        if ready:
            self.wait_until_ready()

    def restart_valkey(self, *, crash: bool = False) -> None:
        """Stop Valkey (or kill it) and start it again with the data it had."""
        assert self._embedded and self._embedded.valkey, "Valkey is not ours to restart"
        _restart(self._embedded.valkey, crash)

    def restart_postgres(self, *, crash: bool = False) -> None:
        """Stop Postgres (or kill it), which ends all connections, and start it again."""
        assert self._embedded and self._embedded.postgres, "Postgres is not ours to restart"
        _restart(self._embedded.postgres, crash)

    def log(self, name: str) -> str:
        """What one program has written so far, over all its starts."""
        return (self.logs / f"{name}.log").read_text(errors="replace")

    def tail(self, lines: int = 15) -> str:
        parts = [
            f"--- {name}\n" + "\n".join(self.log(name).splitlines()[-lines:]) for name in self._processes
        ]
        return "\n".join(parts)

    def stop(self) -> None:
        """Stop all programs side by side; the services stay."""
        for process in self._processes.values():
            process.terminate()
        deadline = time.monotonic() + _STOP_SECONDS
        for process in self._processes.values():
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._listener.close()

    def _spawn(self, name: str) -> None:
        with (self.logs / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [*python("-m", "launch.tether"), *self._commands[name]],  # none outlives a killed suite
                stdin=self._listener.fileno() if name == "web" else subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._release,
                env=self._environ,
                start_new_session=True,
            )

    def _end(self, name: str) -> None:
        process = self._processes[name]
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _environ(database: str) -> dict[str, str]:
    """Ours, with the suite's database, and without what only a browser's test needs."""
    environ = dict(os.environ)
    environ["DATABASE_URL"] = re.sub(r"^([^/]+//[^/]*/)[^?]*", rf"\g<1>{database}", environ["DATABASE_URL"])
    environ["PYTHONUNBUFFERED"] = "1"
    environ.pop("DJANGO_ALLOW_ASYNC_UNSAFE", None)
    return environ


def _restart(service: object, crash: bool) -> None:
    from launch.postgres import Postgres
    from launch.valkey import Valkey

    assert isinstance(service, Postgres | Valkey)
    if crash:
        service.kill()
    else:
        service.stop()
    service.start()
