"""How sessions end, and what is left of one that is forgotten: nothing."""

import threading
import uuid
from datetime import timedelta

import pytest
from django.db import connection, models, transaction
from django.utils import timezone

from inference import claims, compute, engine, farewells, pipeline, service, sessions, stream
from inference.cache import lifecycle, probe
from inference.cache.models import Source
from inference.models import (
    Decision,
    Entry,
    EntrySource,
    Generation,
    Observation,
    Origin,
    ServedBy,
    Session,
    State,
    Status,
    Summary,
    Verdict,
    Wording,
)
from inference.redis import client
from inference.understanding.cacheability import classify

from .conftest import Ask, stored, turns

CAPITAL = "What is the capital of France?"
PRIVATE = "My name is Zoe. What is the capital of France?"


def idle(session: uuid.UUID, settings, seconds: float = 1) -> None:
    long_ago = timezone.now() - timedelta(seconds=settings.SESSION_IDLE_SECONDS + seconds)
    Session.objects.filter(pk=session).update(last_active=long_ago)


# --- ending ---------------------------------------------------------------------------------------------


def test_an_idle_session_ends(ask: Ask, settings) -> None:
    mine, other = uuid.uuid4(), uuid.uuid4()
    private, shared = ask(PRIVATE, session=mine).entry, ask(CAPITAL, session=mine).entry
    ask(PRIVATE, session=other)
    idle(mine, settings)
    assert sessions.end_idle() == 1 and sessions.end_idle() == 0
    private.refresh_from_db()
    shared.refresh_from_db()
    assert (private.state, shared.state) == (State.FROZEN, State.SUSPECT)
    assert not Entry.objects.filter(session=other, state=State.FROZEN).exists()
    assert Session.objects.get(pk=mine).ended_at and not Session.objects.get(pk=other).ended_at


@pytest.mark.django_db(transaction=True)
def test_the_engines_are_told_of_an_idle_session(settings) -> None:
    mine = Session.objects.create(pk=uuid.uuid4()).pk
    heard: list[str] = []
    listener = farewells.Listener(heard.append)
    idle(mine, settings)
    sessions.end_idle()
    listener.hear()
    assert heard == [str(mine)]


def test_an_engine_that_is_not_told_waits_as_long(settings) -> None:
    settings.ENGINE, settings.SESSION_IDLE_SECONDS = "torch", 1234
    assert engine.options()["session_seconds"] == 1234


def test_a_question_keeps_a_session_from_ending(queue: Ask, settings) -> None:
    mine = uuid.uuid4()
    queue(CAPITAL, session=mine)
    idle(mine, settings)
    queue(CAPITAL, session=mine)
    assert sessions.end_idle() == 0 and not Session.objects.get(pk=mine).ended_at


def test_one_that_goes_on_after_its_end_begins_anew(ask: Ask, queue: Ask) -> None:
    mine = uuid.uuid4()
    private = ask(PRIVATE, session=mine)
    waiting = queue("My name is Zoe. What is the capital of Spain?", session=mine)
    pipeline.answer(str(waiting.pk))
    assert service.end_session(mine) == 1
    again = ask(PRIVATE, session=mine)
    assert again.served_by == ServedBy.MODEL and again.entry not in (None, private.entry)
    assert again.epoch == private.epoch + 1 and not Session.objects.get(pk=mine).ended_at
    # What was asked before the end is answered, and stored nowhere.
    pipeline.generate(str(waiting.pk))
    waiting.refresh_from_db()
    assert (waiting.status, waiting.entry) == (Status.COMPLETE, None)
    assert ask(PRIVATE, session=mine).served_by == ServedBy.EXACT


# --- forgetting -----------------------------------------------------------------------------------------


def rows_of(session: uuid.UUID) -> dict[str, int]:
    """Every row of the cache's tables that belongs to a session, found by the foreign keys themselves."""
    counts = {}
    for model in (Session, Generation, Entry, Wording, EntrySource, Decision, Observation, Summary):
        own = {Session: "pk", EntrySource: "entry__session"}.get(model) or (
            "session"
            if any(field.name == "session" for field in model._meta.fields)
            else "generation__session"
        )
        counts[model.__name__] = model._default_manager.filter(**{own: session}).count()
    return counts


def contents() -> str:
    """Every text in every row of the room's tables."""
    found = []
    for model in Session._meta.apps.get_app_config("inference").get_models():
        names = [
            field.attname
            for field in model._meta.concrete_fields
            if isinstance(field, models.CharField | models.TextField | models.JSONField)
        ]
        found += [str(row) for row in model._default_manager.values_list(*names)] if names else []
    return "\n".join(found)


def test_nothing_is_left_of_a_forgotten_session(ask: Ask) -> None:
    mine, other = uuid.uuid4(), uuid.uuid4()
    theirs = ask("What is the capital of Spain?", session=other)
    shared, private = ask(CAPITAL, session=mine), ask(PRIVATE, session=mine)
    service.feedback(shared.pk, Verdict.AGREE)
    Summary.objects.create(
        session_id=mine, covered="x", turns=turns("France?", "Paris."), text="Paris.", source=Source.EXTRACT
    )
    EntrySource.objects.create(entry=shared.entry, source_key="Zoe's handbook of France")
    assert shared.entry.visibility == "shared" and private.entry.visibility == "session"
    told = contents()
    assert all(word in told for word in ("France", "Paris", "Zoe", shared.text, private.text))
    assert all(rows_of(mine).values()), rows_of(mine)
    assert stream.text_until(shared.pk) == shared.text
    service.forget_session(mine)
    assert not any(rows_of(mine).values()), rows_of(mine)
    told = contents()
    assert not any(word in told for word in ("France", "Paris", "Zoe", shared.text, private.text))
    assert "Spain" in told
    assert set(Generation.objects.all()) == {theirs} and set(Entry.objects.all()) == {theirs.entry}


@pytest.mark.django_db(transaction=True)
def test_its_streams_go_too(ask: Ask) -> None:
    mine, other = uuid.uuid4(), uuid.uuid4()
    forgotten, kept = ask(CAPITAL, session=mine), ask("What is the capital of Spain?", session=other)
    service.forget_session(mine)
    assert stream.text_until(forgotten.pk) is None
    assert stream.text_until(kept.pk) == kept.text
    assert not [key for key in client().keys("*") if str(forgotten.pk) in key and not key.endswith(":stop")]


def test_others_keep_their_answers_and_lose_its_words(ask: Ask) -> None:
    """A person served from a forgotten entry keeps what they saw. How the lookup was explained, and the words
    that the model read in the place of theirs, were the other's."""
    mine, other = uuid.uuid4(), uuid.uuid4()
    first = ask("What is the capital city of France?", session=mine)
    served = ask("what is the capital city of france", session=other)
    assert served.entry == first.entry
    text = served.text
    Decision.objects.filter(generation=served).update(reason="Quibblefrost ≠ France")
    Generation.objects.filter(pk=served.pk).update(rendered=True, model_question="Quibblefrost")
    Summary.objects.create(session_id=other, covered="x", turns=turns("Quibblefrost", "Yes."), text="A.")
    own = stored(first.scope, "Something of my own?", session=other)
    contributed = Wording.objects.create(
        entry=own.entry, scope=first.scope, session_id=mine, question="Quibblefrost?", exact_key="k"
    )
    Observation.objects.create(generation=served, wording=contributed, verdict=Verdict.AGREE, source="near")
    service.forget_session(mine)
    served.refresh_from_db()
    assert (served.text, served.status, served.entry, served.wording) == (text, Status.COMPLETE, None, None)
    assert served.model_question == "" and "Quibblefrost" not in contents()
    assert set(Entry.objects.all()) == {own.entry} and set(Wording.objects.all()) == {own}
    assert not Observation.objects.exists()


def test_an_entry_of_others_that_it_asked_in_its_own_way_stays(ask: Ask) -> None:
    mine, other = uuid.uuid4(), uuid.uuid4()
    theirs = ask(CAPITAL, session=other)
    read = probe.read(theirs.scope, mine, turns("Which city is the capital of France?"))
    asking = service.ask(mine, turns("Which city is the capital of France?"))
    assert lifecycle.learn(read, asking, theirs.entry_id, State.ACTIVE, Origin.NEAR, True)
    service.forget_session(mine)
    assert Entry.objects.get() == theirs.entry and Wording.objects.get().session_id == other


def served_by(pairing: Wording, session: uuid.UUID, said: Verdict, source: str = "correction") -> Generation:
    """An answer that `session` was given through this pairing, and what it said of it."""
    answer = service.ask(session, turns(pairing.question))
    Generation.objects.filter(pk=answer.pk).update(wording=pairing, entry=pairing.entry)
    Observation.objects.create(generation=answer, wording=pairing, verdict=said, source=source)
    lifecycle.weigh(pairing)
    pairing.refresh_from_db()
    return answer


def test_what_it_said_of_a_pairing_of_others_counts_no_longer(ask: Ask) -> None:
    """The rule is the one of undoing a correction: each session's verdict counts as long as it stands."""
    pairing = ask(CAPITAL).wording
    first, second = uuid.uuid4(), uuid.uuid4()
    seen = []
    for session in (first, second):
        served_by(pairing, session, Verdict.DISAGREE)
        seen.append((pairing.state, pairing.disagreed))
    for session in (first, second):
        service.forget_session(session)
        pairing.refresh_from_db()
        seen.append((pairing.state, pairing.disagreed))
    assert seen == [
        (State.SUSPECT, 1),
        (State.REJECTED, 2),
        (State.SUSPECT, 1),
        (State.ACTIVE, 0),
    ]


def test_what_it_said_for_a_pairing_counts_no_longer_either(ask: Ask) -> None:
    pairing = ask(CAPITAL).wording
    Wording.objects.update(origin=Origin.HIT, state=State.SUSPECT)
    pairing.refresh_from_db()
    sessions_ = [uuid.uuid4() for _ in range(3)]
    for session in sessions_:
        served_by(pairing, session, Verdict.AGREE, "user")
    assert (pairing.state, pairing.agreed) == (State.ACTIVE, 3), "three of three prove it"
    service.forget_session(sessions_[0])
    pairing.refresh_from_db()
    assert (pairing.state, pairing.agreed) == (State.SUSPECT, 2)


def test_who_followed_a_forgotten_question_computes_it(queue: Ask) -> None:
    mine = uuid.uuid4()
    leader, follower = queue(CAPITAL, session=mine), queue(CAPITAL)
    pipeline.answer(str(leader.pk))
    pipeline.answer(str(follower.pk))
    follower.refresh_from_db()
    assert follower.leader == leader
    service.forget_session(mine)
    follower.refresh_from_db()
    assert (follower.status, follower.looked_up) == (Status.PENDING, True) and not follower.leader_id
    pipeline.generate(str(follower.pk))
    follower.refresh_from_db()
    assert follower.status == Status.COMPLETE and follower.text


def test_one_that_is_forgotten_while_it_is_answered_leaves_nothing(queue: Ask) -> None:
    mine = uuid.uuid4()
    generation = queue(CAPITAL, session=mine)
    pipeline.answer(str(generation.pk))
    claimed = claims.for_engine(generation.pk)
    run = compute.run_engine(claimed)
    service.forget_session(mine)
    pipeline._conclude(claimed, run)
    pipeline._land(claimed)
    assert not any(rows_of(mine).values()) and not Entry.objects.exists()
    assert stream.text_until(generation.pk) is None


@pytest.mark.django_db(transaction=True)
def test_forgetting_waits_for_who_is_storing_and_takes_that_too(queue: Ask) -> None:
    mine = uuid.uuid4()
    generation = queue(CAPITAL, session=mine)
    pipeline.answer(str(generation.pk))
    generation.refresh_from_db()
    generation.text = "Paris."
    read = probe.read(generation.scope, mine, turns(CAPITAL))

    def forget() -> None:
        try:
            service.forget_session(mine)
        finally:
            connection.close()

    thread = threading.Thread(target=forget)
    with transaction.atomic():
        assert lifecycle.admit(read, generation, classify(turns(CAPITAL)), None)
        thread.start()
        thread.join(0.5)
        assert thread.is_alive()
    thread.join(30)
    assert not any(rows_of(mine).values())


def test_forgetting_does_not_need_valkey(ask: Ask, queue: Ask, settings) -> None:
    mine = uuid.uuid4()
    ask(CAPITAL, session=mine)
    open_one = queue("What is the capital of Spain?", session=mine)
    Generation.objects.filter(pk=open_one.pk).update(status=Status.RUNNING)
    with unreachable(settings):
        service.forget_session(mine)
    assert not any(rows_of(mine).values())


class unreachable:
    """Valkey at an address where nobody listens."""

    def __init__(self, settings) -> None:
        self.settings, self.before = settings, settings.REDIS_URL

    def __enter__(self) -> None:
        self.settings.REDIS_URL = "redis://127.0.0.1:1/0"
        client.cache_clear()

    def __exit__(self, *_: object) -> None:
        self.settings.REDIS_URL = self.before
        client.cache_clear()
