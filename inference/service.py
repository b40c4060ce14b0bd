"""The door of the inference room: how a question is asked, followed and stopped from outside."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

import redis
import structlog
from channels.db import database_sync_to_async
from django.db import DatabaseError, InterfaceError, transaction

from . import dispatch, reaper, sessions, stopping, stream, trail
from .cache import invalidation, lifecycle
from .cache.standing import Witness
from .ending import Ending, Invalidated
from .models import DETECTED, Cause, Generation, Invalidation, Observation, Session, Verdict
from .redis import async_client
from .sources import Source, as_read_now
from .understanding.turns import Turn

__all__ = [
    "Follow",
    "Unreachable",
    "ask",
    "corrections",
    "end_session",
    "feedback",
    "follow",
    "forget_session",
    "stop",
    "undo_correction",
]

log = structlog.get_logger(__name__)


class Unreachable(Exception):
    """A part that is needed for this can't be reached now; trying again may help."""


def ask(
    session_id: UUID,
    turns: Sequence[Turn],
    *,
    generations: Sequence[UUID | None] = (),
    fresh: bool = False,
    opens: bool = False,
    instead_of: Sequence[UUID] = (),
    sources: Sequence[Source] = (),
) -> Generation:
    """Queue an answer to the last of `turns`, in the caller's transaction: it is sent off when that commits.

    `session_id` is the conversation, as long as it lasts; `opens` says that this is its first question.
    `generations` says for each turn which generation it is the answer of: without it the model reads every
    question as it was asked. With `fresh` the cache is not asked. `instead_of`: the generations whose answers
    this one takes the place of, which are to the same question with `fresh`, else to one that was put
    differently and to those that followed it. `sources` is what the text of `turns` was drawn from, besides
    the knowledge file: only an answer made from the same may be served, and none of it is once one of them
    has changed. Raises ValueError where there are not as many generations as turns, or a source is named
    twice.
    """
    if generations and len(generations) != len(turns):
        raise ValueError(f"{len(generations)} generations for {len(turns)} turns")
    session = None if opens else sessions.touched(session_id)
    if session is None:
        session = Session(pk=session_id, topic=turns[0]["content"])
        Session.objects.bulk_create([session], ignore_conflicts=True)
    answers = [str(one) if one else None for one in generations]
    generation = Generation(
        session=session,
        epoch=session.epoch,
        sources=as_read_now(sources),
        question={
            "turns": list(turns),
            "generations": answers,
            "fresh": fresh,
            "again": fresh and bool(instead_of),
        },
    )
    with trail.stage("ask", generation.pk):
        generation.save(force_insert=True)
        if instead_of:
            (invalidation.regenerated if fresh else invalidation.edited)(generation, list(instead_of))
        log.info("asked", session=str(session_id), turns=len(turns))
        headers = trail.headers(generation.pk)
    transaction.on_commit(lambda: dispatch.answer(generation.pk, headers))
    return generation


def stop(generation_id: UUID, seen: int) -> None:
    """Stop a generation; it keeps what its reader had seen, up to seq `seen`. No effect on one that is
    over. Raises Unreachable."""
    try:
        stopping.stop(generation_id, seen)
    except redis.RedisError as error:
        raise Unreachable("The stop could not be passed on.") from error


def end_session(session_id: UUID) -> int:
    """The conversation is over: its private entries are no longer served, and the engines need not keep what
    they have read of it. Should it go on all the same, it begins anew. Returns how many entries there
    were."""
    return sessions.end(session_id)


def forget_session(session_id: UUID) -> None:
    """Delete what this conversation contributed, private or shared: generations, entries and their answers,
    wordings, decisions, verdicts, summaries, and what others' rows say of them."""
    sessions.forget(session_id)


def feedback(generation_id: UUID, verdict: Verdict | None) -> None:
    """The reader's verdict on an answer (None takes it back). A disagreement puts the pairing that served
    it in doubt, and it is not served while that stands, nor the answer in this conversation."""
    generation = Generation.objects.select_related("wording").get(pk=generation_id)
    with transaction.atomic():
        if verdict == Verdict.DISAGREE:
            invalidation.thumbs_down(generation)
            return
        if (given := invalidation.standing(generation, Cause.THUMBS_DOWN)) is not None:
            invalidation.undo(given)
        if verdict is None:
            Observation.objects.filter(generation=generation, source=Witness.USER).delete()
            if generation.wording is not None:
                lifecycle.weigh(generation.wording)
        else:
            lifecycle.observe(generation.pk, Witness.USER, verdict, generation.wording)


def corrections(generations: Sequence[UUID]) -> list[Invalidation]:
    """What was read as taking something back in the messages that these generations answer, undone or not,
    in the order it was said."""
    return list(
        Invalidation.objects.filter(generation__in=generations, cause__in=DETECTED)
        .select_related("generation")
        .defer("generation__question", "generation__output_token_ids")
        .order_by("created_at")
    )


def undo_correction(invalidation_id: int) -> bool:
    """The person says that a message was misread: what followed from it is taken back. False if it had been
    already. Raises Invalidation.DoesNotExist."""
    return invalidation.undo(Invalidation.objects.get(pk=invalidation_id, cause__in=DETECTED))


# --- following ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Follow:
    """Something that happened to a generation: more text, other text, its end (then `ended` is set), or what
    its question took back (then `invalidated` is)."""

    kind: Literal["delta", "snapshot", "done", "invalidated"]
    seq: int = 0
    text: str = ""
    ended: Ending | None = None
    invalidated: Invalidated | None = None


_WAIT_MS = 5_000  # then the database is asked too, in case the stream or its end was lost


async def follow(generation: Generation, after: int = 0, *, whole: bool = False) -> AsyncGenerator[Follow]:
    """Everything that happens to a generation behind seq `after`, to its end. Goes on through a restart of
    Valkey or Postgres. `whole`: what there is by now comes in one piece."""
    if not generation.is_open:
        for event in _ending(generation, after):
            yield event
        return
    async for event in _tail(async_client(), generation.pk, after, whole):
        yield event


async def _tail(connection: Any, generation_id: UUID, after: int, whole: bool) -> AsyncGenerator[Follow]:
    if after and await _is_ahead(connection, generation_id, after):
        after, whole = 0, True
    position, held, torn = (f"{after}-0" if after else stream.START), after, False
    while True:
        items = await _read(connection, generation_id, position)
        done = items[-1] if items and items[-1].kind == "done" else None
        if whole and items:
            items, whole = _fold(items), False
        for item in items:
            position = item.position
            if item.kind == "invalidated":
                yield Follow("invalidated", invalidated=Invalidated.from_json(item.text))
                continue
            # A piece is missing before this one; nothing fits any more until a snapshot replaces it all.
            torn = item.kind != "snapshot" and (torn or item.seq > held + 1)
            if item.kind != "done" and not torn and (item.seq, item.text) != (0, ""):
                held = item.seq
                yield Follow(item.kind, item.seq, item.text)
        if done and done.text and not torn:
            yield Follow("done", ended=Ending.from_json(done.text))
            return
        if items and not done:
            continue
        ended = await _load(generation_id)
        if ended is _GONE:
            return
        if isinstance(ended, Generation) and not ended.is_open:
            # Without a done, its end was lost with the stream.
            for event in _ending(ended, held) if torn or not done else [_end_of(ended)]:
                yield event
            return


async def _is_ahead(connection: Any, generation_id: UUID, after: int) -> bool:
    """Does a reader hold more than the stream does? Then it was lost meanwhile, and is written anew."""
    try:
        return after > await stream.last_seq(connection, generation_id)
    except redis.RedisError:
        return False


def _ending(generation: Generation, held: int) -> list[Follow]:
    """The whole of a generation that is over, for someone who holds the text up to seq `held` at best."""
    text = Follow("snapshot", max(held, 1 if generation.text else 0), generation.text)
    return [text, _end_of(generation)]


def _end_of(generation: Generation) -> Follow:
    return Follow("done", ended=Ending.of(generation))


def _fold(items: list[stream.Item]) -> list[stream.Item]:
    text, seq = stream.fold(items)
    first = [item for item in items if item.kind == "invalidated"]
    done = [item for item in items if item.kind == "done"]
    return [*first, stream.Item("snapshot", seq, text, items[-1].position), *done]


async def _read(connection: Any, generation_id: UUID, position: str) -> list[stream.Item]:
    try:
        return await stream.read(connection, generation_id, position, _WAIT_MS)
    except redis.RedisError as error:
        log.warning("stream_unreadable", generation=str(generation_id), error=str(error))
        await asyncio.sleep(0.5)
        return []


class _Gone:
    """The generation was deleted."""


_GONE = _Gone()


async def _load(generation_id: UUID) -> Generation | _Gone | None:
    """The generation as the database has it now; None when the database can't say. One that has been
    silent for too long is ended on the way, so that a reader is never left waiting for a dead worker."""
    try:
        return await database_sync_to_async(_load_now, thread_sensitive=False)(generation_id)
    except (DatabaseError, InterfaceError) as error:
        log.warning("database_unavailable", error=str(error).strip())
        return None


def _load_now(generation_id: UUID) -> Generation | _Gone:
    rows = Generation.objects.defer("question", "output_token_ids").filter(pk=generation_id)
    generation = rows.first()
    if generation is not None and generation.is_open and reaper.settle(generation):
        generation = rows.first()
    return generation or _GONE
