"""What is dear to find out and may be some seconds old, in this process."""

import time
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Known = TypeVar("Known")


class Memory:
    """Keeps what was found for so many `seconds`, and at most so many findings (`most`)."""

    def __init__(self, seconds: float, most: int = 50) -> None:
        self._seconds, self._most = seconds, most
        self._known: dict[Hashable, tuple[float, Any]] = {}

    def get(self, name: Hashable, find: Callable[[], Known]) -> Known:
        """What `find` finds, now or a while ago under this name."""
        known = self._known.get(name)
        if known is None or time.monotonic() - known[0] > self._seconds:
            if len(self._known) > self._most:
                self._known.clear()
            known = self._known[name] = (time.monotonic(), find())
        found: Known = known[1]
        return found

    def forget(self) -> None:
        """Find it all anew."""
        self._known.clear()
