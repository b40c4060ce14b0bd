"""The rules by which questions are read and compared, as one short name: part of every scope.

Two deploys whose rules differ must not serve each other's entries, and a version that somebody raises by hand
is one that somebody forgets. So the name holds the content of the rules too: their code, without comments and
spacing, and their weights.
"""

import ast
import hashlib
import threading
from functools import cache
from pathlib import Path

from .understanding import fingerprint, signals

_ROOM = Path(__file__).parent
_RULES = ("understanding/*", "cache/probe.py", "cache/prints.py")


# In two threads at a time Python 3.11 loses count of how deep it parses, and fails.
_PARSING = threading.Lock()


@cache
def version() -> str:
    """Read from this process's own files once (0.3 s)."""
    with _PARSING:
        return f"fingerprint-{fingerprint.VERSION} signals-{signals.VERSION} rules-{digest(_ROOM)[:16]}"


def digest(room: Path) -> str:
    """Of the rules' code and data under `room`."""
    files = sorted(file for pattern in _RULES for file in room.glob(pattern))
    found = hashlib.sha256()
    for file in files:
        if file.suffix in (".py", ".json"):
            found.update(f"{file.relative_to(room)}\n".encode())
            found.update(_meaning(file))
    return found.hexdigest()


def _meaning(file: Path) -> bytes:
    content = file.read_bytes()
    return ast.dump(ast.parse(content)).encode() if file.suffix == ".py" else content
