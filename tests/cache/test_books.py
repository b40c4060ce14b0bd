"""Hits are counted and explained a few at a time, and none is counted twice or lost for another's sake."""

import threading
import uuid
from datetime import timedelta
from functools import partial

import pytest
from django.db import connection
from django.utils import timezone

from inference import claims, pipeline, premises, scopes, service, versions
from inference.cache import books, lifecycle
from inference.models import Cause, Decision, Entry, Generation, Invalidation, Scope, Session, Wording

from .conftest import Ask, at_once, stored
from .test_invalidation import NO, PLAN, Talk

CAPITAL = "What is the capital of France?"


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a worker that keeps books, but for the clock: `books.flush` is called by the test."""
    books._kept.set()
    yield
    books._kept.clear()
    books._laid_down.clear()


def served(generation: Generation) -> Generation:
    pipeline.answer(str(generation.pk))
    generation.refresh_from_db()
    assert generation.served_by == "exact"
    return generation


def decisions() -> int:
    return Decision.objects.filter(outcome="hit").count()


def test_hits_are_written_down_together(ask: Ask, queue: Ask, kept: None) -> None:
    entry = ask(CAPITAL).entry
    asked = [served(queue(CAPITAL)) for _ in range(5)]
    assert (Entry.objects.get().hits, decisions()) == (0, 0)
    assert books.flush() == 5 and books.flush() == 0
    entry.refresh_from_db()
    assert entry.hits == Wording.objects.get().hits == 5
    assert {row.generation_id for row in Decision.objects.filter(outcome="hit")} == {one.pk for one in asked}
    assert Decision.objects.filter(outcome="hit", entry=entry, layer="exact").count() == 5


def test_a_process_that_keeps_no_books_writes_at_once(ask: Ask) -> None:
    ask(CAPITAL)
    ask(CAPITAL)
    assert (Entry.objects.get().hits, decisions()) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_what_was_deleted_meanwhile_takes_no_other_hit_along(ask: Ask, queue: Ask, kept: None) -> None:
    ask(CAPITAL)
    mine = uuid.uuid4()
    gone, stays = served(queue(CAPITAL, session=mine)), served(queue(CAPITAL))
    service.forget_session(mine)
    assert books.flush() == 2
    assert [row.generation_id for row in Decision.objects.filter(outcome="hit")] == [stays.pk]
    assert gone.pk != stays.pk and Entry.objects.get().hits == 1, "its hit went with it"


@pytest.mark.django_db(transaction=True)
def test_while_the_rows_are_locked_for_too_long_nothing_is_lost(ask: Ask, queue: Ask, kept: None) -> None:
    ask(CAPITAL)
    served(queue(CAPITAL))
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '50ms'")
    locked, done = threading.Event(), threading.Event()

    def lock() -> None:
        from django.db import transaction

        with transaction.atomic():
            list(Entry.objects.select_for_update())
            locked.set()
            done.wait(30)
        connection.close()

    thread = threading.Thread(target=lock)
    thread.start()
    try:
        assert locked.wait(30)
        assert books.flush() == 0 and (Entry.objects.get().hits, decisions()) == (0, 0)
    finally:
        done.set()
        thread.join()
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")  # the connection goes back to the pool, for other tests
    assert books.flush() == 1 and (Entry.objects.get().hits, decisions()) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_many_workers_count_the_same_rows_without_a_deadlock(scope: Scope) -> None:
    pairings = [stored(scope, f"What is {number}?") for number in range(6)]
    hits = [lifecycle.Served.now(one.pk, one.entry_id, timedelta(hours=1)) for one in pairings]
    orders = [hits, hits[::-1], hits[3:] + hits[:3], hits[::2] + hits[1::2]]
    at_once([partial(_count_often, order) for order in orders])
    assert set(Entry.objects.values_list("hits", flat=True)) == {40}
    assert set(Wording.objects.values_list("hits", flat=True)) == {40}


def _count_often(hits: list[lifecycle.Served]) -> None:
    for _ in range(10):
        lifecycle.count(hits)


def test_several_hits_slide_an_expiry_as_the_last_of_them_would(scope: Scope) -> None:
    pairing = stored(scope, CAPITAL)
    now = timezone.now()
    death = now + timedelta(hours=2)
    Entry.objects.update(expires_at=now + timedelta(minutes=1), dies_at=death)
    hits = [
        lifecycle.Served(pairing.pk, pairing.entry_id, now, now + timedelta(minutes=span))
        for span in (20, 60, 40)
    ]
    lifecycle.count(hits)
    assert Entry.objects.get().expires_at == now + timedelta(minutes=60)
    lifecycle.count([lifecycle.Served(pairing.pk, pairing.entry_id, now, now + timedelta(hours=9))])
    assert (Entry.objects.get().expires_at, Entry.objects.get().hits) == (death, 4)


@pytest.mark.django_db(transaction=True)
def test_a_keeper_writes_by_itself_and_the_rest_when_it_is_told_to_go(ask: Ask, queue: Ask) -> None:
    ask(CAPITAL)
    leaving = threading.Event()
    keeper = threading.Thread(target=books.keep, args=(leaving,))
    keeper.start()
    try:
        while not books._kept.is_set():
            pass
        for _ in range(3):
            served(queue(CAPITAL))
    finally:
        leaving.set()
        keeper.join()
    assert (Entry.objects.get().hits, decisions()) == (3, 3)


# --- what a question is answered on ---------------------------------------------------------------------


def test_it_is_read_by_the_statement_that_claims_it(queue: Ask, django_assert_num_queries) -> None:
    queue(CAPITAL)
    pipeline.answer(str(queue("What is the capital of Spain?").pk))  # by now this process knows a scope
    generation = queue(CAPITAL)
    with django_assert_num_queries(1):
        claimed = claims.for_lookup(generation.pk)
        assert pipeline._heed(claimed)
        question = pipeline._understand(claimed)
    assert question.probe.scope == Scope.objects.get()


def test_a_bump_counts_for_the_next_question(queue: Ask) -> None:
    pipeline.answer(str(queue(CAPITAL).pk))
    before = scopes.current()
    versions.bump("2")
    claimed = claims.for_lookup(queue(CAPITAL).pk)
    assert claimed.premises.version == ("2", None)
    assert pipeline._understand(claimed).probe.scope.knowledge_version == "2"
    assert scopes.last() not in ("", before.hash)


def test_a_scope_that_was_flushed_is_made_anew(queue: Ask) -> None:
    pipeline.answer(str(queue(CAPITAL).pk))
    known = scopes.last()
    Generation.objects.all().delete()
    Scope.objects.all().delete()
    claimed = claims.for_lookup(queue(CAPITAL).pk)
    assert claimed.premises.scope is None
    scope = pipeline._understand(claimed).probe.scope
    assert scope.hash == known and Scope.objects.get() == scope


def test_what_is_not_heeded_yet_and_what_was_misread_is_known(queue: Ask) -> None:
    talk = Talk()
    talk.say(PLAN)
    first, second = talk.queue(NO), talk.queue("And what is it known for?")
    elsewhere = queue(CAPITAL)
    found = {one.pk: claims.for_lookup(one.pk).premises for one in (second, elsewhere)}
    assert (found[second.pk].unheeded, found[elsewhere.pk].unheeded) == (True, False)
    assert not claims.for_lookup(first.pk).premises.unheeded, "nothing came before it"
    pipeline._heed(first)
    done = Invalidation.objects.get(cause__in=[Cause.CORRECTION, Cause.RESTATEMENT])
    assert premises.now(second, "reprise", "").misread == frozenset()
    assert service.undo_correction(done.pk)
    assert premises.now(second, "reprise", "").misread == {NO}
    assert premises.now(elsewhere, "reprise", "").misread == frozenset()


def test_a_message_that_takes_something_back_is_looked_up_on_what_holds_after_it(
    queue: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bump comes while the correction is being noted."""
    talk = Talk()
    talk.say(PLAN)
    claimed = claims.for_lookup(talk.queue(NO).pk)
    pipeline._heed(claimed)
    versions.bump("2")
    assert pipeline._understand(claimed).probe.scope.knowledge_version == "2"


def test_without_a_session_row_there_is_nothing_to_read(queue: Ask) -> None:
    generation = queue(CAPITAL)
    Session.objects.all().delete()
    assert premises.now(generation, "reprise", "") == premises.Premises()
    assert claims.for_lookup(generation.pk) is None
