"""The embedded engine: a small model in this process, on torch."""

import os
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from inference.engines import weights
from inference.engines.base import Delta, EngineFailed, Finished, Identity, Reason, Request
from inference.engines.detokenise import TextStream
from inference.engines.prompt import Fitted, PromptTooLong, answer_room, fit
from inference.engines.tokenizer import ChatTokenizer
from inference.understanding.turns import Turns

if TYPE_CHECKING:
    import torch
    from transformers.cache_utils import DynamicCache

    from inference.engines.forward import Model

# Threads that wait for each other must sleep, not spin: with other work on the same two cores spinning wrote
# 1.8 tokens/s, sleeping 17.6. OpenMP reads this once, when torch is loaded, so it stands here and not there.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Tokens computed between two looks at `cancelled`: 0.35 s of an idle 2-core machine at the start of a
# prompt. Half as many cost 15% of the prefill, twice as many gained 5%.
CHUNK = 256

Dtype = Literal["bfloat16", "float32"]


class TorchEngine:
    """Answers with the model in `model_dir`, which `weights.prepare` brings in.

    `threads` is how many a single step may use (None: as torch chooses). `window` caps prompt and answer
    together, in tokens, under what the model allows: a long prompt takes seconds on a CPU. Loading takes
    about 3.5 s; raises EngineUnavailable when there is no model, ValueError for an unknown dtype.
    """

    def __init__(
        self,
        model_dir: Path | str,
        *,
        threads: int | None = None,
        dtype: Dtype = "bfloat16",
        window: int | None = None,
    ) -> None:
        self._identity = weights.read_identity(model_dir, dtype)
        from inference.engines import forward  # here, because it loads torch

        self._forward = forward
        self._tokenizer = ChatTokenizer(Path(model_dir))
        self._model: Model = forward.Model(Path(model_dir), dtype, threads)
        self._window = min(window or self._model.positions, self._model.positions)
        self._live: dict[int, DynamicCache] = {}
        self._lock = threading.Lock()

    @property
    def window(self) -> int:
        """Tokens of prompt and answer together."""
        return self._window

    def identity(self) -> Identity:
        return self._identity

    def count_tokens(self, turns: Turns) -> int:
        """The length of these turns as a prompt, nothing cut."""
        return self._tokenizer.count(turns)

    def reset(self) -> None:
        """Nothing is kept between requests yet, so there is nothing to forget."""

    def kv_report(self) -> dict[str, int]:
        """`live_sequences`, the `live_tokens` they hold keys and values for, and their `live_bytes`."""
        with self._lock:
            live = list(self._live.values())
        return {
            "live_sequences": len(live),
            "live_tokens": sum(cache.get_seq_length() for cache in live),
            "live_bytes": sum(self._forward.cache_bytes(cache) for cache in live),
        }

    def stream(self, request: Request) -> Generator[Delta | Finished, None, None]:
        """See Engine.stream. The work is done in the thread that reads the events."""
        return self._events(self._prepare(request))

    def _prepare(self, request: Request) -> "_Run":
        budget = self._window - answer_room(self._window, request.sampling.max_tokens)
        try:
            fitted = fit(request.turns, count=self._tokenizer.count, budget=budget)
        except PromptTooLong as problem:
            raise EngineFailed(str(problem)) from problem
        return _Run(request, fitted, self._tokenizer.encode(fitted.turns))

    def _events(self, run: "_Run") -> Generator[Delta | Finished, None, None]:
        text = TextStream(self._tokenizer.decode, run.request.sampling.stop)
        shown = 0
        for token in self._tokens(run):
            run.output.append(token)
            if piece := text.push(token):
                yield Delta(piece, tuple(run.output[shown:]))
                shown = len(run.output)
            if text.stopped:
                break
        if run.reason != "cancelled" and (piece := text.finish()):
            yield Delta(piece, tuple(run.output[shown:]))
        if text.stopped:
            run.reason = "stop"
        yield run.finished()

    def _tokens(self, run: "_Run") -> Iterator[int]:
        """Every token of the answer, an end-of-turn token included; afterwards `run.reason` says why it
        ended. Each is handed out before the next is computed."""
        sampling, cancelled = run.request.sampling, run.request.cancelled
        limit = min(sampling.max_tokens, self._window - len(run.prompt))
        picker = self._forward.Picker(sampling)
        with self._cache() as cache:
            logits = self._prefill(run, cache)
            for count in range(1, limit + 1):
                if logits is None or cancelled():
                    run.reason = "cancelled"
                    return
                token = picker.pick(logits)
                yield token
                if token in self._tokenizer.end_ids:
                    run.reason = "stop"
                    return
                if count < limit:
                    logits = None if cancelled() else self._extend(cache, [token])

    def _prefill(self, run: "_Run", cache: "DynamicCache") -> "torch.Tensor | None":
        """The logits behind the prompt; None when cancelled on the way."""
        logits = None
        for start in range(0, len(run.prompt), CHUNK):
            if run.request.cancelled():
                return None
            logits = self._extend(cache, run.prompt[start : start + CHUNK])
        return logits

    def _extend(self, cache: "DynamicCache", ids: Sequence[int]) -> "torch.Tensor":
        try:
            return self._model.extend(cache, ids)
        except Exception as problem:  # torch has no base class: RuntimeError, IndexError, MemoryError ...
            raise EngineFailed(f"The model failed: {problem}") from problem

    @contextmanager
    def _cache(self) -> "Iterator[DynamicCache]":
        """An empty cache, counted by `kv_report` while in use."""
        cache = self._model.new_cache()
        with self._lock:
            self._live[id(cache)] = cache
        try:
            yield cache
        finally:
            with self._lock:
                del self._live[id(cache)]


@dataclass(slots=True)
class _Run:
    """One request on its way."""

    request: Request
    fitted: Fitted
    prompt: list[int]
    output: list[int] = field(default_factory=list)
    reason: Reason = "length"

    def finished(self) -> Finished:
        return Finished(
            reason=self.reason,
            prompt_tokens=len(self.prompt),
            cached_tokens=0,
            completion_tokens=len(self.output),
            prompt_cut=self.fitted.prompt_cut,
            history_cut=self.fitted.history_cut,
            output_token_ids=tuple(self.output),
        )
