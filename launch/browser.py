"""`python -m launch.browser`: print the path of a Chromium that works, after getting one if there is none.

The system's; as root one that apt brings; else Playwright's own.
"""

import os
import shutil
import sys
from collections.abc import Iterator

from launch.executables import first_working, run, works
from launch.problem import Problem

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def installed() -> str | None:
    """The path of a Chromium on this system: CHROMIUM's, or the first that shows its version."""
    return first_working(_candidates())


def obtain() -> str:
    """As `installed`, but one is installed if there is none. Raises: Problem if that fails."""
    if path := installed():
        return path
    if os.geteuid() == 0 and shutil.which("apt-get"):
        _say("Installing Chromium through apt ...")
        done = run(["apt-get", "update"]) and run(["apt-get", "install", "-y", "chromium"])
        # Ubuntu's package is a note that points to a snap, hence the second look.
        if done and (path := installed()):
            return path
    _say("Installing Playwright's own Chromium ...")
    dependencies = ["--with-deps"] if os.geteuid() == 0 else []
    if run([sys.executable, "-m", "playwright", "install", *dependencies, "chromium"]):
        path = _playwright_path()
        if works(path):
            return path
    raise Problem(
        "No Chromium for the browser tests: as root `apt-get install chromium`, or set CHROMIUM to its path."
    )


def _candidates() -> Iterator[str]:
    if given := os.environ.get("CHROMIUM"):
        yield given
        return
    yield from filter(None, map(shutil.which, _NAMES))
    yield _playwright_path()


def _playwright_path() -> str:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        return playwright.chromium.executable_path


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        print(obtain())
    except Problem as problem:
        sys.exit(f"reprise: {problem}")
