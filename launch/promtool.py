"""`python -m launch.promtool`: print the path of a promtool that works, after getting one if there is none.

The system's; else the one in Debian's package `prometheus`, of which nothing else is kept, and nothing
installed.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from launch.executables import first_working, run
from launch.options import var_dir
from launch.problem import Problem

# Of each step of fetching it.
_SECONDS = 300


def installed() -> str | None:
    """The path of a promtool on this machine: PROMTOOL's, or the first that shows its version."""
    return first_working(_candidates())


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
    with tempfile.TemporaryDirectory(dir=own.parent) as name:
        folder = Path(name)
        run_here = partial(run, folder=folder, seconds=_SECONDS)
        download = ["apt-get", "download", "prometheus"]
        # A machine that is new has no lists yet, which only root may fetch.
        if not (run_here(download) or (run_here(["apt-get", "update"]) and run_here(download))):
            return False
        package = next(folder.glob("*.deb"), None)
        if package is None or not run_here(["dpkg", "-x", package.name, "."]):
            return False
        taken = folder / "usr" / "bin" / "promtool"
        if taken.exists():
            taken.replace(own)
    return own.exists()


if __name__ == "__main__":
    try:
        print(obtain())
    except Problem as problem:
        sys.exit(f"reprise: {problem}")
