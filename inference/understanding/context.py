"""What a question stands in: the topic of the first turn, the last few turns, and the rest by digest."""

import hashlib
import json
from dataclasses import dataclass

from .normalise import normalise
from .turns import Turn, Turns


@dataclass(frozen=True)
class Context:
    """`window` is the last turns before the question, `older` a digest of all before those ("" if none)."""

    question: str
    topic: str
    window: tuple[Turn, ...]
    older: str


def _digest(turns: Turns) -> str:
    """One digest for turns that read alike; roles count."""
    plain = [[turn["role"], normalise(turn["content"])] for turn in turns]
    return hashlib.sha256(json.dumps(plain, ensure_ascii=False).encode()).hexdigest()


def read_context(turns: Turns, exchanges: int = 5) -> Context:
    """The context of the last turn, which must be a user's. `exchanges` is how many question-and-answer
    pairs the window holds. Raises ValueError when there is no question."""
    if not turns or turns[-1]["role"] != "user":
        raise ValueError("The last turn must be the user's question.")
    before = list(turns[:-1])
    window, older = before[-2 * exchanges :], before[: -2 * exchanges]
    topic = next((turn["content"] for turn in turns if turn["role"] == "user"), "")
    return Context(
        question=turns[-1]["content"],
        topic=topic,
        window=tuple(window),
        older=_digest(older) if older else "",
    )


def exact_key(scope_hash: str, context: Context) -> str:
    """Hex SHA-256 over scope, question and everything said before it: the same words after another history
    are another question."""
    parts = [
        scope_hash,
        normalise(context.question),
        normalise(context.topic),
        _digest(context.window),
        context.older,
    ]
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()
