"""`python -m launch.tether PROGRAM ARGUMENTS...`: run a program that is told to stop when its parent dies.

Without it a killed supervisor would leave its programs behind, on the port that the next one needs.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def tether(parent: int) -> None:
    """Have the kernel send us SIGTERM when process `parent`, which must be ours, ends (Linux only).

    Kept across exec. Elsewhere leftovers are found by their pid file, at the next start.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # it died before we were tethered to it
        raise SystemExit(1)


if __name__ == "__main__":
    tether(os.getppid())
    os.execvp(sys.argv[1], sys.argv[1:])
