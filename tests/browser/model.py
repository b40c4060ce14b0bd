"""Time stands still for the model, so that a test can act in the middle of an answer however busy the
machine is."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.stack import Stack

# In this time the model writes a few words. An answer has more of them here.
_BURST_SECONDS = 0.12
_LOOK_SECONDS = 0.15
_PATIENCE_SECONDS = 45


@contextmanager
def halted(stack: Stack) -> Iterator[None]:
    stack.kill("generate", signal.SIGSTOP)
    try:
        yield
    finally:
        stack.kill("generate", signal.SIGCONT)


def let_write_until(stack: Stack, seen: Callable[[], bool]) -> None:
    """Of a halted model: let it write in bursts until `seen()`. Raises AssertionError."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not _soon(seen):
        assert time.monotonic() < deadline, "Nothing was written"
        stack.kill("generate", signal.SIGCONT)
        time.sleep(_BURST_SECONDS)
        stack.kill("generate", signal.SIGSTOP)


def _soon(seen: Callable[[], bool]) -> bool:
    """Now, or once the page has caught up."""
    deadline = time.monotonic() + _LOOK_SECONDS
    while not seen():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
