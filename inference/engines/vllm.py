"""vLLM, in this process or behind a `vllm serve` address: paged KV, continuous batching, prefix caching.

Token ids go in and come out, by the tokenizer and template in MODEL_DIR: prompts are the same as the torch
engine's, answers that were written here stand in them as they were written, and so blocks are shared by what
was really computed.
"""

import asyncio
import hashlib
import re
import threading
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from inference.engines import weights
from inference.engines.base import (
    STRONG_PARAMETERS,
    Delta,
    EngineFailed,
    EngineUnavailable,
    Finished,
    Identity,
    Reason,
    Request,
    Sampling,
)
from inference.engines.detokenise import TextStream
from inference.engines.event_loop import Cancelled, LoopThread
from inference.engines.prompt import Fitted, PromptTooLong, answer_room, fit
from inference.engines.tokenizer import ChatTokenizer
from inference.engines.written import WrittenAnswers, prompt_tokens
from inference.kv.shape import Shape
from inference.kv.snapshot import Snapshot
from inference.understanding.turns import Turns

if TYPE_CHECKING:
    from prometheus_client import Metric

Dtype = Literal["bfloat16", "float32"]
FinishReason = Literal["stop", "length"]

# vLLM takes up to 128 characters and forbids some; a hash keeps any other salt apart as well.
_PLAIN_SALT = re.compile(r"[A-Za-z0-9_-]{1,128}")
# reset() waits this long for running requests to give their blocks back.
RESET_SECONDS = 10.0
RESET_EVERY = 0.1

# How many of the likeliest tokens a server tells of by default.
LIKELIEST = 20

CACHE_CONFIG = "vllm:cache_config_info"
CACHE_USAGE = "vllm:kv_cache_usage_perc"
# Our names for what vLLM counts.
COUNTED = {
    "running_sequences": "vllm:num_requests_running",
    "waiting_sequences": "vllm:num_requests_waiting",
    "prefix_queries": "vllm:prefix_cache_queries_total",
    "prefix_hits": "vllm:prefix_cache_hits_total",
}
METRICS = (CACHE_CONFIG, CACHE_USAGE, *COUNTED.values())


@dataclass(frozen=True, slots=True)
class Job:
    """What a backend is asked for. `salt` is "" or fit for vLLM; `end_ids` end an answer."""

    id: str
    prompt: list[int]
    max_tokens: int
    sampling: Sampling
    end_ids: frozenset[int]
    salt: str
    likeliest: int = 0
    """So many of the likeliest first tokens are to be told."""


@dataclass(frozen=True, slots=True)
class Step:
    """What came of one step or several. `cached_tokens`: None where not known (yet). `chances`: of the
    likeliest tokens in the first one's place, by their ids, where they were asked for."""

    token_ids: tuple[int, ...] = ()
    finish: FinishReason | None = None
    cached_tokens: int | None = None
    chances: Mapping[int, float] | None = None


class Backend(Protocol):
    """A running vLLM. Coroutines run on one event loop; all may raise EngineUnavailable and EngineFailed."""

    async def window(self) -> int:
        """Tokens of prompt and answer together."""
        ...

    def steps(self, job: Job) -> AsyncGenerator[Step, None]:
        """The answer; closing it aborts the request."""
        ...

    async def forget(self) -> bool:
        """Drops cached blocks; False while some are held by a request."""
        ...

    async def metrics(self) -> Iterable["Metric"]:
        """Those of METRICS, perhaps among others."""
        ...

    async def close(self) -> None: ...


class VllmEngine:
    """Answers with the model in `model_dir`, whose files also name it.

    With a `url`, the `vllm serve` there answers: it must serve the same model (its tokenizer is compared) and
    should run with --enable-prompt-tokens-details, else no token counts as cached; `reset` needs
    VLLM_SERVER_DEV_MODE=1 there. Without one, vLLM is started in this process (half a minute), with
    `options` for its AsyncEngineArgs. `window` caps prompt and answer together. `silence`: seconds between
    two signs of life of a server. Raises EngineUnavailable when there is no model or no vLLM.
    """

    def __init__(
        self,
        model_dir: Path | str,
        *,
        url: str = "",
        api_key: str = "",
        dtype: Dtype = "bfloat16",
        window: int | None = None,
        options: Mapping[str, Any] | None = None,
        silence: float = 60.0,
    ) -> None:
        self._identity = weights.read_identity(model_dir, dtype)
        self._strong = weights.count_parameters(Path(model_dir)) >= STRONG_PARAMETERS
        self._tokenizer = ChatTokenizer(Path(model_dir))
        self._bytes_per_token = Shape.of_model(Path(model_dir), dtype).bytes_per_token
        self._written = WrittenAnswers()
        self._cap = window
        self._live = 0
        self._lock = threading.Lock()
        self._loop = LoopThread("vllm-engine")
        try:
            self._backend = self._connect(Path(model_dir), url, api_key, dtype, options or {}, silence)
        except BaseException:
            self._loop.close()
            raise

    def _connect(
        self,
        model_dir: Path,
        url: str,
        api_key: str,
        dtype: Dtype,
        options: Mapping[str, Any],
        silence: float,
    ) -> Backend:
        if url:
            from inference.engines.vllm_served import Served

            return Served(url, self._tokenizer, api_key=api_key, silence=silence)
        from inference.engines.vllm_in_process import InProcess

        backend = InProcess(model_dir, dtype, window=self._cap, options=options)
        self._loop.call(backend.start())
        return backend

    @property
    def window(self) -> int:
        """Tokens of prompt and answer together. Raises EngineUnavailable when no server answers."""
        offered = self._loop.call(self._backend.window())
        return min(self._cap or offered, offered)

    @property
    def strong(self) -> bool:
        """See Engine.strong."""
        return self._strong

    def identity(self) -> Identity:
        return self._identity

    def count_tokens(self, turns: Turns) -> int:
        """The length of these turns as a prompt, nothing cut."""
        return self._tokenizer.count(turns)

    def reset(self) -> None:
        """Forgets all cached blocks. Tried again while requests hold some; raises EngineUnavailable when they
        still do after RESET_SECONDS, EngineFailed when the server doesn't offer it."""
        self._written.forget()
        self._loop.call(self._forget())

    async def _forget(self) -> None:
        for _ in range(round(RESET_SECONDS / RESET_EVERY)):
            if await self._backend.forget():
                return
            await asyncio.sleep(RESET_EVERY)
        raise EngineUnavailable("Requests hold blocks of the prefix cache, so it could not be reset")

    def end_session(self, session: str) -> None:
        """Nothing to do: vLLM pins no blocks, and what nobody asks for again is the first it evicts."""

    def kv_report(self) -> dict[str, int]:
        """vLLM's own figures, as of its last step: `running_sequences` and `waiting_sequences` (everyone's),
        `live_sequences` (this engine's), `live_tokens` and `live_bytes` in blocks that are in use,
        `capacity_tokens`, and since its start, in tokens, `prefix_queries` and `prefix_hits`."""
        report = read_metrics(self._loop.call(self._backend.metrics()))
        with self._lock:
            report["live_sequences"] = self._live
        report["live_bytes"] = report["live_tokens"] * self._bytes_per_token
        return report

    def kv_snapshot(self) -> Snapshot:
        """The figures of `kv_report`: vLLM doesn't say whose its blocks are. Raises EngineUnavailable."""
        return Snapshot(self.kv_report() | {"bytes_per_token": self._bytes_per_token})

    def close(self) -> None:
        """Ends running streams, and the vLLM in this process."""
        self._loop.call(self._backend.close())
        self._loop.close()

    def stream(self, request: Request) -> Generator[Delta | Finished, None, None]:
        """See Engine.stream. The work is done elsewhere; closing the stream aborts it there."""
        window = self.window
        budget = window - answer_room(window, request.sampling.max_tokens)
        try:
            fitted = fit(request.turns, count=self._tokenizer.count, budget=budget)
        except PromptTooLong as problem:
            raise EngineFailed(str(problem)) from problem
        prompt = prompt_tokens(self._tokenizer, fitted.turns, request.cache_salt, self._written, budget)
        run = _Run(request, fitted, prompt)
        return self._events(run, window - len(run.prompt))

    def _events(self, run: "_Run", room: int) -> Generator[Delta | Finished, None, None]:
        sampling = run.request.sampling
        text = TextStream(self._tokenizer.decode, sampling.stop)
        shown = 0
        job = Job(
            id=run.request.id,
            prompt=run.prompt,
            max_tokens=min(sampling.max_tokens, room),
            sampling=sampling,
            end_ids=self._tokenizer.end_ids,
            salt=safe_salt(run.request.cache_salt),
            likeliest=LIKELIEST if run.request.choices else 0,
        )
        with self._counted(), closing(self._tokens(run, job)) as tokens:
            for token in tokens:
                run.output.append(token)
                if piece := text.push(token):
                    run.text += piece
                    yield Delta(piece, tuple(run.output[shown:]))
                    shown = len(run.output)
                if text.stopped:
                    run.reason = "stop"
                    break
        if run.reason is None:
            raise EngineUnavailable("vLLM ended the stream in the middle of the answer")
        if run.reason != "cancelled" and (piece := text.finish()):
            run.text += piece
            yield Delta(piece, tuple(run.output[shown:]))
        scope = run.request.cache_salt
        self._written.remember_run(self._tokenizer, scope, run.prompt, run.text, run.output)
        yield run.finished()

    def _tokens(self, run: "_Run", job: Job) -> Generator[int, None, None]:
        """Every token of the answer, an end-of-turn token included; afterwards `run.reason` says why it
        ended. A step of several tokens (speculative decoding) is handed out token by token."""
        reader = self._loop.read(self._backend.steps(job), run.request.cancelled)
        try:
            for step in reader:
                if step.cached_tokens is not None:
                    run.cached_tokens = step.cached_tokens
                if step.chances and not run.chances:
                    run.chances = self._chances(run.request.choices, step.chances)
                yield from step.token_ids
                run.reason = step.finish or run.reason
        except Cancelled:
            run.reason = "cancelled"
        finally:
            reader.close()

    def _chances(self, choices: tuple[str, ...], known: Mapping[int, float]) -> tuple[float, ...]:
        """Of what isn't among the likeliest: none."""
        return tuple(known.get(self._tokenizer.encode_plain(word)[0], 0.0) for word in choices)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._lock:
            self._live += 1
        try:
            yield
        finally:
            with self._lock:
                self._live -= 1


@dataclass(slots=True)
class _Run:
    """One request on its way."""

    request: Request
    fitted: Fitted
    prompt: list[int]
    output: list[int] = field(default_factory=list)
    text: str = ""
    cached_tokens: int = 0
    reason: Reason | None = None
    chances: tuple[float, ...] = ()

    def finished(self) -> Finished:
        return Finished(
            reason=self.reason or "stop",
            prompt_tokens=len(self.prompt),
            cached_tokens=self.cached_tokens,
            completion_tokens=len(self.output),
            prompt_cut=self.fitted.prompt_cut,
            history_cut=self.fitted.history_cut,
            output_token_ids=tuple(self.output),
            chances=self.chances,
        )


def safe_salt(salt: str) -> str:
    """`salt` as vLLM takes it: itself if it is url-safe and not over 128 characters, else its hash. Two salts
    stay two."""
    if not salt or _PLAIN_SALT.fullmatch(salt):
        return salt
    return "sha256-" + hashlib.sha256(salt.encode("utf-8", "surrogatepass")).hexdigest()


def read_metrics(families: Iterable["Metric"]) -> dict[str, int]:
    """The figures of `VllmEngine.kv_report` that are vLLM's own, from its Prometheus metrics; several engines
    behind one address are added up."""
    total: dict[str, float] = {}
    usage: dict[str, float] = {}
    capacity: dict[str, float] = {}
    for sample in (sample for family in families for sample in family.samples):
        engine = sample.labels.get("engine", "")
        if sample.name == CACHE_CONFIG:
            capacity[engine] = _capacity(sample.labels)
        elif sample.name == CACHE_USAGE:
            usage[engine] = sample.value
        else:
            total[sample.name] = total.get(sample.name, 0) + sample.value
    report = {name: round(total.get(theirs, 0)) for name, theirs in COUNTED.items()}
    used = sum(share * capacity.get(engine, 0.0) for engine, share in usage.items())
    return {**report, "live_tokens": round(used), "capacity_tokens": round(sum(capacity.values()))}


def _capacity(labels: Mapping[str, str]) -> float:
    try:
        return float(labels["num_gpu_blocks"]) * float(labels["block_size"])
    except (KeyError, ValueError):
        return 0.0
