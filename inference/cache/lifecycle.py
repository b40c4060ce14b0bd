"""How entries and wordings come to be and change state. Nothing else changes a state.

suspect (new, or doubted) <-> active (proved); any -> frozen (superseded, expired, session ended).
"""

import random
from datetime import timedelta
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from inference.models import (
    Entry,
    Generation,
    Session,
    State,
    Verdict,
    Visibility,
    Wording,
)
from inference.understanding.cacheability import Cacheability, is_personal


def _jittered(span: timedelta) -> timedelta:
    """±10%, so that what was stored together does not expire together."""
    return span * random.uniform(0.9, 1.1)


def admit(generation: Generation, cacheability: Cacheability) -> Wording | None:
    """Store a complete answer as an entry with the one wording that is proved by birth.

    Returns None, and stores nothing, when a servable answer stands there already, when this very pairing was
    rejected or is in doubt, or when the session has moved on (ended, or a correction raised its epoch).
    """
    if not cacheability.stored or not generation.text.strip() or generation.scope is None:
        return None
    assert cacheability.ttl is not None and cacheability.life is not None
    shared = cacheability.shareable and not is_personal(generation.text)
    try:
        with transaction.atomic():
            session = Session.objects.select_for_update(no_key=True).get(pk=generation.session_id)
            if session.ended_at or session.epoch != generation.epoch:
                return None
            if not _makes_way(generation, shared):
                return None
            now = timezone.now()
            dies_at = now + _jittered(cacheability.life)
            entry = Entry.objects.create(
                scope=generation.scope,
                session=session,
                visibility=Visibility.SHARED if shared else Visibility.SESSION,
                content_class=cacheability.content_class,
                answer=generation.text,
                epoch=session.epoch,
                seconds_to_compute=(generation.total_ms or 0) / 1000,
                tokens_to_compute=generation.prompt_tokens + generation.completion_tokens,
                expires_at=min(now + _jittered(cacheability.ttl), dies_at),
                dies_at=dies_at,
            )
            turns = generation.question["turns"]
            return Wording.objects.create(
                entry=entry,
                scope=generation.scope,
                session=session,
                visibility=entry.visibility,
                question=turns[-1]["content"],
                context=turns[:-1],
                exact_key=generation.exact_key,
                state=State.ACTIVE,
            )
    except (IntegrityError, Session.DoesNotExist):
        return None  # someone else stored the same question first, or the conversation was deleted


def _makes_way(generation: Generation, shared: bool) -> bool:
    """Freeze what the new answer supersedes; False if what stands there must stay."""
    owned = Q(visibility=Visibility.SHARED) if shared else Q(session=generation.session_id)
    rivals = Wording.objects.filter(owned, exact_key=generation.exact_key).select_related("entry")
    superseded = []
    for rival in rivals.exclude(state=State.FROZEN):
        entry, same = rival.entry, rival.entry.answer == generation.text
        over = entry.state == State.FROZEN or entry.expires_at <= timezone.now()
        if State.REJECTED in (rival.state, entry.state):
            if same:
                return False
        elif over or (rival.state == State.SUSPECT and not same):
            superseded.append(rival)
        else:
            return False  # it stands; or was doubted, and the same words again prove nothing
    freeze_wordings(superseded)
    return True


def freeze_wordings(wordings: list[Wording]) -> None:
    """Freeze pairings, and entries that have no other way left in which they can be asked."""
    if not wordings:
        return
    Wording.objects.filter(pk__in=[wording.pk for wording in wordings]).update(state=State.FROZEN)
    entries = {wording.entry_id for wording in wordings}
    alive = Wording.objects.filter(entry__in=entries).exclude(state__in=[State.FROZEN, State.REJECTED])
    Entry.objects.filter(pk__in=entries).exclude(pk__in=alive.values("entry")).update(state=State.FROZEN)


_SERVE = """
    WITH counted AS (UPDATE inference_wording SET hits = hits + 1 WHERE id = %(wording)s)
    UPDATE inference_entry SET hits = hits + 1, last_hit_at = %(now)s, expires_at = CASE
        WHEN read_only THEN expires_at ELSE LEAST(dies_at, GREATEST(expires_at, %(until)s)) END
    WHERE id = %(entry)s
"""


def serve(wording: UUID, entry: UUID, ttl: timedelta | None) -> None:
    """Count a hit. It slides the entry's expiry, but never past its death nor for a read-only entry."""
    now = timezone.now()
    until = now if ttl is None else now + _jittered(ttl)
    with connection.cursor() as cursor:
        cursor.execute(_SERVE, {"wording": wording, "entry": entry, "now": now, "until": until})


def weigh(wording: Wording) -> State:
    """Set the state of a proved or doubted pairing by the verdicts on it: one disagreement makes it suspect
    until that is taken back."""
    with transaction.atomic():
        current = Wording.objects.select_for_update().get(pk=wording.pk)
        verdicts = list(current.observations.values_list("verdict", flat=True))
        current.agreed = verdicts.count(Verdict.AGREE)
        current.disagreed = verdicts.count(Verdict.DISAGREE)
        if current.state in (State.ACTIVE, State.SUSPECT):
            current.state = State.SUSPECT if current.disagreed else State.ACTIVE
        try:
            with transaction.atomic():
                current.save(update_fields=["agreed", "disagreed", "state"])
        except IntegrityError:
            # While it was in doubt another answer took its place; that one stays.
            current.state = State.FROZEN
            current.save(update_fields=["agreed", "disagreed", "state"])
    return State(current.state)


def end_session(session: Session) -> int:
    """Freeze the session's private entries and close it; returns how many were frozen."""
    private = Entry.objects.filter(session=session, visibility=Visibility.SESSION)
    frozen = private.exclude(state=State.FROZEN).update(state=State.FROZEN)
    Session.objects.filter(pk=session.pk, ended_at=None).update(ended_at=Now())
    return frozen
