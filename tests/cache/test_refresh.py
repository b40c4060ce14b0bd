"""What many ask for is asked anew before it dies; and a flood of misses is held."""

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from inference import pipeline, service, versions
from inference.cache import refresh
from inference.models import Entry, Generation, ServedBy, Session, State, Status, Wording

from .conftest import Ask, work

CAPITAL = "What is the capital of France?"


def near_death(entry: Entry, hits: int = 5) -> None:
    now = timezone.now()
    Entry.objects.filter(pk=entry.pk).update(
        created_at=now - timedelta(days=6, hours=23),
        dies_at=now + timedelta(minutes=30),
        expires_at=now + timedelta(minutes=20),
        last_hit_at=now,
        hits=hits,
    )


def asked_anew() -> Generation:
    return Generation.objects.get(question__has_key="refreshes")


def test_a_hot_entry_that_is_still_right_lives_on(ask: Ask) -> None:
    first = ask(CAPITAL)
    near_death(first.entry)
    assert refresh.refresh() == 1
    done = work(asked_anew())
    assert done.served_by == ServedBy.MODEL and done.entry == first.entry
    entry = Entry.objects.get()
    assert entry.dies_at > timezone.now() + timedelta(days=6) and entry.expires_at > timezone.now()
    assert (entry.hits, entry.answer) == (5, first.text) and entry.refreshed_at
    assert refresh.refresh() == 0
    assert ask(CAPITAL).entry == first.entry


def test_a_fresh_answer_that_says_something_else_takes_its_place(ask: Ask) -> None:
    first = ask(CAPITAL)
    near_death(first.entry)
    Entry.objects.update(answer="The capital of France is Lyon.", answer_vector=None)
    refresh.refresh()
    done = work(asked_anew())
    old, new = Entry.objects.get(pk=first.entry_id), Entry.objects.get(state=State.SUSPECT)
    assert old.state == State.FROZEN and done.entry == new != old
    assert (new.answer, new.hits, new.session) == (done.text, 5, old.session)
    again = ask(CAPITAL)
    assert (again.served_by, again.entry) == (ServedBy.EXACT, new)


def test_it_is_asked_for_also_when_its_session_is_over(ask: Ask) -> None:
    mine = uuid.uuid4()
    first = ask(CAPITAL, session=mine)
    service.end_session(mine)
    near_death(first.entry)
    assert refresh.refresh() == 1
    work(asked_anew())
    assert Entry.objects.get().refreshed_at
    assert Session.objects.get(pk=mine).ended_at


@pytest.mark.parametrize(
    "change",
    [
        {"hits": 1},
        {"read_only": True},
        {"state": State.FROZEN},
        {"visibility": "session"},
        {"last_hit_at": timezone.now() - timedelta(days=3)},
        {"dies_at": timezone.now() + timedelta(days=5)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_others_are_left_to_die(ask: Ask, change: dict[str, object]) -> None:
    near_death(ask(CAPITAL).entry)
    Entry.objects.update(**change)
    assert refresh.refresh() == 0


def test_of_another_version_nothing_is_refreshed(ask: Ask) -> None:
    near_death(ask(CAPITAL).entry)
    versions.bump("2")
    assert refresh.refresh() == 0 and Generation.objects.count() == 1


def test_it_is_asked_for_once_and_only_while_nobody_waits(ask: Ask, queue: Ask) -> None:
    near_death(ask(CAPITAL).entry)
    waiting = queue("What is the capital of Spain?")
    pipeline.answer(str(waiting.pk))
    assert refresh.refresh() == 0
    pipeline.generate(str(waiting.pk))
    assert refresh.refresh() == 1
    assert refresh.refresh() == 0


def test_one_that_was_frozen_meanwhile_stays_frozen(ask: Ask) -> None:
    first = ask(CAPITAL)
    near_death(first.entry)
    refresh.refresh()
    Entry.objects.update(state=State.FROZEN)
    work(asked_anew())
    entry = Entry.objects.get()
    assert entry.state == State.FROZEN and entry.refreshed_at is None


def test_a_flood_of_misses_is_held_by_coalescing_and_the_limit_of_the_queue(queue: Ask, settings) -> None:
    """After a flush everyone misses at once: who asks the same waits for one answer, and behind a full queue
    people are told to try again."""
    settings.QUEUE_LIMIT = 3
    same = [queue(CAPITAL) for _ in range(20)]
    others = [queue(f"What is {number} plus {number}?") for number in range(10)]
    for generation in [*same, *others]:
        pipeline.answer(str(generation.pk))
    rows = Generation.objects.in_bulk()
    waiting = [row for row in rows.values() if row.status == Status.PENDING and row.looked_up]
    assert len(waiting) == 3
    assert [rows[one.pk].leader_id for one in same] == [None] + [same[0].pk] * 19
    refused = [rows[one.pk] for one in others if rows[one.pk].status == Status.FAILED]
    assert len(refused) == 8 and {row.error_code for row in refused} == {"busy"}
    pipeline.generate(str(same[0].pk))
    done = Generation.objects.filter(pk__in=[one.pk for one in same])
    assert {(row.status, row.text) for row in done} == {(Status.COMPLETE, done[0].text)}
    assert Wording.objects.count() == 1
