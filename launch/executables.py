"""Programs that the tests need and that may have to be got: which works, and getting it."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path


def first_working(paths: Iterable[str]) -> str | None:
    """The first of these that shows its version."""
    return next((path for path in paths if works(path)), None)


def works(path: str) -> bool:
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def run(command: list[str], folder: Path | None = None, seconds: float | None = None) -> bool:
    """Did it succeed? What it says goes to standard error: our standard output is for a path alone."""
    environ = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        ended = subprocess.run(command, cwd=folder, stdout=sys.stderr, env=environ, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ended.returncode == 0
