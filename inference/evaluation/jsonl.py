"""Files of one JSON object a line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Row = dict[str, Any]
Read = TypeVar("Read")


class BadCase(ValueError):
    """A line of the file is not what it should be."""


def read_rows(path: Path, parse: Callable[[Row], Read]) -> list[Read]:
    """What `parse` makes of each line but empty ones. Raises OSError, and BadCase with the line's number
    where `parse` raises ValueError, KeyError or TypeError."""
    found = []
    # Not splitlines(): a line of JSON may hold other marks that end a line of text, such as U+2028.
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if line.strip():
            try:
                found.append(parse(json.loads(line)))
            except (ValueError, KeyError, TypeError) as problem:
                raise BadCase(f"{path}, line {number}: {problem!r}") from problem
    return found
