"""What follows when a person takes something back: one function for each way of doing it, each returning what
it did, and one that undoes it.

    corrected     a message corrects, drops or restates what was said: all that is private to the session is
                  frozen and its epoch rises; what the taken-back turns were answered with is blocked here,
                  and read-only where it was born in them; the pairing that served the last of them is doubted
    edited        an earlier question was put differently: the same; done at once it is a hint that the answer
                  was none
    regenerated   an answer is wanted anew: it is not served in this session again; a hint too
    thumbs_down   an answer is bad: its pairing is doubted, and it is not served in this session again

All of them lock the session first, as `lifecycle.admit` and `learn` do: what is being stored at the same
moment is stored before, and found, or after, and refused for its epoch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from inference import metrics
from inference.models import (
    DETECTED,
    Cause,
    Entry,
    Generation,
    Invalidation,
    Origin,
    ServedBy,
    Session,
    State,
    Verdict,
)
from inference.understanding.signals import Signal

from . import behaviour, lifecycle
from .standing import Witness


@dataclass(frozen=True)
class _Extent:
    """How far it reaches: `answers` are the generations that are taken back; `everything`: and with them all
    that is private to the session. `source`: as what this counts against the pairing behind `judged`."""

    answers: Sequence[UUID]
    everything: bool
    judged: UUID | None = None
    source: Witness | None = None


def corrected(
    generation: Generation, signal: Signal, answers: Sequence[UUID], judged: UUID | None
) -> Invalidation:
    """The message that `generation` answers takes something back: of the session's earlier `answers` (ids of
    generations) all, and `judged` is the one it was said to. Done once, however often it is called for the
    same message."""
    extent = _Extent(answers, True, judged, Witness.CORRECTION)
    details = {"confidence": signal.confidence, "reasons": [reason[:60] for reason in signal.reasons]}
    return _carry_out(generation, Cause(signal.kind), extent, **details)


def edited(generation: Generation, answers: Sequence[UUID]) -> Invalidation:
    """`generation` answers an earlier question put differently, in whose place there had been `answers`, the
    first of them to that question."""
    judged = answers[0] if answers and behaviour.was_at_once(answers[0]) else None
    return _carry_out(generation, Cause.EDIT, _Extent(answers, True, judged, Witness.EDIT))


def regenerated(generation: Generation, answers: Sequence[UUID]) -> Invalidation:
    """`generation` is to answer anew what `answers` had answered. Elsewhere that is no more than a hint."""
    extent = _Extent(answers, False, answers[-1] if answers else None, Witness.REGENERATE)
    return _carry_out(generation, Cause.REGENERATE, extent)


def thumbs_down(generation: Generation) -> Invalidation:
    """The reader of this answer says that it is bad."""
    return _carry_out(
        generation, Cause.THUMBS_DOWN, _Extent([generation.pk], False, generation.pk, Witness.USER)
    )


def standing(generation: Generation, *causes: Cause) -> Invalidation | None:
    """What this generation's message, or the verdict on it, took back and nobody has undone."""
    return Invalidation.objects.filter(generation=generation, cause__in=causes, undone_at=None).first()


def was_detected(generation: Generation) -> bool:
    """Was its message read as taking something back, whether that was undone or not?"""
    return Invalidation.objects.filter(generation=generation, cause__in=DETECTED).exists()


# --- doing it -----------------------------------------------------------------------------------------


def _carry_out(generation: Generation, cause: Cause, extent: _Extent, **details: object) -> Invalidation:
    with transaction.atomic():
        session = Session.objects.select_for_update(no_key=True).get(pk=generation.session_id)
        known = standing(generation, cause)
        if known is not None:
            return known
        done = Invalidation(session=session, generation=generation, cause=cause, **details)
        rows = list(
            Generation.objects.filter(pk__in=extent.answers, session=session).select_related("wording__entry")
        )
        entries = {row.entry_id for row in rows if row.entry_id}
        born = _born_in(session, entries)
        others = _standing_in(session)
        if extent.everything:
            done.epoch = lifecycle.raise_epoch(session)
            done.frozen = lifecycle.freeze_private(session)
            closed = {*lifecycle.make_read_only(born), *_held_by(others, "read_only")}
            done.read_only = [pk for pk in born if pk in closed]
            _move_on(generation, session)
        elif cause == Cause.REGENERATE:
            done.frozen = lifecycle.freeze_private(session, born)
        blocked = {*lifecycle.block(session, entries), *_held_by(others, "blocked")}
        done.blocked = [pk for pk in entries if pk in blocked]
        judged = next((row for row in rows if row.pk == extent.judged), None)
        if judged is not None:
            _judge(done, judged, extent)
        done.save()
    metrics.took_back(cause, done.entries)
    return done


def _standing_in(session: Session) -> list[Invalidation]:
    return list(Invalidation.objects.filter(session=session, undone_at=None).order_by("pk"))


def _held_by(standing: Iterable[Invalidation], what: str) -> set[UUID]:
    """The entries that one of these holds: what two hold is let go when both are undone."""
    return {pk for one in standing for pk in getattr(one, what)}


def _born_in(session: Session, entries: Iterable[UUID]) -> list[UUID]:
    return list(Entry.objects.filter(pk__in=entries, session=session).values_list("pk", flat=True))


def _move_on(generation: Generation, session: Session) -> None:
    """The answer to what was said now belongs to what holds now; all others that are being written do not."""
    generation.epoch = session.epoch
    Generation.objects.filter(pk=generation.pk).update(epoch=session.epoch)


def _judge(done: Invalidation, answer: Generation, extent: _Extent) -> None:
    """Note what was said of the pairing that served `answer`, and let that count."""
    pairing = answer.wording
    own = answer.served_by == ServedBy.MODEL and pairing is not None and pairing.origin == Origin.BIRTH
    assert extent.source is not None
    if extent.source in _SAID_TO_STORED and (pairing is None or own):
        return  # computed for this very question; whoever corrected it may have asked for the wrong thing
    trusted = pairing is not None and pairing.entry.state == State.ACTIVE
    done.observation = lifecycle.observe(answer.pk, extent.source, Verdict.DISAGREE, pairing)
    if pairing is not None and trusted:
        doubted = Entry.objects.filter(pk=pairing.entry_id, state=State.SUSPECT)
        done.doubted = {str(pk): State.ACTIVE.value for pk in doubted.values_list("pk", flat=True)}


# What says something of an answer only if that was stored, and of the pairing rather than of the question.
_SAID_TO_STORED = frozenset({Witness.CORRECTION, Witness.EDIT})


# --- undoing it ---------------------------------------------------------------------------------------


def undo(done: Invalidation) -> bool:
    """Take back what `done` did, as far as nothing else still stands for it: it was misread, or is no longer
    meant. What had been in flight then stays unstored. False if it was undone already."""
    with transaction.atomic():
        session = Session.objects.select_for_update(no_key=True).get(pk=done.session_id)
        if not Invalidation.objects.filter(pk=done.pk, undone_at=None).update(undone_at=timezone.now()):
            return False
        done.refresh_from_db()
        others = _standing_in(session)
        _thaw(done, session, others)
        lifecycle.reopen(set(done.read_only) - _held_by(others, "read_only"))
        lifecycle.unblock(session, set(done.blocked) - _held_by(others, "blocked"))
        _withdraw(done)
    return True


def _thaw(done: Invalidation, session: Session, others: Sequence[Invalidation]) -> None:
    """What was frozen then would have been frozen by a later correction too; that one takes it over."""
    heir = next((other for other in others if other.pk > done.pk and other.epoch is not None), None)
    if heir is None:
        lifecycle.thaw(done.frozen, session)
        return
    heir.frozen = {**done.frozen, **heir.frozen}
    heir.save(update_fields=["frozen"])


def _withdraw(done: Invalidation) -> None:
    """The verdict on the pairing counts no longer; that the message was misread is worth remembering."""
    observation = done.observation
    if observation is not None and done.cause in DETECTED:
        observation.verdict = Verdict.UNCLEAR
        observation.save(update_fields=["verdict", "updated_at"])
        if observation.wording is not None:
            lifecycle.weigh(observation.wording)
        lifecycle.trust_entry(done.doubted)
    if done.cause in DETECTED:
        lifecycle.observe(done.generation_id, Witness.UNDO, Verdict.DISAGREE, None)
