"""Which Python this runs on. Read by whatever Python there is, so written for old ones too."""

from __future__ import annotations

import sys

from launch.problem import Problem

OLDEST = (3, 11)
NEWEST = (3, 13)


def check_python(version: tuple[int, ...] = tuple(sys.version_info[:3])) -> None:
    """Raises: Problem for a Python that is too old or too new."""
    if not OLDEST <= tuple(version[:2]) <= NEWEST:
        found = ".".join(str(part) for part in version)
        raise Problem(
            f"Reprise needs Python 3.11, 3.12 or 3.13, and this is {found}: install one of those, and if it "
            "isn't found by itself, name it, as in `make run PYTHON=python3.12`."
        )
