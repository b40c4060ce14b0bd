"""The real model, brought in once, in the two precisions the engine computes in."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

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


@pytest.fixture(scope="session")
def plain(model_dir: Path) -> Any:
    """transformers by itself in fp32: the same files, its own attention and its own loop."""
    return AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32)


def generated(plain: Any, prompt: Sequence[int], tokens: int) -> list[int]:
    """What transformers writes behind `prompt`, greedily."""
    ids = torch.tensor([list(prompt)])
    whole = plain.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=tokens,
        eos_token_id=[2, 0],
    )
    return whole[0, len(prompt) :].tolist()


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
    scope: str = "",
    session: str = "",
    choices: tuple[str, ...] = (),
    **sampling: Any,
) -> Reply:
    said = [user(turn) if isinstance(turn, str) else turn for turn in turns]
    request = Request("r", said, Sampling(**sampling), cancelled, scope, session, choices)
    *deltas, finished = engine.stream(request)
    assert isinstance(finished, Finished)
    assert all(isinstance(delta, Delta) for delta in deltas)
    texts: list[Delta] = [delta for delta in deltas if isinstance(delta, Delta)]
    return Reply("".join(delta.text for delta in texts), texts, finished)
