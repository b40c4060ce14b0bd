"""Logs of conversations: JSON lines, one conversation each, oldest first.

    {"id": "…", "turns": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…", "seconds":
    1.5}]}

`turns` may be called `messages` or be the line itself, `content` may be called `text`; `id` and `seconds`
(what the answer took to write) may be missing, and so may answers. What a system prompt says is left out: it
is part of the scope.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.understanding.turns import Turn

from .jsonl import Row, read_rows

_ROLES = ("system", "user", "assistant")


@dataclass(frozen=True)
class Question:
    """A question, with all that was said before it (itself last), and the answer that it got, "" where it got
    none; `seconds` is what that took, None where nobody knows."""

    turns: tuple[Turn, ...]
    answer: str = ""
    seconds: float | None = None

    @property
    def text(self) -> str:
        return self.turns[-1]["content"]


@dataclass(frozen=True)
class Talk:
    """One conversation."""

    id: str
    turns: tuple[Turn, ...]
    seconds: tuple[float | None, ...]

    def questions(self) -> Iterator[Question]:
        for at, turn in enumerate(self.turns):
            if turn["role"] != "user":
                continue
            answered = at + 1 < len(self.turns) and self.turns[at + 1]["role"] == "assistant"
            answer = self.turns[at + 1]["content"] if answered else ""
            yield Question(self.turns[: at + 1], answer, self.seconds[at + 1] if answered else None)


def read(path: Path) -> list[Talk]:
    """The conversations of a log. Raises OSError, UnicodeDecodeError, and BadCase with the line's number."""
    return read_rows(path, parse)


def parse(row: Row | Sequence[Any]) -> Talk:
    """Raises ValueError, KeyError or TypeError for a row that is none."""
    turns = row if isinstance(row, list) else _turns_of(row)
    if not isinstance(turns, list) or not turns:
        raise ValueError("a conversation is a list of turns, and not an empty one")
    read = [_turn(one) for one in turns]
    said = [(turn, seconds) for turn, seconds in read if turn["role"] != "system"]
    if not any(turn["role"] == "user" for turn, _seconds in said):
        raise ValueError("nobody asks anything in this conversation")
    name = str(row.get("id") or "") if isinstance(row, Mapping) else ""
    return Talk(name, tuple(turn for turn, _s in said), tuple(seconds for _t, seconds in said))


def _turns_of(row: Any) -> Any:
    if not isinstance(row, Mapping):
        raise ValueError("a line is a list of turns, or an object with `turns`")
    if "turns" not in row and "messages" not in row:
        raise KeyError("turns")
    return row["turns"] if "turns" in row else row["messages"]


def _turn(one: Any) -> tuple[Turn, float | None]:
    if not isinstance(one, Mapping) or one.get("role") not in _ROLES:
        raise ValueError(f"a turn has a role, one of {', '.join(_ROLES)}, and not {one!r:.80}")
    text = one["content"] if "content" in one else one["text"]
    if not isinstance(text, str) or not text.strip():
        raise ValueError("a turn says something")
    seconds = one.get("seconds")
    if seconds is not None and not (
        isinstance(seconds, int | float) and math.isfinite(seconds) and seconds >= 0
    ):
        raise ValueError(f"seconds are a number from 0 on, and not {seconds!r:.40}")
    # Postgres stores no NUL.
    return Turn(role=one["role"], content=text.replace("\x00", "")), seconds


def _is_time(seconds: Any) -> bool:
    return isinstance(seconds, int | float) and math.isfinite(seconds) and seconds >= 0
