"""Case files: a stored conversation, and a question that it should or should not answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from inference.understanding.turns import Turn

from .jsonl import Row, read_rows

Expect = Literal["hit", "reject"]


@dataclass(frozen=True)
class Case:
    """`seed` ends with the stored answer, `probe` with the question asked now. `fresh` is another right
    answer to the probe, `third` one more conversation that expects the same."""

    id: str
    lang: str
    kind: str
    expect: Expect
    seed: tuple[Turn, ...]
    probe: tuple[Turn, ...]
    fresh: str = ""
    third: tuple[Turn, ...] = ()

    @property
    def answer(self) -> str:
        return self.seed[-1]["content"]


def read(path: Path) -> list[Case]:
    """The cases of a JSONL file. Raises OSError, and BadCase with the line's number."""
    return read_rows(path, parse_case)


def parse_case(row: Row) -> Case:
    """Raises ValueError, KeyError or TypeError for a row that is none."""
    if row["expect"] not in ("hit", "reject"):
        raise ValueError(f"expect is {row['expect']!r}, neither hit nor reject")
    probe = _turns(row["probe"], "user")
    return Case(
        id=str(row["id"]),
        lang=str(row["lang"]),
        kind=str(row["class"]),
        expect=row["expect"],
        seed=_turns(row["seed"], "assistant"),
        probe=probe,
        fresh=str(row.get("fresh") or ""),
        third=_third(row.get("third"), probe),
    )


def _turns(rows: Any, last: str) -> tuple[Turn, ...]:
    turns = tuple(Turn(role=row["role"], content=str(row["content"])) for row in rows)
    if not turns or turns[-1]["role"] != last:
        raise ValueError(f"the last turn must be of the {last}")
    if any(turn["role"] not in ("system", "user", "assistant") for turn in turns):
        raise ValueError("a turn's role is system, user or assistant")
    return turns


def _third(third: Any, probe: Sequence[Turn]) -> tuple[Turn, ...]:
    """A conversation of its own, or another wording of the probe's last question."""
    if not third:
        return ()
    if isinstance(third, str):
        return (*probe[:-1], Turn(role="user", content=third))
    return _turns(third, "user")
