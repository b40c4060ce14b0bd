"""The real model, brought in once, in the two precisions the engine computes in."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from inference.engines import weights
from inference.engines.base import Delta, Finished, Request, Sampling
from inference.engines.torch import TorchEngine
from inference.understanding.turns import Turn

DEFAULT = Path(__file__).parents[2] / "var" / "models" / "smollm2-135m-instruct"


@pytest.fixture(scope="session")
def model_dir() -> Path:
    folder = Path(os.environ.get("MODEL_DIR") or DEFAULT)
    weights.prepare(folder)
    return folder


@pytest.fixture(scope="session")
def engine(model_dir: Path) -> TorchEngine:
    """bf16, as it serves."""
    return TorchEngine(model_dir)


@pytest.fixture(scope="session")
def exact(model_dir: Path) -> TorchEngine:
    """fp32, where equal mathematics gives equal tokens; a small window keeps long prompts affordable."""
    return TorchEngine(model_dir, dtype="float32", window=1024)


@dataclass
class Reply:
    """A stream read to its end."""

    text: str
    deltas: list[Delta]
    finished: Finished


def system(text: str) -> Turn:
    return {"role": "system", "content": text}


def user(text: str) -> Turn:
    return {"role": "user", "content": text}


def assistant(text: str) -> Turn:
    return {"role": "assistant", "content": text}


def ask(
    engine: TorchEngine,
    *turns: Turn | str,
    cancelled: Callable[[], bool] = lambda: False,
    **sampling: Any,
) -> Reply:
    said = [user(turn) if isinstance(turn, str) else turn for turn in turns]
    *deltas, finished = engine.stream(Request("r", said, Sampling(**sampling), cancelled))
    assert isinstance(finished, Finished)
    assert all(isinstance(delta, Delta) for delta in deltas)
    texts: list[Delta] = [delta for delta in deltas if isinstance(delta, Delta)]
    return Reply("".join(delta.text for delta in texts), texts, finished)
