"""supervisord as a child: it keeps the programs running, and stops when we do."""

import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from launch.options import REPOSITORY
from launch.process import end, recorded
from launch.programs import Program, python, supervisord_configuration

# Longer than all its programs together take.
_STOP_SECONDS = 15


class Supervisor:
    """One supervisord for one VAR_DIR."""

    def __init__(self, var_dir: Path, programs: list[Program], environ: Mapping[str, str]) -> None:
        self._configuration = var_dir / "run" / "supervisord.conf"
        self._pid_file = var_dir / "run" / "supervisord.pid"
        self._logs = var_dir / "log"
        self._programs = programs
        self._environ = dict(environ)
        self._process: subprocess.Popen[bytes] | None = None
        self._screen: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._configuration.parent.mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(parents=True, exist_ok=True)
        text = supervisord_configuration(self._programs, self._configuration.parent.parent)
        self._configuration.write_text(text)
        command = ["-m", "supervisor.supervisord", "--nodaemon", "-c", str(self._configuration)]
        # supervisord opens its standard error a second time for the programs' lines. A pipe bears that; a
        # file would be overwritten from two places, and a terminal may belong to another user.
        self._screen = subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True)
        assert self._screen.stdin
        self._process = subprocess.Popen(
            python("-m", "launch.tether", *python(*command)),
            cwd=REPOSITORY,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=self._screen.stdin,
            stderr=subprocess.STDOUT,
            # A session of its own: Ctrl-C reaches only us, and we stop the programs in order.
            start_new_session=True,
        )
        self._screen.stdin.close()

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """Stop the programs in order, then supervisord; after 15 s kill what is left."""
        self._end(_STOP_SECONDS)

    def kill(self) -> None:
        """End all of it at once."""
        self._end(0)

    def _end(self, timeout: float) -> None:
        if self._process is not None and self.is_running():
            end(psutil.Process(self._process.pid), timeout)
            self._process.wait()
        if self._screen is not None:
            with suppress(subprocess.TimeoutExpired):
                self._screen.wait(2)  # what was said last is to be seen

    def stop_leftover(self) -> bool:
        """Stop a supervisord that a killed run of the same VAR_DIR left behind. Returns whether one was."""
        leftover = recorded(self._pid_file, "supervisord", str(self._configuration))
        if leftover is None or leftover.pid == os.getpid():
            return False
        end(leftover, _STOP_SECONDS)
        return True
