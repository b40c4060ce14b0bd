"""What `make run` does, from the first check to the last stop."""

import os
import shutil
import signal
import subprocess
import time
from types import FrameType

from launch import preflight
from launch.embedded import Embedded, needed
from launch.health import missing
from launch.lock import FileLock
from launch.options import REPOSITORY, Options
from launch.problem import Problem
from launch.programs import python, stack
from launch.python_version import check_python
from launch.supervisor import Supervisor

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """Someone asked us to stop. Not an Exception: nothing on the way may take it for an error."""


class Run:
    """One start of the whole stack, up to its end."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._counted = options.var_dir / "run" / "metrics"  # by all programs, for /metrics
        self.environ = dict(os.environ)
        self.environ |= {
            "VAR_DIR": str(options.var_dir),
            "MODEL_DIR": str(options.model_dir),
            "DJANGO_SETTINGS_MODULE": options.settings_module,
            "PYTHONUNBUFFERED": "1",
            "PROMETHEUS_MULTIPROC_DIR": str(self._counted),
        }
        self.embedded: Embedded | None = None
        self.supervisor = Supervisor(options.var_dir, stack(options), self.environ)
        self._lock: FileLock | None = None

    def go(self) -> None:
        """Start everything and keep it running until Interrupted. Raises: Problem."""
        try:
            self._check()
            self._prepare()
            self.supervisor = Supervisor(self.options.var_dir, stack(self.options), self.environ)
            self.supervisor.start()
            # Beside the programs, which take longer to start than this does.
            operator = self._spawn_create_operator()
            self._wait_until_ready()
            self._welcome(operator)
            self._watch()
        finally:
            self._stop()

    def _check(self) -> None:
        options = self.options
        check_python()
        preflight.check_writable(options.var_dir)
        self._lock = _hold(options)
        if self.supervisor.stop_leftover():
            say("Stopped what an earlier run had left behind.")
        preflight.check_port(options.host, options.port)
        fresh = not options.model_dir.exists()
        preflight.check_disk(
            options.var_dir, preflight.MEGABYTES_FOR_MODEL if fresh else preflight.MEGABYTES_TO_RUN
        )
        if url := self.environ.get("DATABASE_URL"):
            preflight.check_database(url)
        if url := self.environ.get("REDIS_URL"):
            preflight.check_redis(url)

    def _prepare(self) -> None:
        self._count_anew()
        if self.environ.get("ENGINE", "torch") != "openai":  # torch and vLLM read MODEL_DIR
            self._do("The model could not be prepared", "-m", "inference.engines.weights")
        self.embedded = needed(self.environ)
        if self.embedded:
            say("Starting embedded " + " and ".join(service.name for service in self.embedded.services))
            self.embedded.start()
            self.environ |= self.embedded.environment()
        self._do("The database could not be migrated", "manage.py", "migrate", "--no-input", "-v", "0")

    def _count_anew(self) -> None:
        """Counters begin with each run: what is left of programs that nobody runs any more only grows."""
        shutil.rmtree(self._counted, ignore_errors=True)
        self._counted.mkdir(parents=True)

    def _do(self, failure: str, *arguments: str) -> None:
        done = subprocess.run(python(*arguments), cwd=REPOSITORY, env=self.environ)
        if done.returncode:
            raise Problem(f"{failure}; what it said stands above.")

    def _spawn_create_operator(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            python("manage.py", "create_operator"),
            cwd=REPOSITORY,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _wait_until_ready(self) -> None:
        said = None
        while (lacks := missing(f"http://{self.options.reach}:{self.options.port}")) is not None:
            if lacks != said:
                say(f"Waiting for: {lacks}")
                said = lacks
            self._keep()
            time.sleep(0.5)

    def _welcome(self, operator: "subprocess.Popen[str]") -> None:
        account, _ = operator.communicate()
        if operator.returncode:
            raise Problem("The operator's account could not be made: " + " ".join(account.split()))
        say("Ready. Ctrl-C stops it.")
        say(f"  Chat     {self.options.address}/")
        say(f"  Console  {self.options.address}/console/")
        say("  " + account.strip().replace("\n", "\n  "))

    def _watch(self) -> None:
        while True:
            self._keep()
            time.sleep(1)

    def _keep(self) -> None:
        """Start again what died outside supervisord's care, and supervisord."""
        try:
            restarted = self.embedded.ensure_running() if self.embedded else []
        except Problem as problem:
            say(f"{problem} (trying again)")
            return
        for name in restarted:
            say(f"{name} had died and was started again.")
        if not self.supervisor.is_running():
            say("supervisord had died and is started again.")
            self.supervisor.stop_leftover()
            self.supervisor.start()

    def _stop(self) -> None:
        try:
            if self.supervisor.is_running():
                say("Stopping (Ctrl-C again: at once) ...")
            self.supervisor.stop()
        except Interrupted:
            self.supervisor.kill()
        finally:
            for number in _STOP_SIGNALS:
                signal.signal(number, signal.SIG_IGN)
            stopped = self.embedded.stop() if self.embedded else []
            if stopped:
                say(f"Stopped {' and '.join(stopped)}.")
            if self._lock:
                self._lock.release()


def _hold(options: Options) -> FileLock:
    lock = FileLock(options.var_dir / "locks" / "run")
    if not lock.seize():
        raise Problem(
            f"Reprise already runs with {options.var_dir} ({lock.read().strip()}): "
            "stop it, or set VAR_DIR and PORT for a second one."
        )
    lock.write(f"process {os.getpid()}, {options.address}/\n")
    return lock


def interrupt_on_signals() -> None:
    """Turn each signal that asks us to stop into Interrupted, except those we were told to ignore (nohup)."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    for number in _STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt)


def say(text: str) -> None:
    print(text, flush=True)
