import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inference import engines
from inference.engines.base import EngineUnavailable, Sampling
from inference.engines.torch import TorchEngine


def test_importing_the_room_loads_no_model_library_and_no_django(model_dir: Path) -> None:
    script = (
        "import sys, inference.engines, inference.engines.torch, inference.engines.weights as weights\n"
        "import inference.engines.vllm, inference.engines.vllm_in_process, inference.engines.vllm_served\n"
        f"inference.engines.identity('torch', model_dir={str(model_dir)!r})\n"
        "print(sorted({'torch', 'transformers', 'tokenizers', 'gguf', 'django', 'vllm'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_an_engine_that_is_not_there(model_dir: Path) -> None:
    for make in (engines.create_engine, engines.identity):
        with pytest.raises(engines.UnknownEngine, match="no engine 'x'; there are 'torch', 'vllm', 'openai'"):
            make("x", model_dir=model_dir)


def test_the_cheap_identity_is_the_engines(engine: TorchEngine, exact: TorchEngine, model_dir: Path) -> None:
    assert engines.identity("torch", model_dir=model_dir) == engine.identity()
    assert engines.identity("torch", model_dir=model_dir, dtype="float32") == exact.identity()
    assert engine.identity() != exact.identity()
    assert set(engine.identity().as_dict()) == {"model", "tokenizer", "template", "dtype"}


def test_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailable, match=r"No model in .* run python -m inference\.engines\.weights"):
        engines.create_engine("torch", model_dir=tmp_path)


def test_a_dtype_it_cannot_compute_in(model_dir: Path) -> None:
    with pytest.raises(ValueError, match="'int3'"):
        engines.create_engine("torch", model_dir=model_dir, dtype="int3")


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"max_tokens": 0},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"stop": "text"},
        {"stop": ("",)},
    ],
)
def test_sampling_no_engine_could_use(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Sampling(**wrong)
