"""Several answers written at once: every pass of the model takes whoever is ready along."""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from inference.engines.base import EngineFailed, Reason

if TYPE_CHECKING:
    import torch

    from inference.engines.forward import Model
    from inference.kv.buffers import Buffer

Pick = Callable[["torch.Tensor"], int]

# Prompt tokens in one pass. With nobody waiting for a token a pass may be long, and is given up between two
# layers when its request is; with others writing it must not hold them up for more than a few tokens.
CHUNK = 256
CHUNK_WHILE_OTHERS_WRITE = 64

# Tokens computed before their reader has taken them: enough that a reader who does something with each never
# makes a pass wait, few enough that one who stops costs nothing.
AHEAD = 4

# How long the computing thread stays when there is nothing to do: starting one costs torch its thread pool.
# Meanwhile it looks whether the program is ending. It can't be a daemon: torch aborts a process that ends
# under a thread of its own.
LINGER_SECONDS = 5.0
LOOK_SECONDS = 0.1


class Job:
    """One answer on its way: `prompt`, and behind it the tokens written so far, computed in `buffer`, which
    may hold the beginning of the prompt already. At most `limit` tokens are written (at least one), none
    after one of `end_ids`. `settle` is called when all of the prompt is read. Read by one thread, with
    `take`."""

    def __init__(
        self,
        prompt: Sequence[int],
        buffer: "Buffer",
        pick: Pick,
        limit: int,
        end_ids: Collection[int],
        settle: Callable[[], None] | None = None,
    ) -> None:
        self.prompt = prompt
        self.buffer = buffer
        self._found = buffer.length
        self.closed = False
        self._pick, self._limit, self._end_ids = pick, limit, end_ids
        self._settle = settle
        self._written: list[int] = []
        self._taken = 0
        self._events: queue.SimpleQueue[int | Reason | EngineFailed] = queue.SimpleQueue()
        self._ended = False

    # -- the reader's side --

    def take(self, seconds: float) -> int | Reason | None:
        """The next token, or why there are no more, or None when nothing came within `seconds`. Raises
        EngineFailed."""
        try:
            event = self._events.get(timeout=seconds)
        except queue.Empty:
            return None
        if isinstance(event, EngineFailed):
            raise event
        if isinstance(event, int):
            self._taken += 1
        return event

    # -- the computing thread's side --

    @property
    def over(self) -> bool:
        return self.closed or self._ended

    @property
    def reading(self) -> bool:
        """Whether part of the prompt is still to be computed."""
        return self.buffer.length < len(self.prompt)

    @property
    def read(self) -> int:
        """How many tokens of the prompt were computed for it."""
        return self.buffer.length - self._found

    @property
    def ready(self) -> bool:
        """Whether a next token is wanted now."""
        return not self.reading and len(self._written) - self._taken < AHEAD

    def next_tokens(self, most: int) -> Sequence[int]:
        """What the model has to read next, up to `most` tokens of it."""
        if self.reading:
            return self.prompt[self.buffer.length : self.buffer.length + most]
        return self._written[-1:]

    def advance(self, logits: "torch.Tensor") -> None:
        """A pass is done; `logits` follow the last token it read."""
        if self.reading:
            return
        if self._settle is not None and not self._written:
            self._settle()
        token = self._pick(logits)
        self._written.append(token)
        self._events.put(token)
        if token in self._end_ids:
            self._end("stop")
        elif len(self._written) >= self._limit:
            self._end("length")

    def fail(self, problem: BaseException) -> None:
        failed = EngineFailed(f"The model failed: {problem}")
        failed.__cause__ = problem
        self._ended = True
        self._events.put(failed)

    def _end(self, reason: Reason) -> None:
        self._ended = True
        self._events.put(reason)


Work = list[tuple[Job, Sequence[int]]]


class Batch:
    """Computes jobs with `model`, at most `size` of them at once; the others wait in line. The thread that
    does so comes with the first job and leaves when there were none for a while. Thread-safe."""

    def __init__(self, model: "Model", size: int) -> None:
        if size < 1:
            raise ValueError(f"a batch needs room for at least one job, not {size}")
        self._model, self._size = model, size
        self._waiting: deque[Job] = deque()
        self._running: list[Job] = []
        self._computing: frozenset[Job] = frozenset()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def submit(self, job: Job) -> None:
        with self._changed:
            self._waiting.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="torch-engine")
                self._thread.start()
            self._changed.notify()

    def taken(self) -> None:
        """A reader took a token: its job may be ready again."""
        with self._changed:
            self._changed.notify()

    def close(self, job: Job) -> bool:
        """Nobody reads this job any more; no pass begins for it after this. Whether one is under way, which
        may still write into its buffer."""
        with self._changed:
            job.closed = True
            self._changed.notify()
            return job in self._computing

    # -- the computing thread --

    def _run(self) -> None:
        try:
            while (work := self._next_work()) is not None:
                self._compute(work)
                del work  # a finished job's buffer is not kept while waiting
        except BaseException as problem:
            self._give_up(problem)
            raise

    def _give_up(self, problem: BaseException) -> None:
        """Never leaves a reader waiting for a thread that is gone."""
        with self._changed:
            for job in (*self._running, *self._waiting):
                job.fail(problem)
            self._waiting.clear()
            self._thread = None

    def _next_work(self) -> Work | None:
        """What the next pass computes; None when the thread is to leave."""
        with self._changed:
            idle_since = time.monotonic()
            while True:
                self._admit()
                if work := self._plan():
                    self._computing = frozenset(job for job, _ in work)
                    return work
                if self._running:
                    idle_since = time.monotonic()
                ending = not threading.main_thread().is_alive()
                if ending or time.monotonic() - idle_since > LINGER_SECONDS:
                    self._thread = None
                    return None
                self._changed.wait(LOOK_SECONDS)

    def _admit(self) -> None:
        self._running = [job for job in self._running if not job.over]
        while self._waiting and len(self._running) < self._size:
            if not (job := self._waiting.popleft()).over:
                self._running.append(job)

    def _plan(self) -> Work:
        """One token of everybody who writes, and as much of the prompts as fits: first those of which least
        was read, so that a short one doesn't wait for all of a long one that came before."""
        work: Work = [(job, job.next_tokens(1)) for job in self._running if job.ready]
        room = CHUNK_WHILE_OTHERS_WRITE - len(work) if work else CHUNK
        for job in sorted(self._running, key=lambda job: job.read):
            if room > 0 and job.reading:
                tokens = job.next_tokens(room)
                room -= len(tokens)
                work.append((job, tokens))
        return work

    def _compute(self, work: Work) -> None:
        try:
            logits = self._model.step(
                [(job.buffer, tokens) for job, tokens in work],
                lambda: all(job.closed for job, _ in work),
            )
        except Exception as problem:  # torch has no base class: RuntimeError, IndexError, MemoryError ...
            self._sort_out(work, problem)
            return
        self._computing = frozenset()
        for (job, _), row in zip(work, logits, strict=True):
            try:
                job.advance(row)
            except Exception as problem:
                job.fail(problem)

    def _begin(self, job: Job) -> bool:
        """Whether a pass for `job` alone may begin."""
        with self._changed:
            self._computing = frozenset() if job.closed else frozenset({job})
            return not job.closed

    def _sort_out(self, work: Work, problem: Exception) -> None:
        """A pass failed for all: each is tried by itself, so that only the one that can't be computed fails.
        A pass that was given up lands here too: nobody reads its jobs, so nothing is tried."""
        with self._changed:
            asked = [one for one in work if not one[0].closed]
            self._computing = frozenset()
        if len(work) > 1:
            for one in asked:
                if self._begin(one[0]):
                    self._compute([one])
        elif asked:
            asked[0][0].fail(problem)
