"""Queues of workers of which only the announcements are there: who gets what, and what becomes of it."""

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from config.celery import app
from inference import affinity, dispatch, farewells, pipeline, reaper, service, tasks, workers
from inference.engine import engine
from inference.models import Generation, Status
from inference.redis import client
from tests.cache.conftest import Ask, queue, turns  # noqa: F401  (a fixture)

SEATS = ("generate.one@here", "generate.two@there")


@pytest.fixture(autouse=True)
def _emptied(db: None) -> Iterator[None]:
    client().flushdb()
    for seat in SEATS:
        announce(seat)
    yield
    client().flushdb()


def announce(seat: str, ago: float = 0, process: str = "") -> None:
    """What a worker in `seat` says of itself."""
    seconds, _ = client().time()
    client().zadd("workers:generate", {f"{process or seat + ':1:abc'} {seat}": seconds - ago})


def die(seat: str) -> None:
    announce(seat, ago=31)


def in_queue(name: str) -> int:
    """How many messages the broker holds there."""
    return int(client().llen(name))


def looked_up(generation: Generation) -> Generation:
    pipeline.answer(str(generation.pk))
    generation.refresh_from_db()
    return generation


def session_of(seat: str) -> uuid.UUID:
    """A new session that belongs to `seat`."""
    while affinity.ranked(str(session := uuid.uuid4()), SEATS)[0] != seat:
        pass
    return session


@pytest.fixture
def waiting(queue: Ask) -> Callable[..., Generation]:  # noqa: F811
    """Ask in a session of this seat, up to where the question waits for an engine."""

    def act(seat: str, text: str = "") -> Generation:
        return looked_up(queue(text or f"What is {uuid.uuid4().hex}?", session=session_of(seat)))

    return act


def test_a_session_goes_to_its_worker(waiting: Any) -> None:
    for seat in SEATS:
        assert waiting(seat).claimed_by == seat
        assert in_queue(seat) == 1
    assert in_queue(dispatch.SHARED) == 0


def test_a_long_queue_is_passed_by(waiting: Any, settings: Any) -> None:
    settings.QUEUE_LONG = 2
    one, two = SEATS
    assert [waiting(one).claimed_by for _ in range(5)] == [one, one, two, two, one]


def test_a_queue_over_its_limit_is_busy(waiting: Any, settings: Any) -> None:
    settings.QUEUE_LIMIT = 2
    waited = [waiting(SEATS[0]) for _ in range(4)]
    assert sorted(one.claimed_by for one in waited) == sorted([*SEATS, *SEATS])
    refused = waiting(SEATS[0])
    assert (refused.status, refused.error_code) == (Status.FAILED, "busy")
    assert [in_queue(seat) for seat in SEATS] == [2, 2]
    Generation.objects.filter(pk=waited[0].pk).update(status=Status.RUNNING)
    assert waiting(SEATS[1]).status == Status.PENDING


def test_who_has_no_seat_is_served_by_all(waiting: Any) -> None:
    """For a moment after Valkey was emptied, nobody is known."""
    client().flushdb()
    alone = waiting(SEATS[0])
    assert (alone.status, alone.claimed_by) == (Status.PENDING, "")
    assert in_queue(dispatch.SHARED) == 1


def test_what_waits_for_a_dead_worker_goes_to_another(waiting: Any) -> None:
    one, two = SEATS
    stranded, other = waiting(one), waiting(two)
    assert reaper.reap() == Counter()
    die(one)
    assert reaper.reap() == Counter(resent=1)
    stranded.refresh_from_db()
    assert (stranded.claimed_by, in_queue(two)) == (two, 2)
    assert reaper.reap() == Counter()
    assert Generation.objects.get(pk=other.pk).claimed_by == two


def test_while_all_are_dead_everything_waits(waiting: Any) -> None:
    """One that is being restarted finds its queue as it was."""
    stranded = waiting(SEATS[0])
    for seat in SEATS:
        die(seat)
    assert reaper.reap() == Counter()
    stranded.refresh_from_db()
    assert (stranded.claimed_by, in_queue(SEATS[0])) == (SEATS[0], 1)


def test_where_nobody_comes_to_compute_it_is_said(waiting: Any) -> None:
    """Killed with its question in the queue, as the only engine, and never started again."""
    stranded = waiting(SEATS[0])
    for seat in SEATS:
        die(seat)
    workers.announce("answer")
    client().set("workers:generate:since", 0)  # for long
    for seconds, becomes in ((31, Counter()), (89, Counter()), (91, Counter(failed=1)), (120, Counter())):
        since = timezone.now() - timedelta(seconds=seconds)
        Generation.objects.filter(pk=stranded.pk).update(heartbeat_at=since)
        assert reaper.reap() == becomes
    stranded.refresh_from_db()
    assert (stranded.status, stranded.error_code) == (Status.FAILED, "engine_unavailable")


def test_where_nobody_comes_to_look_it_up_it_is_said(queue: Ask) -> None:  # noqa: F811
    asked = queue("What is a cache?")
    Generation.objects.filter(pk=asked.pk).update(heartbeat_at=timezone.now() - timedelta(seconds=91))
    client().set("workers:answer:since", 0)
    assert reaper.settle(Generation.objects.get(pk=asked.pk)) == "failed"
    asked.refresh_from_db()
    assert (asked.status, asked.error_code) == (Status.FAILED, "engine_unavailable")


def test_who_is_started_again_takes_its_own_place(waiting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed and started again in its seat, it told nobody that it was gone."""
    one, two = SEATS
    monkeypatch.setattr(workers, "_seat", one)
    workers.announce("generate")
    workers.succeed("generate")
    roll = workers.roll("generate")
    assert roll.seats == {one, two} and len(roll.processes) == 2 and workers.process() in roll.processes
    workers.withdraw("generate")
    assert workers.roll("generate").seats == {two}


def silent(generation: Generation, process: str, seconds: float) -> None:
    Generation.objects.filter(pk=generation.pk).update(
        status=Status.RUNNING,
        claimed_by=f"{process}:77",
        heartbeat_at=timezone.now() - timedelta(seconds=seconds),
    )


def test_what_a_dead_worker_was_writing_is_begun_anew_once(waiting: Any) -> None:
    one, _ = SEATS
    generation = waiting(one)
    silent(generation, "host:1:old", 31)  # started again in its place: the same seat, another process
    assert reaper.reap() == Counter(resent=1)
    generation.refresh_from_db()
    assert (generation.status, generation.claimed_by) == (Status.PENDING, one)
    silent(generation, "host:1:older", 31)
    assert reaper.reap() == Counter(), "it may be what kills them"
    silent(generation, "host:1:older", 91)
    assert reaper.reap() == Counter(interrupted=1)


def test_a_living_worker_keeps_what_it_has(waiting: Any) -> None:
    generation = waiting(SEATS[0])
    announce(SEATS[0], process="host:1:abc")
    silent(generation, "host:1:abc", 60)
    assert reaper.reap() == Counter()


def test_nobody_else_is_there(waiting: Any) -> None:
    generation = waiting(SEATS[0])
    for seat in SEATS:
        die(seat)
    silent(generation, "host:1:old", 60)
    assert reaper.reap() == Counter()


def test_one_that_goes_does_not_queue_for_itself(waiting: Any) -> None:
    one, two = SEATS
    generation = waiting(one)
    before = workers._seat
    workers._seat = one
    workers.leaving.set()
    try:
        dispatch.generate(generation.pk)
    finally:
        workers.leaving.clear()
        workers._seat = before
    generation.refresh_from_db()
    assert generation.claimed_by == two


def test_seats_of_the_dead_are_cleared_away(waiting: Any) -> None:
    one, two = SEATS
    with app.connection_for_write() as connection:
        channel: Any = connection.default_channel
        waiting(one)
        die(one)
        assert reaper.clear_seats() == 0, "it may come back"
        announce(one, ago=workers.FORGET_SECONDS + 1)
        announce(one, ago=workers.FORGET_SECONDS - 60, process="another")
        assert reaper.clear_seats() == 0, "somebody else had it later"
        announce(one, ago=workers.FORGET_SECONDS + 1, process="another")
        assert reaper.clear_seats() == 1
        assert in_queue(one) == 0 and not channel.get_table(one)
    assert workers.roll("generate").seats == {two}


def test_a_worker_that_left_is_not_counted(waiting: Any) -> None:
    workers.announce("generate")
    there = workers.alive("generate")
    workers.withdraw("generate")
    assert workers.alive("generate") == there - 1
    workers.withdraw("answer")
    assert workers.alive("answer") == 0


def test_the_end_of_a_session_is_heard_by_all(django_capture_on_commit_callbacks: Any) -> None:
    heard: list[list[str]] = [[], []]
    farewells.tell(uuid.uuid4())  # before they were there
    listeners = [farewells.Listener(one.append) for one in heard]
    first, second = uuid.uuid4(), uuid.uuid4()
    farewells.tell(first)
    assert listeners[0].hear() == 1
    service.end_session(second)
    assert [one.hear() for one in listeners] == [1, 2]
    assert heard == [[str(first), str(second)]] * 2
    client().flushdb()
    with django_capture_on_commit_callbacks(execute=True):
        service.forget_session(first)
    assert [one.hear() for one in listeners] == [1, 1], "the log was lost meanwhile"


def test_a_session_that_cannot_be_ended_is_no_hindrance() -> None:
    heard: list[str] = []

    def end(session: str) -> None:
        heard.append(session)
        raise RuntimeError("on purpose")

    listener = farewells.Listener(end)
    for _ in range(2):
        farewells.tell(uuid.uuid4())
    assert listener.hear() == 2 and len(heard) == 2
    assert listener.hear() == 0


@pytest.mark.django_db(transaction=True)
def test_the_engine_lets_go_of_a_session_that_is_over(queue: Ask) -> None:  # noqa: F811
    """Through the loop that a generate worker runs."""
    serving = threading.Thread(target=tasks._serve, args=(dispatch.SHARED,))
    serving.start()
    try:
        until(lambda: workers.process() in workers.roll("generate").processes)
        generation = queue("What is a cache?")
        pipeline.answer(str(generation.pk))
        pipeline.generate(str(generation.pk))
        held = engine().kv_report()["stored_sessions"]
        assert held > 0
        service.end_session(generation.session_id)
        until(lambda: engine().kv_report()["stored_sessions"] == held - 1)
    finally:
        workers.leaving.set()
        serving.join(20)
        workers.leaving.clear()
    assert workers.process() not in workers.roll("generate").processes


def until(condition: Callable[[], bool], within: float = 60) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
