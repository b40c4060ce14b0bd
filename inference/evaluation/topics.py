"""Conversations that go on to another topic, made of questions that are asked by themselves.

Intents (benchmarks/traffic): questions in several wordings, with an answer, and a follow-up that makes sense
only after them. A wording after the answer to another intent stands alone; a follow-up after its own leans.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from inference.evaluation.dependence import Message
from inference.evaluation.jsonl import Row, read_rows
from inference.understanding.turns import Turn

# Of the conversations before so many had a follow-up.
_FOLLOWED = 0.3


@dataclass(frozen=True)
class Intent:
    """What one may want to know. `near` names one that is asked in nearly the same words."""

    id: str
    lang: str
    near: str | None
    wordings: tuple[str, ...]
    answer: str
    follow_ups: tuple[str, ...]
    follow_up_answer: str


def read_intents(path: Path) -> list[Intent]:
    """Raises OSError, and BadCase with the line's number."""
    return read_rows(path, _intent)


def _intent(row: Row) -> Intent:
    after = row["follow_up"]
    follow_ups, answer = tuple(after["wordings"]), after["answer"]
    near = row["near_miss_of"]
    return Intent(row["id"], row["lang"], near, tuple(row["wordings"]), row["answer"], follow_ups, answer)


def after_others(intent: Intent, intents: Sequence[Intent]) -> Iterator[Message]:
    """Every wording after a conversation about something else; always the same."""
    chance = random.Random(intent.id)
    others = [one for one in intents if one.lang == intent.lang and not _alike(one, intent)]
    for text in intent.wordings:
        other = chance.choice(others)
        said = _exchange(chance.choice(other.wordings), other.answer)
        if chance.random() < _FOLLOWED:
            said += _exchange(chance.choice(other.follow_ups), other.follow_up_answer)
        yield Message(intent.lang, tuple(said), text, False, text, (), ())


def followed_up(intent: Intent) -> Iterator[Message]:
    """Every wording of the follow-up, after the intent."""
    chance = random.Random(intent.id)
    for text in intent.follow_ups:
        said = _exchange(chance.choice(intent.wordings), intent.answer)
        yield Message(intent.lang, tuple(said), text, True, text, (), ())


def _alike(one: Intent, other: Intent) -> bool:
    return one.id == other.id or one.near == other.id or other.near == one.id


def _exchange(question: str, answer: str) -> list[Turn]:
    return [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
