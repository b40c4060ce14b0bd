"""Processes of ours that outlive the one that started them, found again through their pid files."""

import time
from collections.abc import Callable
from pathlib import Path

import psutil


def recorded(pid_file: Path, *marks: str) -> psutil.Process | None:
    """The live process whose pid stands on the first line of `pid_file`, or None.

    A pid is used again sooner or later (in a container at once), so the command line must contain
    each of `marks` too.
    """
    try:
        process = psutil.Process(int(pid_file.read_text().splitlines()[0]))
        command = " ".join(process.cmdline())
        alive = process.status() != psutil.STATUS_ZOMBIE
    except (OSError, ValueError, IndexError, psutil.Error):
        return None
    return process if alive and all(mark in command for mark in marks) else None


def gone(process: psutil.Process, timeout: float) -> bool:
    """Whether `process` ended within `timeout` seconds. A zombie has ended: its parent's concern."""

    def ended() -> bool:
        try:
            return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    return wait_until(ended, timeout)


def end(process: psutil.Process, timeout: float) -> None:
    """Ask `process` to stop; after `timeout` seconds end it and everything it started."""
    try:
        family = process.children(recursive=True)
        process.terminate()
        if gone(process, timeout):
            return
        family = [process, *process.children(recursive=True), *family]
    except psutil.NoSuchProcess:
        return
    for member in family:
        try:
            member.kill()
        except psutil.NoSuchProcess:
            continue
    gone(process, 5)


def wait_until(condition: Callable[[], bool], timeout: float, pause: float = 0.05) -> bool:
    """Ask `condition` every `pause` seconds until it holds; False after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True
