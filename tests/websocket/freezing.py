"""Time stands still for one program of the stack, so that a test can act in the middle of an answer."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from tests.stack import Stack


@contextmanager
def frozen(stack: Stack, program: str = "generate") -> Iterator[None]:
    stack.kill(program, signal.SIGSTOP)
    try:
        yield
    finally:
        stack.kill(program, signal.SIGCONT)
