"""The text that every prompt holds behind the system prompt: read again as soon as its file changes."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from inference.engines.base import EngineUnavailable


@dataclass(frozen=True)
class Knowledge:
    """`version` names the content; both are "" when no file is set."""

    text: str
    version: str


def read() -> Knowledge:
    """What KNOWLEDGE_FILE says now. Raises EngineUnavailable when it can't be read: without it another answer
    would come out."""
    if not settings.KNOWLEDGE_FILE:
        return Knowledge("", "")
    file = Path(settings.KNOWLEDGE_FILE)
    try:
        seen = file.stat()
        return _read(file, seen.st_mtime_ns, seen.st_size)
    except (OSError, UnicodeDecodeError) as problem:
        raise EngineUnavailable(f"KNOWLEDGE_FILE {file} can't be read: {problem}") from problem


@lru_cache(maxsize=4)
def _read(file: Path, mtime_ns: int, size: int) -> Knowledge:
    text = file.read_text(encoding="utf-8").strip()
    return Knowledge(text, hashlib.sha256(text.encode()).hexdigest() if text else "")
