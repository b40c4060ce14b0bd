"""What the readers of a generation are told besides its text: how it ended, and what its question took
back."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Self

from .models import Generation


@dataclass(frozen=True)
class Ending:
    """The columns of a generation that is over, but for its text. Times in milliseconds."""

    status: str
    served_by: str
    entry: str | None
    error_code: str
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    queue_ms: float | None
    lookup_ms: float | None
    first_token_ms: float | None
    total_ms: float | None

    @classmethod
    def of(cls, generation: Generation) -> Self:
        return cls(
            status=generation.status,
            served_by=generation.served_by,
            entry=str(generation.entry_id) if generation.entry_id else None,
            error_code=generation.error_code,
            prompt_tokens=generation.prompt_tokens,
            cached_tokens=generation.cached_tokens,
            completion_tokens=generation.completion_tokens,
            queue_ms=generation.queue_ms,
            lookup_ms=generation.lookup_ms,
            first_token_ms=generation.first_token_ms,
            total_ms=generation.total_ms,
        )

    def columns(self) -> dict[str, Any]:
        """For the row of a generation, but for the entry, which may be gone."""
        return {name: value for name, value in asdict(self).items() if name != "entry"}

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))

    def to_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Invalidated:
    """The question was understood as taking something back: in which way, and how many entries that
    touched."""

    signal: str
    entries: int

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))

    def to_json(self) -> str:
        return json.dumps(asdict(self))
