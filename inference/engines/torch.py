"""The embedded engine: a small model in this process, on torch."""

import itertools
import logging
import os
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

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
)
from inference.engines.batching import Batch, Job, Pick
from inference.engines.detokenise import TextStream
from inference.engines.prompt import Fitted, PromptTooLong, answer_room, fit
from inference.engines.tokenizer import ChatTokenizer
from inference.engines.written import WrittenAnswers, prompt_tokens
from inference.kv.ledger import DoesNotFit, Ledger, killers
from inference.kv.snapshot import Snapshot, snapshot
from inference.understanding.turns import Turns

if TYPE_CHECKING:
    import torch

    from inference.kv.buffers import Buffer
    from inference.kv.prefix_store import Lease
    from inference.kv.recall_policy import RecallPolicy

# Threads that wait for each other must sleep, not spin: with other work on the same two cores spinning wrote
# 1.8 tokens/s, sleeping 17.6. OpenMP reads this once, when torch is loaded, so it stands here and not there.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# oneDNN keeps 0.6 MB of code for each size of product it saw, torch what was made from it, each for 1,024
# sizes by default; and every 64 tokens of a prompt bring new ones. Writing one again takes 1 ms. With 882
# sizes 256 took 189 MB instead of 522; one without the other hardly helps. Read once as well.
for _cache in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
    os.environ.setdefault(_cache, "128")

log = logging.getLogger(__name__)

Dtype = Literal["bfloat16", "float32"]

# Prose, another script, figures and code: what a model's keys and values are tried on.
PROBE = (
    "The library on the hill opens at nine and closes at five. On Mondays it stays closed, so readers bring "
    "their books back on Tuesday, when the queue is long. 图书馆每天九点开门，五点关门。星期一不开。 "
    "In 1987 it held 12,450 books; today there are 31,902. def total(books): return sum(one.pages for one in "
    "books if one.shelf == 'A3'). What is the capital of France? The capital of France is Paris. Once upon a "
    "time a lighthouse keeper found a letter in a bottle, and it was addressed to somebody with her own name."
)

MIB = 2**20

# The buffers of sequences that just ended stay warm in this share of the budget for stored keys and values,
# which comes on top of it.
WARM_SHARE = 0.5

# How often `cancelled` is asked while no token comes.
CANCEL_SECONDS = 0.03

# How often sessions are looked for whose end was never signalled.
SWEEP_SECONDS = 60.0


class TorchEngine:
    """Answers with the model in `model_dir`, which `weights.prepare` brings in.

    `threads` is how many a pass uses (None: as measured to be best, see `threads`). `window` caps prompt and
    answer together, in tokens, under what the model allows: a long prompt takes seconds on a CPU. `kv_budget`
    bytes are for keys and values kept for reuse (0: none are), `kv_limit` for those and the running requests'
    (None: no bound). `kv_cold_int8` keeps what was long unused in int8 before it is evicted, if the model's
    logits bear it. `recall` says when long sequences are archived and recalled, and how: see RecallPolicy.of
    (None: never). `session_seconds` after its last answer a session counts as over though nobody said so: no
    sooner than for whoever asks, or what a person who comes back has read would be the first to be evicted.
    `batch` answers are computed at once; more wait. Loading takes about 3.5 s; raises EngineUnavailable when
    there is no model, ValueError for an unknown dtype.
    """

    def __init__(
        self,
        model_dir: Path | str,
        *,
        threads: int | None = None,
        dtype: Dtype = "bfloat16",
        window: int | None = None,
        kv_budget: int = 512 * MIB,
        kv_limit: int | None = None,
        kv_cold_int8: bool = False,
        recall: Mapping[str, Any] | None = None,
        session_seconds: float = 6 * 3600,
        batch: int = 8,
    ) -> None:
        self._identity = weights.read_identity(model_dir, dtype)
        self._strong = weights.count_parameters(Path(model_dir)) >= STRONG_PARAMETERS
        # Here, because they load torch.
        from inference.engines import forward
        from inference.kv.budget import Budget
        from inference.kv.buffers import Buffers, in_blocks
        from inference.kv.prefix_store import PrefixStore
        from inference.kv.recalls import Recalls

        self._forward, self._in_blocks = forward, in_blocks
        self._tokenizer = ChatTokenizer(Path(model_dir))
        self._model = forward.Model(Path(model_dir), dtype, threads)
        self._window = min(window or self._model.positions, self._model.positions)
        self._written = WrittenAnswers()
        self._batch = Batch(self._model, batch)
        self.ledger = Ledger(self._model.shape, kv_limit)
        self._store = (
            PrefixStore(
                self._model.shape,
                Budget.up_to(kv_budget),
                self.ledger,
                cold=kv_cold_int8 and self._bears_cold(),
            )
            if kv_budget
            else None
        )
        self._recalls = Recalls(self._recall_policy(recall or {}), self.ledger)
        self._buffers = Buffers(self.ledger, self._model.dtype, self._window, round(kv_budget * WARM_SHARE))
        self._live: dict[str, Buffer] = {}
        self._numbers = itertools.count()
        self._session_seconds = session_seconds
        self._swept_at = time.monotonic()
        self._lock = threading.Lock()

    def _recall_policy(self, options: "Mapping[str, Any]") -> "RecallPolicy":
        """As the options say, with exact archives where the model doesn't bear int8."""
        from inference.kv.recall_policy import RecallPolicy

        policy = RecallPolicy.of(options)
        if policy.on and not policy.how.exact and not self._bears_cold():
            return replace(policy, how=replace(policy.how, exact=True))
        return policy

    def _bears_cold(self) -> bool:
        """Whether this model says the same behind keys and values that were in int8, after every fourth token
        of a text. If not, that is logged and they stay as computed."""
        from inference.kv.cold import stands

        model, ids = self._model, self._tokenizer.encode_plain(PROBE)
        whole = model.new_buffer(len(ids))
        model.step([(whole, ids)])

        def logits_behind(kv: "torch.Tensor") -> "torch.Tensor":
            parts = []
            for place in range(4, len(ids), 4):
                buffer = model.new_buffer(place + 1)
                buffer.kv[..., :place, :] = kv[..., :place, :]
                buffer.go_on_from(place)
                parts.append((buffer, ids[place : place + 1]))
            return model.step(parts)

        bears = stands(whole.kv[..., : len(ids), :], logits_behind)
        if not bears:
            log.warning("This model's logits change with keys and values in int8: they are kept as computed.")
        return bears

    @property
    def window(self) -> int:
        """Tokens of prompt and answer together."""
        return self._window

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
        """Forgets all computed state that was kept for reuse; running streams go on."""
        self._written.forget()
        self._buffers.forget()
        if self._store is not None:
            self._store.reset()

    def end_session(self, session: str) -> None:
        """Nobody comes back for this session: what only it used is the first to be evicted from now on."""
        if self._store is not None:
            self._store.end_session(session)

    def kv_report(self) -> dict[str, int]:
        """`live_sequences`, the `live_tokens` they hold keys and values for and the `live_bytes` set aside
        for them, `live_largest_bytes` for one alone, `live_killers` that hold a
        quarter of all or more; under a limit the `live_room_bytes` that are left for
        more; `requests_tight`, which left no room for another as large, and `requests_refused`, which found
        none; `idle_bytes` of buffers kept warm. Of what is kept for reuse `stored_bytes`, `stored_limit`, and
        the store's own counts, each beginning with `stored_`; of sessions that may come back what they hold
        that nobody else does, `sessions_unique_bytes`, and what all would hold if nothing were shared,
        `sessions_if_unshared_bytes`."""
        with self._lock:
            live = list(self._live.values())
        running = self.ledger.requests()
        report = {
            "live_sequences": len(live),
            "live_tokens": sum(buffer.length for buffer in live),
            "live_bytes": self.ledger.live,
            "idle_bytes": self.ledger.idle,
            "live_largest_bytes": max((one.bytes for one in running), default=0),
            "live_killers": len(killers(running)),
            "requests_tight": self.ledger.tight,
            "requests_refused": self.ledger.refused,
            "stored_bytes": self.ledger.stored,
        }
        if (room := self.ledger.room) is not None:
            report["live_room_bytes"] = room
        report.update(self._recalls.report())
        if self._store is not None:
            held = self._store.holdings()
            report["sessions_unique_bytes"] = sum(one.unique for one in held)
            report["sessions_if_unshared_bytes"] = sum(one.bytes for one in held)
            report["stored_limit"] = self._store.limit
            report.update({f"stored_{name}": count for name, count in self._store.counts().items()})
        return report

    def kv_snapshot(self) -> Snapshot:
        """See Engine.kv_snapshot. Besides the ledger's own totals: `live_tokens` computed so far, and of what
        is kept for reuse `budget_bytes`, `stored_tokens`, `stored_nodes`, and `hit_ratio`, the share of all
        prompts' tokens that were found (none yet: 0)."""
        with self._lock:
            live = list(self._live.values())
        more: dict[str, int | float] = {"live_tokens": sum(buffer.length for buffer in live)}
        if self._store is None:
            return snapshot(self.ledger, more=more)
        counts = self._store.counts()
        more |= {
            "budget_bytes": self._store.limit,
            "stored_tokens": counts["tokens"],
            "stored_nodes": counts["nodes"],
            "hit_ratio": round(counts["found"] / max(1, counts["asked"]), 4),
        }
        return snapshot(self.ledger, self._store.holdings(), more)

    def stream(self, request: Request) -> Generator[Delta | Finished, None, None]:
        """See Engine.stream. The events are made in the thread that reads them, the tokens in one that all
        streams share."""
        return self._events(self._prepare(request))

    def _prepare(self, request: Request) -> "_Run":
        budget = self._window - answer_room(self._window, request.sampling.max_tokens)
        try:
            fitted = fit(request.turns, count=self._tokenizer.count, budget=budget)
        except PromptTooLong as problem:
            raise EngineFailed(str(problem)) from problem
        prompt = prompt_tokens(self._tokenizer, fitted.turns, request.cache_salt, self._written, budget)
        return _Run(request, fitted, prompt)

    def _events(self, run: "_Run") -> Generator[Delta | Finished, None, None]:
        text = TextStream(self._tokenizer.decode, run.request.sampling.stop)
        shown = 0
        for token in self._tokens(run):
            run.output.append(token)
            if piece := text.push(token):
                run.text += piece
                yield Delta(piece, tuple(run.output[shown:]))
                shown = len(run.output)
            if text.stopped:
                break
        if run.reason != "cancelled" and (piece := text.finish()):
            run.text += piece
            yield Delta(piece, tuple(run.output[shown:]))
        if text.stopped:
            run.reason = "stop"
        if self._store is not None:
            scope = run.request.cache_salt
            self._written.remember_run(self._tokenizer, scope, run.prompt, run.text, run.output)
        yield run.finished()

    def _tokens(self, run: "_Run") -> Iterator[int]:
        """Every token of the answer, an end-of-turn token included; afterwards `run.reason` says why it
        ended."""
        request, sampling = run.request, run.request.sampling
        limit = min(sampling.max_tokens, self._window - len(run.prompt))
        tokens = self._in_blocks(len(run.prompt) + limit)
        with self._buffer(run, tokens) as buffer, self._reused(run, buffer):
            pick = self._weighing(run, self._forward.Picker(sampling).pick)
            settle = self._recalls.settle(run.name, request.cache_salt, buffer, tokens)
            job = Job(run.prompt, buffer, pick, limit, self._tokenizer.end_ids, settle)
            try:
                if not request.cancelled():
                    self._batch.submit(job)
                    yield from self._read(run, job, buffer)
            finally:
                run.in_a_pass = self._batch.close(job)
                self._recalls.ended(run.name, buffer)

    def _weighing(self, run: "_Run", pick: Pick) -> Pick:
        """The same, which also notes how likely the first token was to be each of the request's choices."""
        if not run.request.choices:
            return pick
        firsts = [self._tokenizer.encode_plain(word)[0] for word in run.request.choices]

        def weigh(logits: "torch.Tensor") -> int:
            if not run.chances:
                run.chances = self._forward.chances(logits, firsts)
            return pick(logits)

        return weigh

    def _read(self, run: "_Run", job: Job, buffer: "Buffer") -> Iterator[int]:
        while True:
            event = job.take(CANCEL_SECONDS)
            if isinstance(event, str):
                run.reason = event
                return
            if run.request.cancelled():
                return
            if event is not None:
                self._batch.taken()
                yield event
                if len(run.output) == 1:  # others who ask now need not wait for the whole answer
                    self._publish(run, buffer, len(run.prompt))

    # -- keys and values --

    @contextmanager
    def _buffer(self, run: "_Run", tokens: int) -> "Iterator[Buffer]":
        """Room for `tokens` tokens, booked while in use. Raises EngineUnavailable, EngineFailed when there
        is none now, or ever."""
        name = run.name = f"{run.request.id}#{next(self._numbers)}"
        scope = run.request.cache_salt
        self._book(name, run.request, tokens)
        try:
            buffer = self._buffers.take(scope, run.prompt[:-1], tokens)
            with self._lock:
                self._live[name] = buffer
            yield buffer
            if not run.in_a_pass:  # a pass that is given up may still write
                self._buffers.give_back(buffer, scope, (run.prompt + run.output)[: buffer.length])
        finally:
            with self._lock:
                self._live.pop(name, None)
            self.ledger.close(name)

    def _book(self, name: str, request: Request, tokens: int) -> None:
        scope, session = request.cache_salt, request.session
        try:
            try:
                self.ledger.open(name, scope, session, tokens)
            except DoesNotFit as problem:
                if self._store is None or not problem.ever:
                    raise
                idle = self.ledger.idle
                self._buffers.forget(keep=max(0, idle - problem.missing))
                self._store.evict(problem.missing - (idle - self.ledger.idle))
                self.ledger.open(name, scope, session, tokens)
        except DoesNotFit as problem:
            if problem.ever:
                raise EngineUnavailable(str(problem)) from problem
            raise EngineFailed(str(problem)) from problem

    @contextmanager
    def _reused(self, run: "_Run", buffer: "Buffer") -> "Iterator[None]":
        """Fills `buffer` with what is stored of the prompt; afterwards stores what was computed, if all of
        the prompt was and the model didn't break."""
        store, request = self._store, run.request
        if store is None:
            yield
            return
        self._sweep()
        held = buffer.length
        lease: Lease = store.acquire(request.cache_salt, run.prompt, buffer.kv, held=held)
        try:
            run.cached = max(held, lease.length)
            buffer.go_on_from(run.cached)
            yield
        except EngineFailed:
            raise
        except BaseException:
            # The reader left, or `cancelled` broke: what was computed is right all the same.
            self._publish(run, buffer, buffer.length, request.session)
            raise
        else:
            self._publish(run, buffer, buffer.length, request.session)
        finally:
            lease.release()

    def _publish(self, run: "_Run", buffer: "Buffer", computed: int, session: str = "") -> None:
        """Stores the first `computed` tokens of prompt and answer, none when the prompt is longer. Tokens
        that nobody took yet aren't part of the answer."""
        if self._store is not None and computed >= len(run.prompt):
            known = (run.prompt + run.output)[:computed]
            with buffer.guard:
                self._store.publish(run.request.cache_salt, known, buffer.part, session)

    def _sweep(self) -> None:
        now = time.monotonic()
        if self._store is not None and now - self._swept_at > SWEEP_SECONDS:
            self._swept_at = now
            self._store.sweep(self._session_seconds)


@dataclass(slots=True)
class _Run:
    """One request on its way."""

    request: Request
    fitted: Fitted
    prompt: list[int]
    cached: int = 0
    name: str = ""
    in_a_pass: bool = False
    output: list[int] = field(default_factory=list)
    text: str = ""
    reason: Reason = "cancelled"  # until it ends in another way
    chances: tuple[float, ...] = ()

    def finished(self) -> Finished:
        return Finished(
            reason=self.reason,
            prompt_tokens=len(self.prompt),
            cached_tokens=self.cached,
            completion_tokens=len(self.output),
            prompt_cut=self.fitted.prompt_cut,
            history_cut=self.fitted.history_cut,
            output_token_ids=tuple(self.output),
            chances=self.chances,
        )
