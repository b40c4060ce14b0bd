"""How entries and wordings come to be and change state. Nothing else changes a state.

suspect (new, or doubted) <-> active (proved); any -> frozen (superseded, taken back, expired, session ended);
suspect -> rejected (refuted, corrected by several, or an operator's word). Undoing a correction leads back.
"""

import hashlib
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from inference.embedding import Vector
from inference.models import (
    Decision,
    Entry,
    Generation,
    Observation,
    Origin,
    Session,
    State,
    Verdict,
    Visibility,
    Wording,
)
from inference.understanding.cacheability import Cacheability, is_personal

from . import provenance
from .probe import Probe


def _jittered(span: timedelta) -> timedelta:
    """±10%, so that what was stored together does not expire together."""
    return span * random.uniform(0.9, 1.1)


def _death(now: datetime, life: timedelta) -> datetime:
    """The absolute end of a life that begins now: scattered too, but never beyond what its class allows."""
    return now + life * random.uniform(0.9, 1.0)


def admit(
    probe: Probe, generation: Generation, cacheability: Cacheability, vector: Vector | None
) -> Wording | None:
    """Store a complete answer (`vector` is its own) as an entry with the one wording that is proved by birth.

    Returns None, and stores nothing, when a servable answer stands there already, when this very pairing was
    rejected or is in doubt, when the session has moved on (ended, or a correction raised its epoch), or when
    something that the answer was made from has changed since.
    """
    if not cacheability.stored or not generation.text.strip():
        return None
    shared = cacheability.shareable and not is_personal(generation.text)
    columns = columns_of(probe)  # before the lock is held: this may take an embedding
    try:
        with transaction.atomic():
            session = _open_session(generation)
            if session is None or not provenance.hold(generation.sources):
                return None
            if not _makes_way(generation, shared):
                return None
            visibility = Visibility.SHARED if shared else Visibility.SESSION
            born = {"session": session, "visibility": visibility, "epoch": session.epoch}
            return _bear(generation, cacheability, columns, answer_vector=vector, **born)
    except (IntegrityError, Session.DoesNotExist):
        return None  # someone else stored the same question first, or the conversation was deleted


def _bear(
    generation: Generation, cacheability: Cacheability, columns: dict[str, Any], **born: Any
) -> Wording:
    """A new entry with the answer of `generation`, and its one wording."""
    assert cacheability.ttl is not None and cacheability.life is not None
    now = timezone.now()
    dies_at = _death(now, cacheability.life)
    entry = Entry.objects.create(
        scope=columns["scope"],
        content_class=cacheability.content_class,
        answer=generation.text,
        seconds_to_compute=(generation.total_ms or 0) / 1000,
        tokens_to_compute=generation.prompt_tokens + generation.completion_tokens,
        expires_at=min(now + _jittered(cacheability.ttl), dies_at),
        dies_at=dies_at,
        **born,
    )
    provenance.note(entry, generation.sources)
    return Wording.objects.create(
        entry=entry, session=entry.session, visibility=entry.visibility, state=State.ACTIVE, **columns
    )


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

    What is rejected stays so. Returns None when nothing may be kept: the entry is gone, frozen, private to
    someone else or (for anything but a refutation) read-only, or the session has moved on.
    """
    columns = columns_of(probe)
    try:
        with transaction.atomic():
            session = _open_session(generation)
            entry = Entry.objects.select_for_update(no_key=True).get(pk=entry_id)
            mine = entry.session_id == generation.session_id
            if session is None or entry.state in _OVER or not (mine or entry.visibility == Visibility.SHARED):
                return None
            if entry.read_only and state != State.REJECTED:
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


# So many sessions that correct the same pairing reject it; so many pairings of one entry that were corrected
# put the entry itself in doubt.
_REJECTING_SESSIONS = 2
_DOUBTED_WORDINGS = 2


def _weighed(wording: Wording, correctors: int) -> State:
    """What the verdicts make of a pairing. One disagreement is a doubt until it is taken back; what was
    proved otherwise needs no more, what was only found alike needs agreement."""
    if correctors >= _REJECTING_SESSIONS:
        return State.REJECTED
    if wording.disagreed:
        return State.SUSPECT
    proved = wording.origin != Origin.HIT or lower_bound(wording.agreed, 0) > _PROVED
    return State.ACTIVE if proved or _vouched(wording) else State.SUSPECT


def weigh(wording: Wording) -> State:
    """Set the state of a pairing by the verdicts on it: one disagreement makes it suspect until that is taken
    back, corrections by two sessions reject it until one of them is undone. What was refuted by a fresh
    answer stays rejected."""
    with transaction.atomic():
        current = Wording.objects.select_for_update().get(pk=wording.pk)
        given = _count(current)
        if current.state in (State.ACTIVE, State.SUSPECT) or _was_corrected_away(current, given):
            correctors = {who for s, v, who in given if (s, v) == ("correction", Verdict.DISAGREE)}
            current.state = _weighed(current, len(correctors))
        try:
            with transaction.atomic():
                current.save(update_fields=["agreed", "disagreed", "state"])
        except IntegrityError:
            # While it was in doubt another answer took its place; that one stays.
            current.state = State.FROZEN
            current.save(update_fields=["agreed", "disagreed", "state"])
    return State(current.state)


def _was_corrected_away(wording: Wording, given: Sequence[tuple[str, str, UUID]]) -> bool:
    """Is it rejected for corrections alone, so that undoing them leads back?"""
    correctors = {session for source, _, session in given if source == "correction"}
    refuted = any(s not in ("user", "correction") and v == Verdict.DISAGREE for s, v, _ in given)
    return wording.state == State.REJECTED and len(correctors) >= _REJECTING_SESSIONS and not refuted


# --- what a person takes back -------------------------------------------------------------------------


def raise_epoch(session: Session) -> int:
    """Hide what is private to this session so far, and keep what was asked before from being stored."""
    Session.objects.filter(pk=session.pk).update(epoch=F("epoch") + 1)
    session.refresh_from_db(fields=["epoch"])
    return session.epoch


def freeze_private(session: Session, born: Iterable[UUID] | None = None) -> dict[str, str]:
    """Freeze the session's private entries (of `born`, where given); returns the state that each had."""
    mine = Entry.objects.filter(session=session, visibility=Visibility.SESSION).exclude(state__in=_OVER)
    if born is not None:
        mine = mine.filter(pk__in=born)
    before = {str(pk): state for pk, state in mine.select_for_update().values_list("pk", "state")}
    Entry.objects.filter(pk__in=before).update(state=State.FROZEN)
    return before


def thaw(before: Mapping[str, str], session: Session) -> None:
    """Give frozen entries of an open session the state back that they had, in its present epoch."""
    if session.ended_at is not None:
        return
    for state in set(before.values()):
        entries = [pk for pk, was in before.items() if was == state]
        Entry.objects.filter(pk__in=entries, state=State.FROZEN).update(state=state, epoch=session.epoch)


def make_read_only(entries: Iterable[UUID]) -> list[UUID]:
    """Let these shared entries serve on as they are: no new wordings, no longer life. Returns those that were
    not so already."""
    open_ones = Entry.objects.filter(pk__in=entries, visibility=Visibility.SHARED, read_only=False)
    changed = list(open_ones.select_for_update().values_list("pk", flat=True))
    Entry.objects.filter(pk__in=changed).update(read_only=True)
    return changed


def reopen(entries: Iterable[UUID]) -> None:
    """Take back `make_read_only`."""
    Entry.objects.filter(pk__in=entries).update(read_only=False)


def block(session: Session, entries: Iterable[UUID]) -> list[UUID]:
    """Serve these entries to this session no more. Returns those that it was still served."""
    known = set(session.blocked.filter(pk__in=entries).values_list("pk", flat=True))
    there = Entry.objects.filter(pk__in=entries).exclude(pk__in=known).values_list("pk", flat=True)
    new = list(there)
    session.blocked.add(*Entry.objects.filter(pk__in=new))
    return new


def unblock(session: Session, entries: Iterable[UUID]) -> None:
    """Take back `block`."""
    session.blocked.remove(*Entry.objects.filter(pk__in=entries))


def _is_doubtful(entry: UUID) -> bool:
    corrected = Observation.objects.filter(
        wording__entry=entry, source="correction", verdict=Verdict.DISAGREE
    )
    return corrected.values("wording").distinct().count() >= _DOUBTED_WORDINGS


def doubt_entry(entry: UUID) -> dict[str, str]:
    """Put an entry in doubt if several of its wordings were corrected; returns the state it had, if it is
    another now."""
    if not _is_doubtful(entry):
        return {}
    changed = Entry.objects.filter(pk=entry, state=State.ACTIVE).update(state=State.SUSPECT)
    return {str(entry): State.ACTIVE.value} if changed else {}


def trust_entry(before: Mapping[str, str]) -> None:
    """Take back `doubt_entry`, for entries in which no more than one wording is corrected any longer."""
    for entry, state in before.items():
        if not _is_doubtful(UUID(entry)):
            Entry.objects.filter(pk=entry, state=State.SUSPECT).update(state=state)


def freeze(entries: QuerySet[Entry]) -> int:
    """Serve none of these any more; returns how many that was new for. A rejected one stays what it is: it
    serves nobody either, and keeps the same from being stored again."""
    return entries.exclude(state__in=_OVER).update(state=State.FROZEN)


# --- a second life ----------------------------------------------------------------------------------


def renew(entry_id: UUID, generation: Generation, cacheability: Cacheability) -> bool:
    """A fresh answer said the same: the entry's life begins anew. False where it is over meanwhile, or what
    the fresh answer was made from has changed."""
    assert cacheability.ttl is not None and cacheability.life is not None
    now = timezone.now()
    dies_at = _death(now, cacheability.life)
    with transaction.atomic():
        if not provenance.hold(generation.sources):
            return False
        standing = Entry.objects.filter(pk=entry_id, read_only=False).exclude(state__in=_OVER)
        renewed = standing.update(
            dies_at=dies_at, expires_at=min(now + _jittered(cacheability.ttl), dies_at), refreshed_at=now
        )
    return bool(renewed)


def succeed(
    entry_id: UUID, probe: Probe, generation: Generation, cacheability: Cacheability, vector: Vector | None
) -> Wording | None:
    """A fresh answer said something else: it takes the entry's place, for the question that the entry was the
    answer to. Other wordings were proved by the old answer, and go with it. None where nothing is stored."""
    columns = columns_of(probe)
    try:
        with transaction.atomic():
            if not provenance.hold(generation.sources):
                return None
            old = Entry.objects.select_for_update(no_key=True).get(pk=entry_id)
            if old.state in _OVER or old.read_only or is_personal(generation.text):
                return None
            freeze_wordings(list(old.wordings.exclude(state__in=_OVER)))
            born = {"session": old.session, "visibility": old.visibility, "epoch": old.epoch}
            return _bear(generation, cacheability, columns, answer_vector=vector, hits=old.hits, **born)
    except (IntegrityError, Entry.DoesNotExist, Session.DoesNotExist):
        return None


# --- an operator's word -------------------------------------------------------------------------------

OPERATOR = "operator"
"""The source of an operator's observations."""


def counting(wording: Wording) -> QuerySet[Observation]:
    """The verdicts on a pairing that count: an operator's word settles what was said before it."""
    word = _word(wording)
    verdicts = Observation.objects.filter(wording=wording)
    return verdicts if word is None else verdicts.filter(updated_at__gte=word.updated_at)


def _count(wording: Wording) -> list[tuple[str, str, UUID]]:
    """Set how many verdicts agree and disagree; returns those that count: source, verdict, session."""
    given = list(counting(wording).values_list("source", "verdict", "generation__session"))
    verdicts = [verdict for _, verdict, _ in given]
    wording.agreed, wording.disagreed = verdicts.count(Verdict.AGREE), verdicts.count(Verdict.DISAGREE)
    return given


def _word(wording: Wording) -> Observation | None:
    """The last thing that an operator said about a pairing."""
    return Observation.objects.filter(wording=wording, source=OPERATOR).order_by("-updated_at").first()


def said(wording: Wording) -> str:
    """The verdict of an operator that stands; "" without one."""
    word = _word(wording)
    return word.verdict if word else ""


def _vouched(wording: Wording) -> bool:
    return said(wording) == Verdict.AGREE


class Stale(Exception):
    """What was to be decided on is no longer as whoever decided had seen it."""


class Occupied(Exception):
    """The same question has another proved answer."""


def stamp(wording: Wording) -> str:
    """What an operator who looks at a pairing sees of it, in short: another stamp, another decision."""
    entry = wording.entry
    seen = (wording.state, wording.agreed, wording.disagreed, entry.state, entry.answer)
    return hashlib.sha256("\n".join(map(str, seen)).encode()).hexdigest()[:16]


def settle(pk: UUID, seen: str, state: State, answer: str = "", vector: Vector | None = None) -> Wording:
    """An operator's word on a pairing: `active`, or `rejected`, which vetoes it and its close neighbours.
    With an `answer` (and its `vector`), that is the entry's from now on. `seen` is the `stamp` of what the
    operator saw. Returns the pairing as it is now.

    Raises Stale; Occupied; Wording.DoesNotExist.
    """
    with transaction.atomic():
        wording = _locked(pk)
        if stamp(wording) != seen:
            raise Stale
        verdict = Verdict.AGREE if state == State.ACTIVE else Verdict.DISAGREE
        if generation := _shown_by(wording):
            Observation.objects.update_or_create(
                generation_id=generation,
                source=OPERATOR,
                defaults={"verdict": verdict, "wording": wording},
            )
        _count(wording)
        _put(wording, state, answer, vector)
    return wording


def take_back(
    pk: UUID, now: tuple[State, str], before: tuple[State, str], vector: Vector | None, said: str = ""
) -> Wording:
    """Undo an operator's word: state of the pairing and answer of the entry are `before`'s again, if they are
    `now`'s, and what an operator had `said` before that (a verdict; "" for nothing) is said again. Raises
    Stale; Occupied; Wording.DoesNotExist."""
    with transaction.atomic():
        wording = _locked(pk)
        if (wording.state, wording.entry.answer) != now:
            raise Stale
        if said and (word := _word(wording)):
            word.verdict = said
            word.save(update_fields=["verdict", "updated_at"])
        else:
            wording.observations.filter(source=OPERATOR).delete()
        _count(wording)
        changed = before[1] if before[1] != now[1] else ""
        _put(wording, before[0], changed, vector)
    return wording


def _locked(pk: UUID) -> Wording:
    rows = Wording.objects.select_related("entry").defer("question_vector", "context_vector")
    return rows.select_for_update(of=("self", "entry")).get(pk=pk)


def _shown_by(wording: Wording) -> UUID | None:
    """A generation that the pairing was judged by or served to, for the operator's verdict to hang on."""
    judged = Observation.objects.filter(wording=wording).order_by("-id").values_list("generation", flat=True)
    served = Generation.objects.filter(wording=wording).order_by("-created_at").values_list("pk", flat=True)
    found = Decision.objects.filter(wording=wording).order_by("-id").values_list("generation", flat=True)
    return judged.first() or served.first() or found.first()


def _put(wording: Wording, state: State, answer: str, vector: Vector | None) -> None:
    if answer:
        wording.entry.answer, wording.entry.answer_vector = answer, vector
        wording.entry.save(update_fields=["answer", "answer_vector"])
    wording.state = state
    try:
        with transaction.atomic():
            wording.save(update_fields=["agreed", "disagreed", "state"])
    except IntegrityError as error:
        raise Occupied from error


# --- the end of a session ---------------------------------------------------------------------------


def end_session(session: Session) -> int:
    """Freeze the session's private entries and close it; returns how many were frozen."""
    frozen = freeze(Entry.objects.filter(session=session, visibility=Visibility.SESSION))
    Session.objects.filter(pk=session.pk, ended_at=None).update(ended_at=Now())
    return frozen
