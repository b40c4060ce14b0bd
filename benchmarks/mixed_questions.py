"""Traffic drawn from the questions in `benchmarks/traffic`: intents by Zipf's law, each in one of its
wordings, follow-ups that lean on them, and questions that come once."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from inference.evaluation.jsonl import Row, read_rows

FOLDER = Path(__file__).parent / "traffic"
FOLLOW_UPS, ONE_OFFS = 0.20, 0.15
# Of all conversations so many go on to another topic.
_GOES_ON = 0.25

Kind = Literal["intent", "follow-up", "one-off"]


@dataclass(frozen=True)
class Intent:
    """What one may want to know: `wordings` all ask for it. A follow-up makes sense only after another."""

    label: str
    lang: str
    kind: Kind
    wordings: tuple[str, ...]
    answers: tuple[str, ...]
    follow_up: "Intent | None" = None


@dataclass(frozen=True)
class Question:
    """One question as it is asked. The label says what would be a right answer: one produced for the same."""

    label: str
    lang: str
    kind: Kind
    text: str


Talk = tuple[Question, ...]
"""The questions of one conversation, in order."""


def intents() -> list[Intent]:
    return [intent for path in sorted(FOLDER.glob("intents_*.jsonl")) for intent in read_rows(path, _intent)]


def one_offs() -> list[Intent]:
    return [once for path in sorted(FOLDER.glob("one_offs_*.jsonl")) for once in read_rows(path, _one_off)]


def _intent(row: Row) -> Intent:
    after: dict[str, Any] = row["follow_up"]
    follow_up = Intent(after["id"], row["lang"], "follow-up", tuple(after["wordings"]), _answers(after))
    return Intent(row["id"], row["lang"], "intent", tuple(row["wordings"]), _answers(row), follow_up)


def _one_off(row: Row) -> Intent:
    return Intent(row["id"], row["lang"], "one-off", (row["question"],), _answers(row))


def _answers(row: Row) -> tuple[str, ...]:
    return (row["answer"], *row.get("more_answers", ()))


def draw(questions: int, seed: int) -> list[Talk]:
    """Conversations with `questions` questions in all, the same for the same seed: a fifth of them
    follow-ups, 15% asked once (as far as there are that many), the rest intents, of which the one at rank r
    is 1/r as frequent as the first. Every follow-up comes right after its intent."""
    pick = random.Random(seed)
    ranked, single = intents(), one_offs()
    pick.shuffle(ranked)
    pick.shuffle(single)
    single = single[: round(questions * ONE_OFFS)]
    followed = round(questions * FOLLOW_UPS)
    weights = [1 / rank for rank in range(1, len(ranked) + 1)]
    drawn = pick.choices(ranked, weights, k=questions - followed - len(single))
    leads = set(pick.sample(range(len(drawn)), min(followed, len(drawn))))
    topics = [_topic(intent, at in leads, pick) for at, intent in enumerate(drawn)]
    topics += [(_worded(once, pick),) for once in single]
    pick.shuffle(topics)
    return list(_talks(topics, pick))


def _topic(intent: Intent, goes_on: bool, pick: random.Random) -> Talk:
    first = _worded(intent, pick)
    return (first, _worded(intent.follow_up, pick)) if goes_on and intent.follow_up else (first,)


def _worded(intent: Intent, pick: random.Random) -> Question:
    return Question(intent.label, intent.lang, intent.kind, pick.choice(intent.wordings))


def _talks(topics: list[Talk], pick: random.Random) -> Iterator[Talk]:
    rest = iter(topics)
    for topic in rest:
        yield topic + (next(rest, ()) if pick.random() < _GOES_ON else ())


def sample(talks: list[Talk], questions: int) -> list[Talk]:
    """Every so-manieth conversation, until there are about as many questions."""
    step = max(1, sum(map(len, talks)) // questions)
    return talks[::step]
