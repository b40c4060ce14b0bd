"""How entries and wordings come to be and change state. Nothing else changes a state.

suspect (new, or doubted) <-> active (proved); any -> frozen (superseded, taken back, expired, session ended);
suspect -> rejected (refuted, or an operator's word). Undoing a correction leads back. What verdicts come to,
`standing` says; here is what follows.
"""

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from inference.embedding import Vector
from inference.models import (
    ALIVE,
    OVER,
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
from .standing import COMPARED, PEOPLE, Given, Standing, Tally, Witness, standing, tally


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

    A pairing that is known already stays as it is; `observe` lets a verdict count. Returns None when nothing
    may be kept: the entry is gone, frozen, private to someone else or (for anything but a refutation)
    read-only, or the session has moved on.
    """
    columns = columns_of(probe)
    try:
        with transaction.atomic():
            session = _open_session(generation)
            entry = Entry.objects.select_for_update(no_key=True).get(pk=entry_id)
            mine = entry.session_id == generation.session_id
            if session is None or entry.state in OVER or not (mine or entry.visibility == Visibility.SHARED):
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
        doubted = rival.state == State.SUSPECT or is_doubted(entry)
        if State.REJECTED in (rival.state, entry.state):
            if same:
                return False
            superseded += [rival] if rival.state == State.ACTIVE else []
        elif over or (doubted and not (same and was_spoken_against(rival))):
            superseded.append(rival)
        else:
            return False  # it stands; or was spoken against, and the same words again prove nothing
    freeze_wordings(superseded)
    return True


def freeze_wordings(wordings: list[Wording]) -> None:
    """Freeze pairings, and entries that have no other way left in which they can be asked."""
    if not wordings:
        return
    Wording.objects.filter(pk__in=[wording.pk for wording in wordings]).update(state=State.FROZEN)
    entries = {wording.entry_id for wording in wordings}
    alive = Wording.objects.filter(entry__in=entries).exclude(state__in=OVER)
    Entry.objects.filter(pk__in=entries).exclude(pk__in=alive.values("entry")).update(state=State.FROZEN)


@dataclass(frozen=True)
class Served:
    """An answer was given from this entry, reached by this wording, which lets it live on `until` then."""

    wording: UUID
    entry: UUID
    at: datetime
    until: datetime

    @classmethod
    def now(cls, wording: UUID, entry: UUID, ttl: timedelta | None) -> Self:
        """`ttl`: what a hit of this class lets an entry live on; None: no longer than it did."""
        at = timezone.now()
        return cls(wording, entry, at, at if ttl is None else at + _jittered(ttl))


# Locked in one order: two workers that count hits on the same entries don't wait for each other in a circle.
_COUNT_ENTRIES = """
    WITH hit AS (SELECT entry, count(*) AS n, max(at) AS at, max(until) AS until
            FROM unnest(%(entries)s::uuid[], %(at)s::timestamptz[], %(until)s::timestamptz[])
                AS h(entry, at, until) GROUP BY entry),
        held AS (SELECT id FROM inference_entry WHERE id IN (SELECT entry FROM hit)
            ORDER BY id FOR NO KEY UPDATE)
    UPDATE inference_entry e SET hits = e.hits + hit.n, last_hit_at = GREATEST(e.last_hit_at, hit.at),
        expires_at = CASE WHEN read_only THEN e.expires_at
            ELSE LEAST(e.dies_at, GREATEST(e.expires_at, hit.until)) END
    FROM hit JOIN held ON held.id = hit.entry WHERE e.id = held.id
"""
_COUNT_WORDINGS = """
    WITH hit AS (SELECT wording, count(*) AS n FROM unnest(%(wordings)s::uuid[]) AS h(wording) GROUP BY 1),
        held AS (SELECT id FROM inference_wording WHERE id IN (SELECT wording FROM hit)
            ORDER BY id FOR NO KEY UPDATE)
    UPDATE inference_wording w SET hits = w.hits + hit.n
    FROM hit JOIN held ON held.id = hit.wording WHERE w.id = held.id
"""


def count(hits: Sequence[Served]) -> None:
    """Count hits. Each slides its entry's expiry, but never past its death nor for a read-only entry."""
    columns: dict[str, Any] = {
        "entries": [hit.entry for hit in hits],
        "wordings": [hit.wording for hit in hits],
        "at": [hit.at for hit in hits],
        "until": [hit.until for hit in hits],
    }
    with transaction.atomic(savepoint=False), connection.cursor() as cursor:
        cursor.execute(_COUNT_ENTRIES, columns)
        cursor.execute(_COUNT_WORDINGS, columns)


# --- what verdicts make of it ---------------------------------------------------------------------------


def observe(
    generation: UUID,
    source: Witness,
    verdict: Verdict,
    wording: Wording | None,
    *,
    reasons: Sequence[str] = (),
    fresh: str = "",
) -> Observation:
    """Write down a verdict on the answer of `generation` and the pairing that it was served by, in the place
    of what the same source had said of it, and let that count: for the pairing, and for its entry. `fresh` is
    the answer that was compared, where that is not the generation's own."""
    said = {"verdict": verdict, "wording": wording, "reasons": list(reasons), "fresh": fresh}
    observation, _ = Observation.objects.update_or_create(
        generation_id=generation, source=source, defaults=said
    )
    if wording is not None:
        weigh(wording)
    return observation


def weigh(wording: Wording) -> State:
    """Set the state of a pairing by the verdicts on it, and then that of its entry. What a fresh answer has
    refuted, or an operator, stays rejected."""
    with transaction.atomic():
        # The entry first, as whoever learns or serves a pairing does.
        entry = _held(wording.entry_id)
        current = Wording.objects.select_for_update().get(pk=wording.pk)
        given = _count(current)
        if current.state in ALIVE:
            current.state = _by_verdicts(current, entry.content_class, given)
        elif _was_talked_away(current, given):
            # What people said leads back when they take it back, and not when something else agrees.
            said = [one for one in given if one.source in PEOPLE]
            current.state = _by_verdicts(current, entry.content_class, said)
        try:
            with transaction.atomic():
                current.save(update_fields=["agreed", "disagreed", "state"])
        except IntegrityError:
            # While it was in doubt another answer took its place; that one stays.
            current.state = State.FROZEN
            current.save(update_fields=["agreed", "disagreed", "state"])
        _weigh_entry(entry.pk)
    return State(current.state)


def _held(entry: UUID) -> Entry:
    """The entry, locked against others who change it or its pairings."""
    return Entry.objects.select_for_update(no_key=True).defer("answer", "answer_vector").get(pk=entry)


_STATES: Mapping[Standing, State] = {
    "proved": State.ACTIVE,
    "doubted": State.SUSPECT,
    "refuted": State.REJECTED,
}


def _by_verdicts(wording: Wording, content_class: str, given: Sequence[Given]) -> State:
    """What is open is as it was born: what was only found alike needs proof, what was the answer to this very
    question, or agreed with one, does not."""
    found = standing(tally(given), content_class)
    if found != "open":
        return _STATES[found]
    answered = any((one.source, one.verdict) == (Witness.NEAR, Verdict.AGREE) for one in given)
    proved = wording.origin == Origin.BIRTH or answered or _vouched(wording)
    return State.ACTIVE if proved else State.SUSPECT


def _was_talked_away(wording: Wording, given: Sequence[Given]) -> bool:
    """Is it rejected for what people said alone, so that taking it back leads back?"""
    sources = {one.source for one in given}
    refuted = any(one.source not in PEOPLE and one.verdict == Verdict.DISAGREE for one in given)
    return wording.state == State.REJECTED and bool(sources & PEOPLE) and not refuted


def _weigh_entry(pk: UUID) -> None:
    """Set the state of an entry by the verdicts on all pairings that it was the answer to. What speaks
    against one of them says that this question has another answer; against several, that the answer is no
    good. An entry whose own question has refuted it, by fresh answers, is rejected: what else was paired with
    it was proved by an answer that holds no longer."""
    entry = _held(pk)
    if entry.state in OVER:
        return
    wordings = list(entry.wordings.exclude(state=State.FROZEN).only("pk", "entry", "origin", "state"))
    found = _of_all([tally(_about_the_entry(wording)) for wording in wordings])
    stands = standing(found, entry.content_class)
    if any(_refutes_itself(wording) for wording in wordings):
        entry.state = State.REJECTED
    elif stands == "proved":
        entry.state = State.ACTIVE
    elif stands in ("doubted", "refuted"):
        entry.state = State.SUSPECT
    # Only a doubt counts here: it is what keeps an entry from being served at all.
    entry.agreed, entry.disagreed = int(found.agreeing), int(found.against) if stands != "proved" else 0
    entry.save(update_fields=["state", "agreed", "disagreed"])


def _about_the_entry(wording: Wording) -> list[Given]:
    """The verdicts on a pairing that say something of its entry. That a question which was only near has
    another answer says nothing: it was never given this one."""
    given = _given(wording)
    if wording.origin != Origin.NEAR or any(one.verdict == Verdict.AGREE for one in given):
        return given
    return [one for one in given if one.source != Witness.NEAR]


# So many pairings of one entry must be spoken against for that to fall on the entry.
_DOUBTED_WORDINGS = 2


def _of_all(tallies: Sequence[Tally]) -> Tally:
    against = [one.against for one in tallies if one.against >= 1]
    return Tally(
        sum(one.agreeing for one in tallies),
        sum(against) if len(against) >= _DOUBTED_WORDINGS else 0.0,
        sum(one.verdicts for one in tallies),
    )


def _refutes_itself(wording: Wording) -> bool:
    """Is it the entry's own question, and rejected because fresh answers to it say something else?"""
    if wording.origin != Origin.BIRTH or wording.state != State.REJECTED:
        return False
    return any(one.source in COMPARED and one.verdict == Verdict.DISAGREE for one in _given(wording))


def is_doubted(entry: Entry) -> bool:
    """Was it put in doubt, and is not merely new? Then it serves nobody."""
    return entry.state == State.SUSPECT and entry.disagreed > 0


def was_spoken_against(wording: Wording) -> bool:
    """Did a verdict put the pairing or its entry in doubt? Else it is merely not proved, and what the model
    says to this very question is its answer."""
    return wording.disagreed > 0 or is_doubted(wording.entry)


# --- what a person takes back -------------------------------------------------------------------------


def raise_epoch(session: Session) -> int:
    """Hide what is private to this session so far, and keep what was asked before from being stored."""
    Session.objects.filter(pk=session.pk).update(epoch=F("epoch") + 1)
    session.refresh_from_db(fields=["epoch"])
    return session.epoch


def freeze_private(session: Session, born: Iterable[UUID] | None = None) -> dict[str, str]:
    """Freeze the session's private entries (of `born`, where given); returns the state that each had."""
    mine = Entry.objects.filter(session=session, visibility=Visibility.SESSION).exclude(state__in=OVER)
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


def trust_entry(before: Mapping[str, str]) -> None:
    """Give entries that were put in doubt the state back that they had, if nothing else doubts them."""
    for entry, state in before.items():
        calm = Entry.objects.filter(pk=entry, state=State.SUSPECT, disagreed=0)
        calm.update(state=state)


def freeze(entries: QuerySet[Entry]) -> int:
    """Serve none of these any more; returns how many that was new for. A rejected one stays what it is: it
    serves nobody either, and keeps the same from being stored again."""
    return entries.exclude(state__in=OVER).update(state=State.FROZEN)


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
        standing = Entry.objects.filter(pk=entry_id, read_only=False).exclude(state__in=OVER)
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
            if old.state in OVER or old.read_only or is_personal(generation.text):
                return None
            freeze_wordings(list(old.wordings.exclude(state__in=OVER)))
            born = {"session": old.session, "visibility": old.visibility, "epoch": old.epoch}
            return _bear(generation, cacheability, columns, answer_vector=vector, hits=old.hits, **born)
    except (IntegrityError, Entry.DoesNotExist, Session.DoesNotExist):
        return None


# --- an operator's word -------------------------------------------------------------------------------


def counting(wording: Wording) -> QuerySet[Observation]:
    """The verdicts on a pairing that count: an operator's word settles what was said before it."""
    word = _word(wording)
    verdicts = Observation.objects.filter(wording=wording)
    return verdicts if word is None else verdicts.filter(updated_at__gte=word.updated_at)


def _given(wording: Wording) -> list[Given]:
    """The verdicts that count."""
    rows = counting(wording).values_list("source", "verdict", "generation__session")
    return [Given(*row) for row in rows]


def _count(wording: Wording) -> list[Given]:
    """Set how many whole verdicts agree and disagree; returns those that count."""
    given = _given(wording)
    found = tally(given)
    wording.agreed, wording.disagreed = int(found.agreeing), int(found.against)
    return given


def _word(wording: Wording) -> Observation | None:
    """The last thing that an operator said about a pairing."""
    return (
        Observation.objects.filter(wording=wording, source=Witness.OPERATOR).order_by("-updated_at").first()
    )


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
                source=Witness.OPERATOR,
                defaults={"verdict": verdict, "wording": wording},
            )
        _count(wording)
        _put(wording, state, answer, vector)
        _weigh_entry(wording.entry_id)
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
            wording.observations.filter(source=Witness.OPERATOR).delete()
        _count(wording)
        changed = before[1] if before[1] != now[1] else ""
        _put(wording, before[0], changed, vector)
        _weigh_entry(wording.entry_id)
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
