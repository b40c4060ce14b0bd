"""A real supervisord with small programs of our own in place of the site's."""

import io
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from launch.console_log import Lines, listen
from launch.lock import FileLock
from launch.options import REPOSITORY
from launch.process import wait_until

# What `make run` does about supervision and nothing else. Kept apart in a process, so that it can be killed.
RUNNER = """
import os, sys, time
from pathlib import Path
from launch.programs import Program
from launch.supervisor import Supervisor
var_dir, port = Path(sys.argv[1]), sys.argv[2]
talk = "import os, time; print('pid', os.getpid(), flush=True); time.sleep(600)"
serve = "import socket; s = socket.socket(fileno=0)\\nwhile True: s.accept()[0].sendall(b'hello')"
programs = [
    Program("answer", [sys.executable, "-c", talk], rank=30, patience=3),
    Program("generate", [sys.executable, "-c", talk], rank=30, patience=3),
    Program("web", [sys.executable, "-c", serve], rank=40, patience=3, listens=f"tcp://127.0.0.1:{port}"),
]
supervisor = Supervisor(var_dir, programs, os.environ)
print("leftover", supervisor.stop_leftover(), flush=True)
supervisor.start()
sys.stdin.read()
supervisor.stop()
print("stopped", flush=True)
"""


class Runner:
    """RUNNER in a process, with all that it prints in a file."""

    def __init__(self, var_dir: Path, port: int) -> None:
        self.output = var_dir.parent / f"output-{time.monotonic_ns()}"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", RUNNER, str(var_dir), str(port)],
                cwd=REPOSITORY,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def text(self) -> str:
        return self.output.read_text()

    def pids(self, name: str) -> list[int]:
        """The pids that program `name` printed, first to last."""
        lines = [line for line in self.text().splitlines() if line.startswith(f"{name:<9}| pid ")]
        return [int(line.split()[-1]) for line in lines]

    def programs(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def stop(self) -> None:
        self.process.communicate(timeout=30)


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def run(tmp_path: Path, port: int) -> Iterator[Callable[[], Runner]]:
    started: list[Runner] = []

    def start() -> Runner:
        started.append(Runner(tmp_path / "var", port))
        ready = wait_until(lambda: bool(started[-1].pids("answer") and started[-1].pids("generate")), 20)
        assert ready, started[-1].text()
        return started[-1]

    yield start
    for runner in started:
        if runner.process.poll() is None:
            runner.stop()


def greeting(port: int) -> bytes:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            return connection.recv(10)
    except OSError:
        return b""


def ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_program_that_dies_is_started_again_and_the_log_says_so(run: Callable[[], Runner]) -> None:
    runner = run()
    first = runner.pids("generate")[0]
    os.kill(first, signal.SIGKILL)
    assert wait_until(lambda: len(runner.pids("generate")) == 2, 15), runner.text()
    assert "exited: generate (terminated by SIGKILL" in runner.text()
    assert runner.text().count("spawned: 'generate'") == 2
    assert len(runner.pids("answer")) == 1, "its neighbour was left alone"


def test_a_web_process_that_dies_leaves_the_port_to_the_next(run: Callable[[], Runner], port: int) -> None:
    runner = run()
    assert wait_until(lambda: greeting(port) == b"hello", 15)
    web = next(process for process in runner.programs() if "accept()" in " ".join(process.cmdline()))
    web.kill()
    assert wait_until(lambda: ended(web) and greeting(port) == b"hello", 15), runner.text()


def test_stopping_stops_the_web_first_and_everything_at_last(run: Callable[[], Runner]) -> None:
    runner = run()
    programs = runner.programs()
    assert len(programs) >= 5, "supervisord, its log listener and three programs"
    runner.stop()
    assert "stopped\n" in runner.text()
    order = [
        line.split("stopped: ")[1].split()[0] for line in runner.text().splitlines() if "stopped: " in line
    ]
    assert order[0] == "web"
    assert set(order[1:3]) == {"answer", "generate"}
    assert all(map(ended, programs))


def test_when_the_run_is_killed_nothing_is_left_for_the_next(run: Callable[[], Runner], port: int) -> None:
    killed = run()
    programs = killed.programs()
    killed.process.kill()
    killed.process.communicate()
    second = run()
    assert all(map(ended, programs)), "those of the first run are gone before the second starts its own"
    assert wait_until(lambda: greeting(port) == b"hello", 15), second.text()


def test_when_supervisord_is_killed_its_programs_end(run: Callable[[], Runner]) -> None:
    runner = run()
    programs = runner.programs()
    supervisord = next(process for process in programs if "supervisor.supervisord" in process.cmdline())
    supervisord.kill()
    assert wait_until(lambda: all(map(ended, programs)), 10)


def test_lines_are_whole_and_named() -> None:
    lines = Lines()
    assert lines.add("web", b"a\nhal") == ["web      | a"]
    assert lines.add("beat", b"other\n") == ["beat     | other"]
    half, rest = "fé\n".encode()[:2], "fé\n".encode()[2:]
    assert lines.add("web", half) == []
    assert lines.add("web", rest) == ["web      | halfé"]


def test_the_listener_answers_every_event() -> None:
    payload = b"processname:web groupname:web pid:7 channel:stdout\nhello\nworld"
    event = b"ver:3.0 serial:1 eventname:PROCESS_LOG_STDOUT len:%d\n" % len(payload) + payload
    answers, screen = io.StringIO(), io.StringIO()
    listen(io.BytesIO(event * 2), answers, screen)
    assert answers.getvalue() == "READY\nRESULT 2\nOKREADY\nRESULT 2\nOKREADY\n"
    assert screen.getvalue() == "web      | hello\nweb      | worldhello\n"


def test_a_lock_is_free_again_once_its_holder_is_killed(tmp_path: Path) -> None:
    code = "import sys, time; from pathlib import Path; from launch.lock import FileLock\n"
    code += "lock = FileLock(Path(sys.argv[1])); print(lock.seize(), flush=True); time.sleep(600)"
    path = tmp_path / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout and holder.stdout.readline() == "True\n"
    lock = FileLock(path)
    assert not lock.seize()
    holder.kill()
    holder.communicate()
    assert lock.seize()
    lock.release()
