"""File locks that the kernel releases when their holder ends, however it ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FileLock:
    """An advisory lock (flock) on `path`, shared by many or held by one.

    Not inherited by programs that the holder starts.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def share(self) -> None:
        """Hold it together with others; waits for one who holds it alone."""
        fcntl.flock(self._file, fcntl.LOCK_SH)

    def seize(self) -> bool:
        """Hold it alone, if nobody else holds it at this moment. Gives up a share it had otherwise."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold it alone for the length of a block; waits for its turn."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def write(self, text: str) -> None:
        """Leave a note for those who find it held."""
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, text.encode(), 0)

    def read(self) -> str:
        return os.pread(self._file, 1024, 0).decode(errors="replace")

    def release(self) -> None:
        os.close(self._file)
