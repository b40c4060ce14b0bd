"""The path of one question, from the cheapest way to answer it to the dearest."""

import time
from dataclasses import dataclass

import redis
import structlog
from django.conf import settings
from django.db import DatabaseError

from inference.cache import coalesce, decision, lifecycle, lookup
from inference.engines.base import EngineFailed, EngineUnavailable
from inference.understanding.cacheability import Cacheability, classify
from inference.understanding.context import Context, exact_key, read_context
from inference.understanding.normalise import normalise

from . import claims, compute, dispatch, metrics, scopes, stopping, stream, workers
from .ending import Ending
from .models import Generation, Outcome, ServedBy, Status

log = structlog.get_logger(__name__)


def answer(generation_id: str) -> None:
    """Worker of the `answer` queue: look for an answer, and hand over to the engine when there is none."""
    generation = claims.for_lookup(generation_id)
    if generation is None:
        return
    generation.queue_ms = claims.milliseconds_since(generation)
    try:
        question = _understand(generation)
        found = _look_up(generation, question)
        if found is None:
            _to_engine(generation, question.cacheability)
        else:
            _serve(generation, found, question.cacheability)
    except EngineUnavailable as error:
        log.warning("engine_unavailable", generation=generation_id, error=str(error))
        _fail(generation, "engine_unavailable")
    except Exception:
        log.exception("answer_failed", generation=generation_id)
        _fail(generation, "internal")


def generate(generation_id: str) -> None:
    """Worker of the `generate` queue: compute an answer and, if it is whole, keep it."""
    compute.await_engine()
    generation = claims.for_engine(generation_id)
    if generation is None:
        return
    generation.served_by = ServedBy.MODEL
    try:
        run = compute.run_engine(generation)
        _conclude(generation, run)
    except EngineUnavailable as error:
        log.warning("engine_unavailable", generation=generation_id, error=str(error))
        _fail(generation, "engine_unavailable")
    except EngineFailed as error:
        log.warning("engine_failed", generation=generation_id, error=str(error))
        _fail(generation, "engine_failed")
    except Exception:
        log.exception("generate_failed", generation=generation_id)
        _fail(generation, "internal")
    finally:
        _land(generation)


# --- understanding and looking up -----------------------------------------------------------------


@dataclass(frozen=True)
class _Question:
    context: Context
    cacheability: Cacheability
    fresh: bool


def _understand(generation: Generation) -> _Question:
    turns = generation.question["turns"]
    context = read_context(turns, settings.CONTEXT_TURNS)
    generation.scope = scopes.current()
    generation.canonical_question = normalise(context.question)
    generation.exact_key = exact_key(generation.scope.hash, context)
    return _Question(context, classify(turns), generation.question.get("fresh", False))


def _look_up(generation: Generation, question: _Question) -> lookup.Found | None:
    """Ask the cache's layers in turn; a layer that fails is skipped and counted."""
    assert generation.scope is not None
    started = time.perf_counter()
    bypass = _bypass(question)
    found, failed = None, False
    if bypass is None:
        try:
            found = lookup.exact(generation.exact_key, generation.scope, generation.session_id)
        except DatabaseError as error:
            failed = True
            log.warning("lookup_failed", layer="exact", error=str(error).strip())
            metrics.STAGE_ERRORS.labels(stage="exact").inc()
    milliseconds = (time.perf_counter() - started) * 1000
    generation.lookup_ms = round(milliseconds, 2)
    if found is None and not failed:
        outcome = Outcome.MISS if bypass is None else Outcome.BYPASS
        reason = bypass or "nobody was answered this question in this context yet"
        decision.record(generation, "exact", outcome, reason, milliseconds)
    return found


def _bypass(question: _Question) -> str | None:
    """Why the cache is not asked at all; None when it is."""
    if not settings.CACHE_ENABLED:
        return "the cache is switched off"
    if question.fresh:
        return "a fresh answer was asked for"
    if not question.cacheability.stored:
        return question.cacheability.reason
    return None


# --- answering --------------------------------------------------------------------------------------


def _serve(generation: Generation, found: lookup.Found, cacheability: Cacheability) -> None:
    """Stream a stored answer as if it were written now; the books are kept afterwards."""
    pieces = _pieces(found.answer)
    stream.deliver(generation.pk, pieces)
    generation.first_token_ms = claims.milliseconds_since(generation)
    generation.served_by = ServedBy.EXACT
    generation.wording_id, generation.entry_id = found.wording, found.entry
    generation.text, generation.finish_reason = found.answer, "stop"
    generation.looked_up = True
    if claims.finish(generation, Status.COMPLETE):
        stream.delivered(generation.pk, pieces, Ending.of(generation))
        _keep_books(generation, found, cacheability)


def _keep_books(generation: Generation, found: lookup.Found, cacheability: Cacheability) -> None:
    reason = "the same question in the same context, spelled alike, has a proved answer"
    try:
        lifecycle.serve(found.wording, found.entry, cacheability.ttl)
    except DatabaseError as error:
        log.warning("hit_not_counted", generation=str(generation.pk), error=str(error).strip())
        metrics.STAGE_ERRORS.labels(stage="books").inc()
    decision.record(generation, "exact", Outcome.HIT, reason, generation.lookup_ms or 0.0, found)


def _pieces(text: str, size: int = 48) -> list[str]:
    """A stored answer in deltas of a few words."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def _to_engine(generation: Generation, cacheability: Cacheability) -> None:
    """Queue for the engine, or follow who computes the same, or say that nobody can."""
    if not _engine_answers(generation):
        return
    coalesces = settings.CACHE_ENABLED and cacheability.stored and not generation.question.get("fresh")
    if not (coalesces and coalesce.join(generation, cacheability.shareable)) and claims.hand_over(generation):
        dispatch.generate(generation.pk)
    stopping.stop_if_asked(generation.pk)


def _engine_answers(generation: Generation) -> bool:
    """Is someone there to compute, with a queue that is short enough? If not, the generation fails, in a
    way that may be tried again."""
    try:
        if workers.absent("generate"):
            _fail(generation, "engine_unavailable")
            return False
    except redis.RedisError:
        return True  # nobody can tell; it stays queued in the database and is sent again
    waiting = Generation.objects.filter(status=Status.PENDING, looked_up=True).count()
    if waiting >= settings.QUEUE_LIMIT:
        _fail(generation, "busy")
        return False
    return True


# --- ending -----------------------------------------------------------------------------------------


def _conclude(generation: Generation, run: compute.Run) -> None:
    """Write down what the run came to, store a whole answer, let others have it."""
    if run.lost or run.finished is None:
        return
    if run.given_up and run.stopped_at is None and run.finished.reason == "cancelled":
        _give_back(generation)
        return
    writer, finished = run.writer, run.finished
    generation.text = writer.text
    generation.finish_reason = finished.reason
    generation.prompt_tokens = finished.prompt_tokens
    generation.cached_tokens = finished.cached_tokens
    generation.completion_tokens = finished.completion_tokens
    generation.output_token_ids = list(finished.output_token_ids)
    if run.stopped_at is not None and (
        finished.reason == "cancelled" or writer.text_at(run.stopped_at) != writer.text
    ):
        _stop(generation, run.stopped_at, writer)
        return
    if claims.finish(generation, Status.COMPLETE):
        if finished.reason == "stop" and not finished.prompt_cut:
            _write_back(generation)
        followers = claims.finish_followers(generation, run.first_token_at or generation.created_at)
        writer.done(Ending.of(generation), set(followers))


def _give_back(generation: Generation) -> None:
    """This worker ends before the answer does: another one begins it anew, and readers are told so."""
    if claims.hand_over(generation):
        dispatch.generate(generation.pk)
        stopping.stop_if_asked(generation.pk)


def _stop(generation: Generation, seen: int, writer: stream.Writer) -> None:
    """Keep what the person saw and no more. Those who follow did not stop: they compute for themselves."""
    coalesce.disband(generation)
    generation.text = writer.text_at(seen)
    generation.finish_reason = "cancelled"
    if claims.finish(generation, Status.STOPPED):
        writer.replace(generation.text)
        writer.done(Ending.of(generation))


def _write_back(generation: Generation) -> None:
    """Store a complete, uncut answer. Failing to is counted and costs nobody the answer."""
    if not settings.CACHE_ENABLED:
        return
    try:
        wording = lifecycle.admit(generation, classify(generation.question["turns"]))
        if wording is not None:
            generation.wording, generation.entry = wording, wording.entry
            Generation.objects.filter(pk=generation.pk).update(wording=wording, entry=wording.entry)
    except DatabaseError as error:
        log.warning("write_back_failed", generation=str(generation.pk), error=str(error).strip())
        metrics.STAGE_ERRORS.labels(stage="write_back").inc()


def _fail(generation: Generation, code: str) -> None:
    generation.text = stream.text_until(generation.pk) or generation.text
    if claims.fail(generation, code):
        stream.end(generation.pk, generation.text)


def _land(generation: Generation) -> None:
    """Whatever became of it, nobody waits for this generation any longer."""
    coalesce.disband(generation)
    coalesce.land(generation, classify(generation.question["turns"]).shareable)
