"""Keys and values in 8 bits, with the real model."""

import logging
from pathlib import Path

import pytest
import torch

from inference.engines.torch import TorchEngine

from .conftest import ask, assistant, system, user


def test_the_model_that_comes_along_bears_it(model_dir: Path) -> None:
    engine = TorchEngine(model_dir, kv_cold_int8=True)
    assert engine._store is not None and engine._store._cold
    turns = [system("The library opens at nine and closes at five. " * 8), user("When does it open?")]
    first = ask(engine, *turns, max_tokens=12)
    assert engine._store._cool(10**9) > 0
    engine._buffers.forget()
    again = ask(engine, *turns, assistant(first.text), user("And when does it close?"), max_tokens=12)
    assert again.finished.cached_tokens > first.finished.prompt_tokens
    assert "five" in again.text or "5" in again.text


def test_one_that_does_not_keeps_what_it_computed(
    engine: TorchEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    step = engine._model.step
    calls = iter(range(100))
    monkeypatch.setattr(
        engine._model, "step", lambda *parts: step(*parts) + 5.0 * next(calls) * torch.randn(1, 49152)
    )
    with caplog.at_level(logging.WARNING):
        assert not engine._bears_cold()
    assert "kept as computed" in caplog.text
