"""How entries and wordings come to be and change state. Nothing else changes a state.

suspect (new, or doubted) <-> active (proved); any -> frozen (superseded, expired, session ended).
"""

import math
import random
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from inference.embedding import Vector
from inference.models import (
    Entry,
    Generation,
    Origin,
    Session,
    State,
    Verdict,
    Visibility,
    Wording,
)
from inference.understanding.cacheability import Cacheability, is_personal

from .probe import Probe


def _jittered(span: timedelta) -> timedelta:
    """±10%, so that what was stored together does not expire together."""
    return span * random.uniform(0.9, 1.1)


def admit(
    probe: Probe, generation: Generation, cacheability: Cacheability, vector: Vector | None
) -> Wording | None:
    """Store a complete answer (`vector` is its own) as an entry with the one wording that is proved by birth.

    Returns None, and stores nothing, when a servable answer stands there already, when this very pairing was
    rejected or is in doubt, or when the session has moved on (ended, or a correction raised its epoch).
    """
    if not cacheability.stored or not generation.text.strip():
        return None
    assert cacheability.ttl is not None and cacheability.life is not None
    shared = cacheability.shareable and not is_personal(generation.text)
    columns = columns_of(probe)  # before the lock is held: this may take an embedding
    try:
        with transaction.atomic():
            session = _open_session(generation)
            if session is None or not _makes_way(generation, shared):
                return None
            now = timezone.now()
            dies_at = now + _jittered(cacheability.life)
            entry = Entry.objects.create(
                scope=probe.scope,
                session=session,
                visibility=Visibility.SHARED if shared else Visibility.SESSION,
                content_class=cacheability.content_class,
                answer=generation.text,
                answer_vector=vector,
                epoch=session.epoch,
                seconds_to_compute=(generation.total_ms or 0) / 1000,
                tokens_to_compute=generation.prompt_tokens + generation.completion_tokens,
                expires_at=min(now + _jittered(cacheability.ttl), dies_at),
                dies_at=dies_at,
            )
            return Wording.objects.create(
                entry=entry, session=session, visibility=entry.visibility, state=State.ACTIVE, **columns
            )
    except (IntegrityError, Session.DoesNotExist):
        return None  # someone else stored the same question first, or the conversation was deleted


def _open_session(generation: Generation) -> Session | None:
    """The session, locked; None when it has moved on since the question was asked."""
    session = Session.objects.select_for_update(no_key=True).get(pk=generation.session_id)
    return None if session.ended_at or session.epoch != generation.epoch else session


def columns_of(probe: Probe) -> dict[str, Any]:
    """A wording's columns, as far as the question alone decides them."""
    return {
        "scope": probe.scope,
        "question": probe.question,
        "context": list(probe.turns[:-1]),
        "resolved": "" if probe.resolved == probe.question else probe.resolved,
        "dependent": probe.dependent,
        "exact_key": probe.exact_key,
        "keyword_key": probe.keyword_key,
        "template_key": probe.template_key,
        "parameters": list(probe.template[1]),
        "typo_bands": probe.typo_bands,
        "question_vector": probe.question_vector,
        "context_vector": probe.context_vector,
        "fingerprint": probe.prints.to_json(),
    }


def plant(probe: Probe, session: Session, answer: str, content_class: str, vector: Vector | None) -> Wording:
    """Store a shared, proved entry with its one proved wording, as it comes: for evaluations and imports,
    whose answers somebody vouches for."""
    now = timezone.now()
    with transaction.atomic():
        entry = Entry.objects.create(
            scope=probe.scope,
            session=session,
            visibility=Visibility.SHARED,
            content_class=content_class,
            answer=answer,
            answer_vector=vector,
            state=State.ACTIVE,
            seconds_to_compute=0,
            tokens_to_compute=0,
            expires_at=now + timedelta(days=7),
            dies_at=now + timedelta(days=7),
        )
        return Wording.objects.create(
            entry=entry,
            session=session,
            visibility=Visibility.SHARED,
            state=State.ACTIVE,
            **columns_of(probe),
        )


def learn(
    probe: Probe, generation: Generation, entry_id: UUID, state: State, origin: Origin, shared: bool
) -> Wording | None:
    """Pair this question with an entry that is not its own: `active` if that was proved, `suspect` if it is
    open, `rejected` if it was refuted, which vetoes the pair and its close neighbours from then on.

    What is rejected stays so. Returns None when nothing may be kept: the entry is gone, frozen or private to
    someone else, or the session has moved on.
    """
    columns = columns_of(probe)
    try:
        with transaction.atomic():
            session = _open_session(generation)
            entry = Entry.objects.select_for_update(no_key=True).get(pk=entry_id)
            mine = entry.session_id == generation.session_id
            if session is None or entry.state in _OVER or not (mine or entry.visibility == Visibility.SHARED):
                return None
            shared = shared and entry.visibility == Visibility.SHARED
            whose: dict[str, Any] = {"visibility": Visibility.SHARED}
            if not shared:
                whose = {"visibility": Visibility.SESSION, "session": session}
            known = (
                Wording.objects.select_for_update()
                .filter(entry=entry, exact_key=probe.exact_key, **whose)
                .exclude(state=State.FROZEN)
                .first()
            )
            if known is None:
                return Wording.objects.create(
                    entry=entry, **whose | {"session": session}, **columns, state=state, origin=origin
                )
            if known.state != State.REJECTED and state != State.SUSPECT:
                known.state = state
                known.save(update_fields=["state"])
            return known
    except (IntegrityError, Entry.DoesNotExist, Session.DoesNotExist):
        return None  # the question has another proved answer by now, or what it needs was deleted


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


_OVER = (State.FROZEN, State.REJECTED)


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


# A pairing that was only found alike is proved when, with 90% confidence, more than this share of all
# verdicts on it would agree: three of three, or eight of nine.
_PROVED = 0.6
_Z = 1.2816


def lower_bound(agreed: int, disagreed: int) -> float:
    """Of the share of agreeing verdicts, with 90% confidence (Wilson's score interval)."""
    n = agreed + disagreed
    if n == 0:
        return 0.0
    share, z2 = agreed / n, _Z * _Z
    spread = _Z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return (share + z2 / (2 * n) - spread) / (1 + z2 / n)


def _weighed(wording: Wording) -> State:
    """What the verdicts make of a pairing. One disagreement is a doubt until it is taken back; what was
    proved otherwise needs no more, what was only found alike needs agreement."""
    if wording.disagreed:
        return State.SUSPECT
    proved = wording.origin != Origin.HIT or lower_bound(wording.agreed, 0) > _PROVED
    return State.ACTIVE if proved else State.SUSPECT


def weigh(wording: Wording) -> State:
    """Set the state of a proved or doubted pairing by the verdicts on it: one disagreement makes it suspect
    until that is taken back."""
    with transaction.atomic():
        current = Wording.objects.select_for_update().get(pk=wording.pk)
        verdicts = list(current.observations.values_list("verdict", flat=True))
        current.agreed = verdicts.count(Verdict.AGREE)
        current.disagreed = verdicts.count(Verdict.DISAGREE)
        if current.state in (State.ACTIVE, State.SUSPECT):
            current.state = _weighed(current)
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
