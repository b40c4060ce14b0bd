"""Running the engine for one generation: stream, show a sign of life, notice a stop."""

import time
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import structlog
from django.conf import settings
from django.utils import timezone

from inference.cache import coalesce
from inference.cache.engine_judge import Fitting
from inference.engines.base import Finished, Request, Sampling

from . import claims, prompting, scopes, sources, stream, trail, workers
from .engine import engine
from .models import Generation, Scope

log = structlog.get_logger(__name__)

# How often followers are looked up while tokens come; a newcomer gets the text so far with the next one.
_FOLLOWERS_SECONDS = 0.1


@dataclass
class Run:
    """What one run of the engine came to. `lost`: the generation was taken away, nothing may come of it;
    `given_up`: this worker is going, another one must do it; `stopped_at`: the seq up to which the person
    who stopped it had read; `in_scope`: the answer is one of the generation's scope, and may be kept; `told`:
    it is a stored one."""

    writer: stream.Writer
    finished: Finished | None = None
    stopped_at: int | None = None
    lost: bool = False
    given_up: bool = False
    in_scope: bool = True
    told: Fitting | None = None
    first_token_at: datetime | None = None
    followers: set[UUID] = field(default_factory=set)


def await_engine() -> None:
    """Have the engine loaded before a question is claimed: while that takes, questions wait in the queue,
    where nobody takes them for a dead worker's. An engine that can't be loaded is said by `run_engine`."""
    try:
        engine()
    except Exception as error:
        log.warning("engine_not_loaded", error=str(error))


def run_engine(generation: Generation) -> Run:
    """Stream the engine's answer to everyone who reads it. Raises EngineUnavailable and EngineFailed."""
    run = Run(stream.Writer(generation.pk))
    pulse = _Pulse(generation, run)
    generation.sources = claims.persist(lambda: sources.with_knowledge(generation.sources))
    prompt = claims.persist(lambda: prompting.build(generation))
    request = Request(
        id=str(generation.pk),
        turns=prompt.turns,
        sampling=sampling(generation.scope),
        cancelled=pulse.beat,
        cache_salt=generation.cache_salt,
        session=str(generation.session_id or ""),
    )
    with trail.stage("engine", generation.pk):
        _write(generation, run, request)
    run.stopped_at = stream.stop_requested(generation.pk)
    run.in_scope = prompt.in_scope and scopes.is_answered_by(generation.scope, engine().identity())
    return run


def tell(generation: Generation, fitting: Fitting) -> Run:
    """Instead of a run of the engine: a stored answer, for everyone who reads it."""
    run = Run(stream.Writer(generation.pk), told=fitting, followers=coalesce.followers(generation.pk))
    run.first_token_at = timezone.now()
    generation.first_token_ms = claims.milliseconds_since(generation)
    run.writer.append(stream.pieces(fitting.found.answer), run.followers)
    run.finished = Finished("stop", 0, 0, 0, prompt_cut=False, history_cut=False, output_token_ids=())
    run.stopped_at = stream.stop_requested(generation.pk)
    return run


def _write(generation: Generation, run: Run, request: Request) -> None:
    """Let the engine write, and pass on what it writes."""
    for event in engine().stream(request):
        if isinstance(event, Finished):
            run.finished = event
            trail.note(
                prompt_tokens=event.prompt_tokens,
                cached_tokens=event.cached_tokens,
                completion_tokens=event.completion_tokens,
            )
            continue
        if run.first_token_at is None:
            run.first_token_at = timezone.now()
            generation.first_token_ms = claims.milliseconds_since(generation)
        run.writer.append([event.text.replace("\x00", "")], run.followers)  # Postgres stores no NUL


def sampling(scope: Scope | None) -> Sampling:
    """How answers of this scope are written."""
    chosen = scope.sampling if scope else {}
    return Sampling(
        temperature=chosen.get("temperature", settings.TEMPERATURE),
        max_tokens=chosen.get("max_tokens", settings.MAX_TOKENS),
    )


class _Pulse:
    """Called between tokens and between chunks of the prompt; true when the run must end."""

    def __init__(self, generation: Generation, run: Run) -> None:
        self.generation, self.run = generation, run
        self._beat_at = self._followers_at = 0.0

    def beat(self) -> bool:
        now = time.monotonic()
        if now - self._followers_at > _FOLLOWERS_SECONDS:
            self.run.followers, self._followers_at = coalesce.followers(self.generation.pk), now
        if now - self._beat_at > settings.HEARTBEAT_SECONDS:
            self._beat_at = now
            self.run.lost = not claims.heartbeat(self.generation, self.run.writer.text)
        self.run.stopped_at = stream.stop_requested(self.generation.pk)
        self.run.given_up = workers.leaving.is_set()
        return self.run.lost or self.run.given_up or self.run.stopped_at is not None
