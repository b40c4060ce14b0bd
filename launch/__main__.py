"""`python -m launch`: run Reprise on this machine until Ctrl-C. What `make run` calls."""

import sys

from launch.options import Options
from launch.problem import Problem
from launch.run import Interrupted, Run, interrupt_on_signals


def main() -> int:
    """Exit status: 0 when stopped by a person, 1 after a problem, which is printed."""
    interrupt_on_signals()
    try:
        Run(Options.read()).go()
    except Problem as problem:
        print(f"reprise: {problem}", file=sys.stderr)
        return 1
    except Interrupted:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
