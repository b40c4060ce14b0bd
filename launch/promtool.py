"""`python -m launch.promtool`: print the path of a promtool that works, after getting one if there is none.

The system's; else the one in Debian's package `prometheus`, of which nothing else is kept, and nothing
installed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from launch.options import var_dir
from launch.problem import Problem


def installed() -> str | None:
    """The path of a promtool on this machine: PROMTOOL's, or the first that shows its version."""
    return next((path for path in _candidates() if _works(path)), None)


def obtain() -> str:
    """As `installed`, but one is fetched if there is none. Raises: Problem if that fails."""
    if path := installed():
        return path
    if shutil.which("apt-get") and shutil.which("dpkg"):
        print("Fetching promtool through apt ...", file=sys.stderr, flush=True)
        if _fetched() and (path := installed()):
            return path
    raise Problem(
        "No promtool for the tests of the alerts: install Prometheus (Debian's package has it), or set "
        "PROMTOOL to its path."
    )


def _candidates() -> Iterator[str]:
    if given := os.environ.get("PROMTOOL"):
        yield given
        return
    if found := shutil.which("promtool"):
        yield found
    yield str(_own())


def _own() -> Path:
    return var_dir() / "bin" / "promtool"


def _fetched() -> bool:
    """Out of the package, without what it depends on: promtool is one program that needs nothing else."""
    own = _own()
    own.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=own.parent) as folder:
        download = ["apt-get", "download", "prometheus"]
        # A machine that is new has no lists yet, which only root may fetch.
        if not (_run(download, folder) or (_run(["apt-get", "update"], folder) and _run(download, folder))):
            return False
        package = next(Path(folder).glob("*.deb"), None)
        if package is None or not _run(["dpkg", "-x", package.name, "."], folder):
            return False
        taken = Path(folder, "usr", "bin", "promtool")
        if taken.exists():
            taken.replace(own)
    return own.exists()


def _works(path: str) -> bool:
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _run(command: list[str], folder: str) -> bool:
    try:
        # Our standard output is for the path alone.
        return subprocess.run(command, cwd=folder, stdout=sys.stderr, timeout=300).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


if __name__ == "__main__":
    try:
        print(obtain())
    except Problem as problem:
        sys.exit(f"reprise: {problem}")
