"""The queue of suspect pairings, and what operators decide on them: one at a time, by one of them.

A pairing that somebody has open is theirs for a while, and nobody else is given it. A decision says what it
was based on; where that changed meanwhile, nothing is done.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import ExpressionWrapper, F, FloatField, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from inference.cache import learning, lifecycle, policy
from inference.models import ALIVE, ConfusablePair, State, Wording
from inference.understanding.fingerprint import confusable

from . import audit, cursors
from .models import Action, AuditRecord, ReviewClaim

# An open page says every minute that it still is.
CLAIM_FOR = timedelta(minutes=3)
# What somebody skipped comes back to them, but not on the same day.
SKIPPED_FOR = timedelta(hours=12)

APPROVE, REJECT, EDIT = Action.APPROVE, Action.REJECT, Action.EDIT
SKIP, CONFUSE, UNDO = Action.SKIP, Action.CONFUSE, Action.UNDO
VECTORS = ("question_vector", "context_vector", "entry__answer_vector")


class Refused(Exception):
    """It can't be done as asked; `code` says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Taken(Exception):
    """Somebody else has the pairing open."""

    def __init__(self, claim: ReviewClaim) -> None:
        super().__init__(str(claim))
        self.claim = claim


# --- the queue --------------------------------------------------------------------------------------


def waiting() -> QuerySet[Wording]:
    """Suspect pairings that could still be served, the most urgent first: the chance that one is wrong, as
    far as verdicts tell, times the traffic it stands in."""
    risk = (F("disagreed") + 1.0) / (F("agreed") + F("disagreed") + 2.0)
    traffic = F("hits") + F("entry__hits") + 1
    return (
        Wording.objects.filter(
            state=State.SUSPECT,
            entry__state__in=ALIVE,
            entry__expires_at__gt=Now(),
        )
        .annotate(
            risk=ExpressionWrapper(risk, FloatField()),
            traffic=traffic,
            urgency=ExpressionWrapper(risk * traffic, FloatField()),
        )
        .select_related("entry", "claim__operator")
        .defer(*VECTORS)
        .order_by("-urgency", "created_at", "pk")
    )


def most_urgent(most: int, after: str = "") -> QuerySet[Wording]:
    """The first of those that wait, behind the cursor `after`. Which, is found out first: sorting whole rows
    takes twice as long."""
    behind = waiting()
    if place := _place(after):
        urgency, at, pk = place
        later = Q(created_at__gt=at) | Q(created_at=at, pk__gt=pk)
        behind = behind.filter(Q(urgency__lt=urgency) | Q(urgency=urgency) & later)
    return waiting().filter(pk__in=list(behind.values_list("pk", flat=True)[:most]))


def cursor_of(wording: Wording) -> str:
    """Of one that `waiting` has found."""
    behind = cursors.behind(wording.created_at, wording.pk)
    return f"{wording.urgency!r}_{behind}"  # type: ignore[attr-defined]


def _place(cursor: str) -> tuple[float, datetime, UUID] | None:
    """Where a page begins; None for the first one, and for a cursor that is none."""
    urgency, _sep, rest = cursor.partition("_")
    place = cursors.place(rest)
    try:
        return (float(urgency), *place) if place else None
    except ValueError:
        return None


def queue_length(most: int) -> int:
    """How many wait, counted to `most`: each costs a look at its entry."""
    return waiting().order_by().values("pk")[:most].count()


def claim_next(operator: User) -> Wording | None:
    """The most urgent pairing that nobody has open and this operator has not just skipped, claimed; None when
    there is none. What the operator has open already comes first."""
    mine = ReviewClaim.objects.filter(operator=operator, wording__state=State.SUSPECT)
    if open_now := mine.filter(expires_at__gt=Now()).order_by("expires_at").first():
        return _renewed(open_now).wording
    while True:
        try:
            with transaction.atomic():
                return _claim_free(operator)
        except IntegrityError:
            continue  # somebody else was a moment quicker; theirs is claimed now


def _claim_free(operator: User) -> Wording | None:
    ReviewClaim.objects.filter(expires_at__lte=Now()).delete()
    free = waiting().select_related("entry").exclude(pk__in=ReviewClaim.objects.values("wording"))
    free = free.exclude(pk__in=_skipped(operator))
    wording = free.select_for_update(of=("self",), skip_locked=True).first()
    if wording is not None:
        _claim(wording, operator)
    return wording


def _skipped(operator: User) -> list[str]:
    since = timezone.now() - SKIPPED_FOR
    mine = AuditRecord.objects.filter(user=operator, created_at__gt=since)
    undone = mine.filter(undoes__isnull=False).values_list("undoes", flat=True)
    skips = mine.filter(action=SKIP, subject=audit.WORDING).exclude(batch__in=list(undone))
    return list(skips.values_list("subject_id", flat=True))


def _claim(wording: Wording, operator: User) -> ReviewClaim:
    return ReviewClaim.objects.create(
        wording=wording, operator=operator, expires_at=timezone.now() + CLAIM_FOR
    )


def _renewed(claim: ReviewClaim) -> ReviewClaim:
    claim.expires_at = timezone.now() + CLAIM_FOR
    claim.save(update_fields=["expires_at"])
    return claim


def claim(pk: UUID, operator: User) -> ReviewClaim:
    """Have this pairing open, or go on having it open. Raises Taken; Wording.DoesNotExist."""
    with transaction.atomic():
        wording = Wording.objects.defer("question_vector", "context_vector").select_for_update().get(pk=pk)
        ReviewClaim.objects.filter(wording=wording, expires_at__lte=Now()).delete()
        held = ReviewClaim.objects.filter(wording=wording).select_related("operator").first()
        if held is None:
            return _claim(wording, operator)
        if held.operator_id != operator.pk:
            raise Taken(held)
        return _renewed(held)


def holder(pk: UUID) -> ReviewClaim | None:
    """Who has it open now."""
    held = ReviewClaim.objects.filter(wording=pk, expires_at__gt=Now())
    return held.select_related("operator").first()


def release(pk: UUID, operator: User) -> None:
    """Have it open no longer."""
    ReviewClaim.objects.filter(wording=pk, operator=operator).delete()


# --- deciding ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judgement:
    """What an operator decided, and the stamp of what it was based on. `answer` is for an edit; the names
    are for what must never be taken for each other, in the pairing's scope or `everywhere`."""

    action: str
    seen: str
    reason: str = ""
    answer: str = ""
    names: tuple[str, str] = ("", "")
    everywhere: bool = False


def decide(pk: UUID, operator: User, judgement: Judgement) -> UUID:
    """Do it and write it down; returns the batch of the action.

    Raises Taken, lifecycle.Stale, lifecycle.Occupied, Refused, Wording.DoesNotExist: nothing is done then.
    """
    if judgement.action not in _ACTS:
        raise Refused("unknown_action")
    claim(pk, operator)  # for good: who is told that something changed decides anew on what is there now
    with transaction.atomic():
        before = Wording.objects.select_related("entry", "scope").defer(*VECTORS).get(pk=pk)
        changes = act(before, judgement)
        batch = audit.record(operator, judgement.action, changes, judgement.reason)
        release(pk, operator)
    return batch


def act(before: Wording, judgement: Judgement) -> list[audit.Change]:
    """Do it, in the caller's transaction. Raises lifecycle.Stale, lifecycle.Occupied, Refused."""
    return _ACTS[judgement.action](before, judgement)


def _approve(before: Wording, judgement: Judgement) -> list[audit.Change]:
    return [_settled(before, judgement, State.ACTIVE)]


def _reject(before: Wording, judgement: Judgement) -> list[audit.Change]:
    return [_settled(before, judgement, State.REJECTED)]


def _edit(before: Wording, judgement: Judgement) -> list[audit.Change]:
    if not judgement.answer.strip():
        raise Refused("empty_answer")
    if judgement.answer == before.entry.answer:
        raise Refused("same_answer")
    answers = {"answer": before.entry.answer}, {"answer": judgement.answer}
    return [
        _settled(before, judgement, State.ACTIVE, judgement.answer),
        audit.Change(audit.ENTRY, before.entry_id, *answers),
    ]


def _settled(before: Wording, judgement: Judgement, state: State, answer: str = "") -> audit.Change:
    vector = learning.answer_of(answer).vector if answer else None
    said = lifecycle.said(before)
    lifecycle.settle(before.pk, judgement.seen, state, answer, vector)
    was = {"state": before.state} | ({"said": said} if said else {})
    return audit.Change(audit.WORDING, before.pk, was, {"state": state})


def _skip(before: Wording, judgement: Judgement) -> list[audit.Change]:
    return [audit.Change(audit.WORDING, before.pk)]


def _confuse(before: Wording, judgement: Judgement) -> list[audit.Change]:
    """The pairing is rejected, and so is from now on whatever differs in these two names."""
    first, second = (name.strip() for name in judgement.names)
    if not any(confusable(_meaning(before), other, [(first, second)]) for other in _other_meanings(before)):
        raise Refused("names_do_not_differ")
    pair = policy.forbid(None if judgement.everywhere else before.scope, first, second)
    changes = [_settled(before, judgement, State.REJECTED)]
    if pair is not None:
        changes.append(audit.Change(audit.PAIR, pair.pk, after={"first": first, "second": second}))
    return changes


def _meaning(wording: Wording) -> str:
    return wording.resolved or wording.question


def _other_meanings(wording: Wording) -> list[str]:
    others = Wording.objects.filter(entry=wording.entry_id).exclude(pk=wording.pk)
    return [_meaning(other) for other in others.defer("question_vector", "context_vector")]


_ACTS: dict[str, Callable[[Wording, Judgement], list[audit.Change]]] = {
    APPROVE: _approve,
    REJECT: _reject,
    EDIT: _edit,
    SKIP: _skip,
    CONFUSE: _confuse,
}


# --- undoing ----------------------------------------------------------------------------------------


def undo(batch: UUID, operator: User) -> UUID:
    """Take a whole action back; returns the batch of doing so.

    Raises lifecycle.Stale where something has changed since, lifecycle.Occupied, Refused where there is
    nothing to undo.
    """
    with transaction.atomic():
        records = list(AuditRecord.objects.select_for_update().filter(batch=batch).order_by("-id"))
        if not records or not undoable(records[0]):
            raise Refused("not_undoable")
        if AuditRecord.objects.filter(undoes=batch).exists():
            raise Refused("undone_before")
        try:
            _take_back(records)
        except Wording.DoesNotExist as error:
            raise lifecycle.Stale from error
        changes = [audit.Change(row.subject, row.subject_id, row.after, row.before) for row in records]
        return audit.record(operator, UNDO, changes, undoes=batch)


def _take_back(records: list[AuditRecord]) -> None:
    """All that one action did: to one pairing, its entry and a pair of names, or to many pairings."""
    pairs = [record.subject_id for record in records if record.subject == audit.PAIR]
    if pairs:
        ConfusablePair.objects.filter(pk__in=pairs).delete()
        policy.forget()
    entry = next((record for record in records if record.subject == audit.ENTRY), None)
    for record in sorted(records, key=lambda one: one.subject_id):
        # A skip changed nothing.
        if record.subject == audit.WORDING and record.after:
            _put_back(record, entry)


def _put_back(pairing: AuditRecord, entry: AuditRecord | None) -> None:
    answer = Wording.objects.values_list("entry__answer", flat=True).get(pk=pairing.subject_id)
    new, old = (entry.after["answer"], entry.before["answer"]) if entry else (answer, answer)
    lifecycle.take_back(
        UUID(pairing.subject_id),
        now=(State(pairing.after["state"]), new),
        before=(State(pairing.before["state"]), old),
        vector=learning.answer_of(old).vector if entry else None,
        said=pairing.before.get("said", ""),
    )


def undoable(record: AuditRecord) -> bool:
    """Is this the kind of action that can be undone here?"""
    return record.action in _ACTS


def last_action(operator: User) -> AuditRecord | None:
    """The action that this operator would undo now: their newest of the last half hour that stands."""
    since = timezone.now() - timedelta(minutes=30)
    mine = AuditRecord.objects.filter(user=operator, created_at__gt=since).order_by("-id")
    undone: set[Any] = set(mine.filter(undoes__isnull=False).values_list("undoes", flat=True))
    for record in mine.filter(action__in=_ACTS, subject=audit.WORDING)[:20]:
        if record.batch not in undone:
            return record
    return None
