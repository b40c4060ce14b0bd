"""Ends processes once the one that started them is gone, however it went: kill -9 runs no clean-up.

vLLM's EngineCore doesn't notice that nobody is left to ask it: it stays, with the model's and the cache's
memory, on a GPU until somebody looks.
"""

import os
import subprocess
import sys
from collections.abc import Iterable

# A handle to a process, unlike its number, never comes to mean another one.
_WATCH = """
import os, signal, sys
handles = []
for number in sys.argv[1:]:
    try:
        handles.append(os.pidfd_open(int(number)))
    except ProcessLookupError:
        pass
sys.stdin.buffer.read()  # ends when the other end of the pipe is gone
for handle in handles:
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        pass
"""


class Watchdog:
    """Kills the processes `pids` when this process ends, or at `close`. Linux only; elsewhere it is idle."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        if hasattr(os, "pidfd_open"):
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _WATCH, *map(str, pids)],
                stdin=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for those who are watched
            )

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()
