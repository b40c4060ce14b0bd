"""The path of one question, from the cheapest way to answer it to the dearest."""

import time
from dataclasses import dataclass, replace
from uuid import UUID

import redis
import structlog
from django.conf import settings
from django.db import DatabaseError

from inference.cache import (
    behaviour,
    books,
    coalesce,
    decision,
    engine_judge,
    gray,
    invalidation,
    learning,
    lifecycle,
    probe,
    refresh,
    reuse,
)
from inference.cache.decision import Decided
from inference.cache.engine_judge import Fitting
from inference.cache.learning import Word
from inference.cache.lifecycle import Served
from inference.cache.lookup import Found
from inference.cache.probe import Probe
from inference.engines.base import EngineFailed, EngineUnavailable
from inference.understanding import corrections, signals
from inference.understanding.cacheability import Cacheability
from inference.understanding.normalise import normalise
from inference.understanding.turns import Turn

from . import (
    claims,
    compute,
    dispatch,
    metrics,
    premises,
    scopes,
    stopping,
    stream,
    summaries,
    versions,
    workers,
)
from .ending import Ending, Invalidated
from .history import born_wordings, model_view
from .models import OPEN, Generation, Outcome, Reuse, Scope, ServedBy, Status, Wording
from .premises import Premises

log = structlog.get_logger(__name__)


def answer(generation_id: str) -> None:
    """Worker of the `answer` queue: look for an answer, and hand over to the engine when there is none."""
    generation = claims.for_lookup(generation_id)
    if generation is None:
        return
    generation.queue_ms = claims.milliseconds_since(generation)
    try:
        heeded = _heed(generation)
        question = _understand(generation, heeded)
        decided = _look_up(generation, question)
        if decided.served is None:
            _to_engine(generation, question.cacheability)
        elif _is_to_rewrite(generation, decided, question.cacheability):
            _rewrite(generation, question, decided, decided.served)
        else:
            _serve(generation, question, decided, decided.served)
        _hear(generation, question.probe)
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
        _conclude(generation, _tell_near(generation) or compute.run_engine(generation))
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


# --- what a message takes back --------------------------------------------------------------------


def _heed(generation: Generation) -> bool:
    """Before anything is looked up: does this message take back what was said, or one before it that no
    worker has come to yet? False when that could not be noted: then nothing stored is safe to serve."""
    try:
        if _premises(generation).unheeded:
            for earlier in _not_heeded(generation):
                _take_back(earlier)
            generation.premises = None  # that may have taken a while
        _take_back(generation)
    except DatabaseError as error:
        log.warning("correction_not_noted", generation=str(generation.pk), error=str(error).strip())
        metrics.STAGE_ERRORS.labels(stage="signals").inc()
        return False
    return True


def _premises(generation: Generation) -> Premises:
    """What it is answered on: as read when it was claimed, or now."""
    return generation.premises or premises.now(generation, settings.APP_NAME, scopes.last())


def _not_heeded(generation: Generation) -> list[Generation]:
    """Messages of the same conversation that are being looked up, or wait for it, in the order they came."""
    same = Generation.objects.filter(session=generation.session_id, status__in=OPEN, looked_up=False)
    before = same.filter(created_at__lt=generation.created_at)
    return list(before.exclude(pk=generation.pk).order_by("created_at"))


def _take_back(generation: Generation) -> None:
    turns: list[Turn] = generation.question["turns"]
    signal = signals.detect(turns[:-1], turns[-1]["content"], vectors=probe.vectors())
    if not signal.invalidates or generation.question.get("again"):
        return
    if invalidation.was_detected(generation):
        generation.refresh_from_db(fields=["epoch"])  # another worker came to it first
        return
    answers, judged = _answers_taken_back(generation)
    done = invalidation.corrected(generation, signal, answers, judged)
    generation.premises = None
    stream.tell(generation.pk, Invalidated(done.cause, done.entries))


def _answers_taken_back(generation: Generation) -> tuple[list[UUID], UUID | None]:
    """The earlier answers about the same thing, and the one that the message was said to."""
    turns, ids = generation.question["turns"][:-1], generation.question.get("generations") or []
    taken = [UUID(ids[at]) for at in corrections.subject_of(turns) if at < len(ids) and ids[at]]
    return taken, taken[-1] if taken else None


# --- understanding and looking up -----------------------------------------------------------------


@dataclass(frozen=True)
class _Question:
    probe: Probe
    cacheability: Cacheability
    fresh: bool
    heeded: bool = True


def _understand(generation: Generation, heeded: bool = True) -> _Question:
    generation.scope = scopes.current(generation.sources, _premises(generation))
    read = _read(generation, generation.scope)
    generation.canonical_question = normalise(read.question)
    generation.exact_key = read.exact_key
    cacheability = reuse.judge(generation.question["turns"])
    return _Question(read, cacheability, generation.question.get("fresh", False), heeded)


def _read(generation: Generation, scope: Scope) -> Probe:
    """As the model would read it: the same history in other words is the same history."""
    misread = _misread(generation)
    return probe.read(scope, generation.session_id, model_view(generation), misread)


def _misread(generation: Generation) -> frozenset[int]:
    """The turns whose messages were taken for corrections, and the person said that they are none."""
    turns: list[Turn] = generation.question["turns"][:-1]
    said = _premises(generation).misread if turns else ()
    return frozenset(at for at, turn in enumerate(turns) if turn["content"] in said)


def _look_up(generation: Generation, question: _Question) -> Decided:
    """Ask the cache's layers in turn, cheapest first."""
    started = time.perf_counter()
    bypass = _bypass(question)
    decided = Decided(Outcome.BYPASS, "exact", bypass) if bypass else decision.decide(question.probe)
    decided = reuse.withheld(decided)
    generation.lookup_ms = round((time.perf_counter() - started) * 1000, 2)
    if not decided.served:
        decision.record(generation, decided, generation.lookup_ms)
    return decided


def _bypass(question: _Question) -> str | None:
    """Why the cache is not asked at all; None when it is."""
    if not settings.CACHE_ENABLED:
        return "the cache is switched off"
    if question.fresh:
        return "a fresh answer was asked for"
    if not question.heeded:
        return "what was taken back could not be noted"
    if not question.cacheability.stored:
        return question.cacheability.reason
    return None


# --- answering --------------------------------------------------------------------------------------


_SERVED_BY = {"exact": ServedBy.EXACT, "fuzzy": ServedBy.FUZZY, "semantic": ServedBy.SEMANTIC}


def _serve(generation: Generation, question: _Question, decided: Decided, found: Found) -> None:
    """Stream a stored answer as if it were written now; the books are kept afterwards."""
    pieces = stream.pieces(found.answer)
    stream.deliver(generation.pk, pieces)
    generation.first_token_ms = claims.milliseconds_since(generation)
    gray = decided.outcome == Outcome.GRAY
    generation.served_by = ServedBy.GRAY if gray else _SERVED_BY[decided.layer]
    generation.wording_id, generation.entry_id = found.wording, found.entry
    generation.text, generation.finish_reason = found.answer, "stop"
    generation.looked_up = True
    generation.reuse = Reuse.ANSWER
    if claims.finish(generation, Status.COMPLETE):
        stream.delivered(generation.pk, pieces, Ending.of(generation))
        _keep_books(generation, question, decided, found)
        _summarise(generation)


def _is_to_rewrite(generation: Generation, decided: Decided, cacheability: Cacheability) -> bool:
    """Is the stored answer only what the model answers from, in words that fit this wording? Asked in the
    words that the answer was given to, it fits as it is."""
    found = decided.served
    graded = reuse.grade(cacheability.content_class) == Reuse.REWRITE or reuse.is_rewritten(decided)
    if found is None or not graded:
        return False
    born = born_wordings([found.entry]).get(found.entry)
    return born is None or normalise(born.question) != generation.canonical_question


def _rewrite(generation: Generation, question: _Question, decided: Decided, found: Found) -> None:
    """Hand the stored answer to the model, which answers from it."""
    generation.reuse = Reuse.REWRITE
    generation.wording_id, generation.entry_id = found.wording, found.entry
    remark = f"{decided.reason}; the model rewrites it for this wording"
    _keep_books(generation, question, replace(decided, reason=remark), found)
    _to_engine(generation, question.cacheability)


def _keep_books(generation: Generation, question: _Question, decided: Decided, found: Found) -> None:
    books.enter(generation, decided, found, question.cacheability.ttl)
    exact, pairing = decided.layer == "exact", None
    try:
        if not exact:
            pairing = learning.note(question.probe, generation, found, question.cacheability.shareable)
        if exact or pairing is not None:
            gray.watch(generation, pairing, found)
    except DatabaseError as error:
        log.warning("pairing_not_noted", generation=str(generation.pk), error=str(error).strip())
        metrics.STAGE_ERRORS.labels(stage="books").inc()


def _hear(generation: Generation, question: Probe) -> None:
    """What this message says of the answers before it. Nobody waits for that."""
    try:
        behaviour.hear(question, generation)
    except DatabaseError as error:
        log.warning("behaviour_not_noted", generation=str(generation.pk), error=str(error).strip())
        metrics.STAGE_ERRORS.labels(stage="behaviour").inc()


def _to_engine(generation: Generation, cacheability: Cacheability) -> None:
    """Queue for the engine, or follow who computes the same, or say that nobody can."""
    if not _engine_answers(generation):
        return
    coalesces = settings.CACHE_ENABLED and cacheability.stored and not generation.question.get("fresh")
    if not (coalesces and coalesce.join(generation, cacheability.shareable)) and claims.hand_over(generation):
        dispatch.generate(generation.pk)
    stopping.stop_if_asked(generation.pk)


def _engine_answers(generation: Generation) -> bool:
    """Is someone there to compute, and a queue that is short enough? If not, the generation fails, in a
    way that may be tried again."""
    try:
        if workers.absent("generate"):
            _fail(generation, "engine_unavailable")
            return False
        if dispatch.is_full():
            _fail(generation, "busy")
            return False
    except redis.RedisError:
        pass  # nobody can tell; it stays queued in the database and is sent again
    return True


# --- what the engine itself says fits ---------------------------------------------------------------


def _tell_near(generation: Generation) -> compute.Run | None:
    """Instead of a run: a stored answer that was near, where a strong engine says that it fits."""
    if generation.reuse == Reuse.REWRITE or not engine_judge.is_asked():
        return None
    near = learning.near_of(generation)
    fitting = engine_judge.fitting(generation, near, lambda: stream.stop_requested(generation.pk) is not None)
    if fitting is None:
        return None
    generation.served_by, generation.reuse = ServedBy.GRAY, Reuse.ANSWER
    generation.wording_id, generation.entry_id = fitting.found.wording, fitting.found.entry
    return compute.tell(generation, fitting)


def _keep_books_of_judged(generation: Generation, fitting: Fitting) -> None:
    """What was decided when it was looked up is decided otherwise now; the pairing is as doubtful as any."""
    cacheability = reuse.judge(generation.question["turns"])
    try:
        decision.overrule(generation, fitting.found, f"the engine says that it fits ({fitting.chance:.2f})")
        lifecycle.count([Served.now(fitting.found.wording, fitting.found.entry, cacheability.ttl)])
        question = _read(generation, generation.scope) if generation.scope else None
        if question is not None:
            pairing = learning.note(question, generation, fitting.found, cacheability.shareable)
            gray.watch(generation, pairing, fitting.found)
    except DatabaseError as error:
        log.warning("books_of_judged_failed", generation=str(generation.pk), error=str(error).strip())
        metrics.STAGE_ERRORS.labels(stage="books").inc()


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
        if run.told is not None:
            _keep_books_of_judged(generation, run.told)
        elif finished.reason == "stop" and not finished.prompt_cut and run.in_scope:
            _write_back(generation)
        followers = claims.finish_followers(generation, run.first_token_at or generation.created_at)
        writer.done(Ending.of(generation), set(followers))
        _summarise(generation)


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
    """Store a complete, uncut answer. Failing to is counted and costs nobody the answer. One that was
    rewritten from a stored one is none of its own."""
    if not settings.CACHE_ENABLED or generation.reuse == Reuse.REWRITE:
        return
    try:
        word = _word_of_engine(generation)
        with versions.held():
            # Not once the version was bumped, nor by a worker of another release than whose question it is.
            if scopes.is_current(generation.scope, generation.sources):
                _store(generation, word)
    except DatabaseError as error:
        log.warning("write_back_failed", generation=str(generation.pk), error=str(error).strip())
        metrics.STAGE_ERRORS.labels(stage="write_back").inc()


def _word_of_engine(generation: Generation) -> Word | None:
    if generation.scope is None or "refreshes" in generation.question or not engine_judge.is_asked():
        return None
    return learning.word_of_engine(_read(generation, generation.scope), generation)


def _store(generation: Generation, word: Word | None) -> None:
    wording = _keep(generation, word)
    if wording is not None:
        generation.wording, generation.entry = wording, wording.entry
        Generation.objects.filter(pk=generation.pk).update(
            wording=wording, entry=wording.entry, sources=generation.sources
        )


def _keep(generation: Generation, word: Word | None) -> Wording | None:
    cacheability = reuse.judge(generation.question["turns"])
    if generation.scope is None or not cacheability.stored:
        return None
    question = _read(generation, generation.scope)
    if "refreshes" in generation.question:
        return refresh.conclude(question, generation, cacheability)
    return learning.keep(question, generation, cacheability, word)


def _summarise(generation: Generation) -> None:
    """Let older turns be put in short, before a prompt needs that. Without it they are extracted."""
    try:
        summaries.prepare(generation)
    except DatabaseError as error:
        log.warning("summary_not_prepared", generation=str(generation.pk), error=str(error).strip())
        metrics.STAGE_ERRORS.labels(stage="summary").inc()


_STAGES = {"busy": "queue", "engine_unavailable": "engine", "engine_failed": "engine"}


def _fail(generation: Generation, code: str) -> None:
    stage = _STAGES.get(code) or ("generate" if generation.looked_up else "answer")
    metrics.STAGE_ERRORS.labels(stage=stage).inc()
    generation.text = stream.text_until(generation.pk) or generation.text
    if claims.fail(generation, code):
        stream.end(generation.pk, generation.text)


def _land(generation: Generation) -> None:
    """Whatever became of it, nobody waits for this generation any longer. If its conversation was deleted
    meanwhile, nothing of it stays."""
    if not Generation.objects.filter(pk=generation.pk).exists():
        stream.forget([generation.pk])
    coalesce.disband(generation)
    coalesce.land(generation, reuse.judge(generation.question["turns"]).shareable)
