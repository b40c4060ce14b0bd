"""The programs that make up a running Reprise, and their supervisord configuration."""

import io
import os
import shlex
import sys
from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path

from launch.options import REPOSITORY, Options

WORKERS = 30  # the rank of those that stop side by side


@dataclass(frozen=True)
class Program:
    """One supervised program.

    `rank` orders the start (and, backwards, the stop); `patience` is how many seconds it has to stop.
    With `listens` set, each of `processes` gets a socket listening on that address as standard input.
    """

    name: str
    command: list[str]
    rank: int
    patience: int
    listens: str = ""
    processes: int = 1


def python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]


def web() -> list[str]:
    return python("-m", "launch.web")


def worker(queue: str, threads: int, number: int = 1) -> list[str]:
    """A Celery worker for one queue, the `number`th of those that we start. Threads: an engine or a
    connection pool must not be forked.

    Started again it has the same name, and so finds what waits for it.

    It takes a task only when a thread is free: a message that waits in a busy worker's memory is one
    that no other worker can take.
    """
    options = ["--queues", queue, "--hostname", f"{queue}-{os.getpid()}-{number}@%h", "--pool", "threads"]
    pace = ["--concurrency", str(threads), "--prefetch-multiplier", "1", "-O", "fair"]
    alone = ["--without-gossip", "--without-mingle"]
    return _celery("worker", *options, *pace, *alone)


def beat(schedule: Path) -> list[str]:
    return _celery("beat", "--schedule", str(schedule), "--pidfile", "")


def _celery(*arguments: str) -> list[str]:
    """Without its banner. As root it warns that root is a danger when it unpickles; we send JSON only."""
    silence = ["-W", "ignore:You're running the worker with superuser"]
    return python(*silence, "-m", "celery", "-A", "config.celery", "--quiet", *arguments)


def stack(options: Options) -> list[Program]:
    """What `make run` supervises. Together they have 13 s to stop: workers stop side by side."""
    listens = f"tcp://{options.host}:{options.port}"
    schedule = options.var_dir / "run" / "beat-schedule"
    return [
        Program("beat", beat(schedule), rank=20, patience=3),
        Program("answer", worker("answer", options.answer_concurrency), rank=WORKERS, patience=6),
        *_generate_workers(options),
        Program("web", web(), rank=40, patience=4, listens=listens, processes=options.web_processes),
    ]


def _generate_workers(options: Options) -> list[Program]:
    return [
        Program(
            "generate" if number == 1 else f"generate-{number}",
            worker("generate", options.generate_concurrency, number),
            rank=WORKERS,
            patience=6,
        )
        for number in range(1, options.generate_workers + 1)
    ]


def supervisord_configuration(programs: list[Program], var_dir: Path) -> str:
    """The text of a configuration file for `supervisord`."""
    parser = ConfigParser(interpolation=None)
    parser["supervisord"] = _supervisord(var_dir)
    parser["eventlistener:log"] = _log_listener(var_dir)
    for program in programs:
        kind = "fcgi-program" if program.listens else "program"
        parser[f"{kind}:{program.name}"] = _program(program, var_dir)
    workers = [program.name for program in programs if program.rank == WORKERS]
    parser["group:workers"] = {"programs": ",".join(workers), "priority": str(WORKERS)}
    text = io.StringIO()
    parser.write(text)
    return text.getvalue()


def _supervisord(var_dir: Path) -> dict[str, str]:
    settings = {
        "nodaemon": "true",
        "logfile": _literal(str(var_dir / "log" / "supervisord.log")),
        "logfile_maxbytes": "5MB",
        "logfile_backups": "3",
        "pidfile": _literal(str(var_dir / "run" / "supervisord.pid")),
        "directory": _literal(str(REPOSITORY)),
    }
    return settings | ({"user": "root"} if os.geteuid() == 0 else {})


def _log_listener(var_dir: Path) -> dict[str, str]:
    return {
        "command": _command(python("-m", "launch.console_log")),
        "events": "PROCESS_LOG",
        "priority": "10",
        "buffer_size": "10000",
        "stderr_logfile": "/dev/fd/2",
        "stderr_logfile_maxbytes": "0",
        "autorestart": "true",
    }


def _program(program: Program, var_dir: Path) -> dict[str, str]:
    settings = {
        "command": _command(program.command),
        "priority": str(program.rank),
        "autorestart": "true",
        "startsecs": "3",
        # It waits a second longer after each failed start; giving up would need a person to notice.
        "startretries": "1000",
        "stopwaitsecs": str(program.patience),
        "killasgroup": "true",
        "stdout_logfile": _literal(str(var_dir / "log" / f"{program.name}.log")),
        "stdout_logfile_maxbytes": "5MB",
        "stdout_logfile_backups": "3",
        "stdout_events_enabled": "true",
        "redirect_stderr": "true",
    }
    if program.listens:
        settings |= {"socket": program.listens, "socket_backlog": "1024"}
    if program.processes > 1:
        settings |= {"numprocs": str(program.processes), "process_name": "%(program_name)s-%(process_num)d"}
        settings["stdout_logfile"] = _literal(str(var_dir / "log")) + "/%(program_name)s-%(process_num)d.log"
    return settings


def _command(command: list[str]) -> str:
    return _literal(shlex.join(python("-m", "launch.tether", *command)))


def _literal(text: str) -> str:
    """`text` for a supervisord configuration, where % begins an expansion."""
    return text.replace("%", "%%")
