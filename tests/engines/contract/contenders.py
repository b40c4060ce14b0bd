"""The engines that the contract is held against, each as it would serve."""

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.engines import create_engine, identity
from inference.engines.base import Delta, Engine, Finished, Identity, Request, Sampling
from inference.understanding.turns import Turn

from .served import Server

# Small, so that a history which doesn't fit is quickly read.
WINDOW = 1024
# The smallest blocks that its CPU attention knows, so that short prompts share some (its default is 128).
VLLM_OPTIONS = {"enforce_eager": True, "block_size": 32, "max_num_seqs": 8}


@dataclass(frozen=True)
class Contender:
    """An engine, how it was built, and what of the contract is beyond it: an API without token ids has none
    to give, and what is computed elsewhere can't be forgotten from here."""

    kind: str
    options: dict[str, Any]
    engine: Engine
    token_ids: bool = True
    forgets: bool = True

    def identity(self, **changed: Any) -> Identity:
        return identity(self.kind, **{**self.options, **changed})


def names() -> list[str]:
    """Those that this environment has the libraries for, by the word of whoever runs the tests."""
    return os.environ.get("CONTRACT_ENGINES", "torch").split()


@contextmanager
def contender(name: str, model_dir: Path, server: Callable[[], Server]) -> Iterator[Contender]:
    """`name` is torch, vllm (in this process), vllm-serve or openai; the last two ask `server`."""
    if name == "torch":
        options: dict[str, Any] = {"model_dir": model_dir, "window": WINDOW}
        yield Contender("torch", options, create_engine("torch", **options))
        return
    if name == "vllm":
        options = {"model_dir": model_dir, "window": WINDOW, "options": VLLM_OPTIONS}
        traits: dict[str, bool] = {}
    elif name == "vllm-serve":
        options, traits = {"model_dir": model_dir, "url": server().url}, {}
    elif name == "openai":
        options = {"base_url": f"{server().url}/v1", "model": server().model}
        traits = {"token_ids": False, "forgets": False}
    else:
        raise ValueError(f"CONTRACT_ENGINES names {name!r}, which is no contender")
    kind = name.removesuffix("-serve")
    engine: Any = create_engine(kind, **options)
    try:
        yield Contender(kind, options, engine, **traits)
    finally:
        engine.close()


@dataclass
class Reply:
    """A stream read to its end."""

    text: str
    deltas: list[Delta]
    finished: Finished


Said = Turn | str


def request(*said: Said, **more: Any) -> Request:
    """A question, the last of `said`; strings are the user's. `more`: sampling, and what a Request has."""
    turns: list[Turn] = [{"role": "user", "content": one} if isinstance(one, str) else one for one in said]
    own = {name: more.pop(name) for name in ("cancelled", "cache_salt", "session", "choices") if name in more}
    return Request("a request", turns, Sampling(**more), **own)


def read(stream: Generator[Delta | Finished, None, None]) -> Reply:
    *deltas, finished = stream
    assert isinstance(finished, Finished)
    texts = [delta for delta in deltas if isinstance(delta, Delta)]
    assert len(texts) == len(deltas), "nothing but deltas comes before the end"
    return Reply("".join(delta.text for delta in texts), texts, finished)


def system(text: str) -> Turn:
    return {"role": "system", "content": text}


def assistant(text: str) -> Turn:
    return {"role": "assistant", "content": text}
