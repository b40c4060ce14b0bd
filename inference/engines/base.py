"""The agreement between whoever asks and whatever answers."""

import math
from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass, field
from typing import Literal, Protocol

from inference.kv.snapshot import Snapshot
from inference.understanding.turns import Turn, Turns

__all__ = [
    "Delta",
    "Engine",
    "EngineFailed",
    "EngineUnavailable",
    "Finished",
    "Identity",
    "Reason",
    "Request",
    "Sampling",
    "Turn",
    "Turns",
]

Reason = Literal["stop", "length", "cancelled"]


class EngineUnavailable(Exception):
    """The engine cannot answer now and may later: no model in place, worker gone, queue full. Retryable."""


class EngineFailed(Exception):
    """This request cannot be answered, or broke while it was; asking again as it is won't help."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What an answer depends on besides the conversation and the sampling. Two engines with equal
    identities may share answers. Each part names its content, so a changed file is another identity."""

    model: str
    tokenizer: str
    template: str
    dtype: str

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is picked. Temperature 0 is greedy: the likeliest token, `top_p` and `seed` unused.
    Without a seed every request draws its own. `stop` strings end the answer and are no part of it.
    Raises ValueError for figures no engine could use."""

    temperature: float = 0.0
    max_tokens: int = 512
    top_p: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise ValueError(f"temperature must be 0 or more, not {self.temperature}")
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, not {self.max_tokens}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, not {self.top_p}")
        if "" in self.stop:  # true of a bare str too, which would be read as its letters
            raise ValueError("stop must be a tuple of strings, none of them empty")


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Request:
    """One question to an engine. `turns`: system prompt first (if any), the user's question last.
    `cancelled` is asked before every chunk of the prompt and every token, from the thread that reads the
    stream; what it raises ends the stream. `cache_salt` keeps computed state of different scopes apart.
    `session` ("" for none) says which conversation will come back for it. Of `choices` is wanted how likely
    each is to begin the answer; their first tokens should differ."""

    id: str
    turns: Turns
    sampling: Sampling = field(default_factory=Sampling)
    cancelled: Callable[[], bool] = _never
    cache_salt: str = ""
    session: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Delta:
    """More of the answer. `text` is never empty and holds whole characters only; `token_ids` are the tokens
    read since the previous delta, this text's among them."""

    text: str
    token_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of a stream that didn't raise.

    `prompt_tokens` counts the prompt as the model saw it, `cached_tokens` how many of those were not
    computed again. `output_token_ids` is every token the model gave, an end-of-turn token included;
    `completion_tokens` is their number. `prompt_cut`: the question itself lost its middle, so this answer
    must not be stored. `history_cut`: the oldest turns were left out. `chances`: for each of the request's
    choices, how likely the model found it to begin the answer, from 0 to 1; empty if it was not asked, or
    can't tell."""

    reason: Reason
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    prompt_cut: bool
    history_cut: bool
    output_token_ids: tuple[int, ...]
    chances: tuple[float, ...] = ()


# A model of fewer parameters says yes to most of what it is asked.
STRONG_PARAMETERS = 3_000_000_000


class Engine(Protocol):
    """Every method may be called from several threads at once."""

    @property
    def window(self) -> int:
        """Tokens of prompt and answer together."""
        ...

    @property
    def strong(self) -> bool:
        """Does it declare itself able to judge whether one answer may stand for another? By its
        parameters, where those are known: STRONG_PARAMETERS or more."""
        ...

    def identity(self) -> Identity: ...

    def stream(self, request: Request) -> Generator[Delta | Finished, None, None]:
        """Deltas, then one Finished. Closing the generator early abandons the answer. Raises
        EngineUnavailable, EngineFailed, and ValueError for turns that end in no question."""
        ...

    def count_tokens(self, turns: Turns) -> int:
        """The length of these turns as a prompt, nothing cut."""
        ...

    def reset(self) -> None:
        """Forgets all computed state that was kept for reuse; running streams go on."""
        ...

    def end_session(self, session: str) -> None:
        """Nobody comes back for this session: what is kept for it alone may go first. One that isn't known is
        no error; an engine that keeps nothing by session does nothing."""
        ...

    def kv_report(self) -> dict[str, int]:
        """Counts and bytes of the keys and values held now."""
        ...

    def kv_snapshot(self) -> Snapshot:
        """Who holds them, for people to look at. Raises EngineUnavailable when it can't be told now."""
        ...
