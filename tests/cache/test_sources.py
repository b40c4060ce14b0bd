"""A changed source takes with it what was made from it, and nothing else."""

import threading
import uuid
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from inference import pipeline, service, sources, stream
from inference.cache import lifecycle, probe, provenance
from inference.cache.lifecycle import Served
from inference.models import DataSource, Entry, EntrySource, Generation, ServedBy, State, Status
from inference.sources import Source
from inference.understanding.cacheability import classify

from .conftest import Ask, turns, work

CAPITAL = "What is the capital of France?"
HANDBOOK = Source("handbook", "v1")


def asked(question: str, *named: Source) -> Generation:
    return service.ask(uuid.uuid4(), turns(question), sources=named)


def derived_from(entry: Entry) -> dict[str, str]:
    return dict(EntrySource.objects.filter(entry=entry).values_list("source_key", "version"))


def test_an_answer_names_what_it_was_made_from(db: None) -> None:
    done = work(asked(CAPITAL, HANDBOOK, Source("atlas")))
    assert derived_from(done.entry) == {"handbook": "v1", "atlas": ""}


def test_the_knowledge_file_names_itself(ask: Ask, settings, tmp_path) -> None:
    settings.KNOWLEDGE_FILE = str(tmp_path / "shop.txt")
    (tmp_path / "shop.txt").write_text("The shop opens at 9.")
    first = ask(CAPITAL)
    (named,) = derived_from(first.entry)
    assert named == "knowledge:shop.txt"
    assert sources.invalidate("knowledge:shop.txt").entries == 1
    assert ask(CAPITAL).served_by == ServedBy.MODEL


def test_only_what_is_made_from_the_same_is_served(db: None) -> None:
    first = work(asked(CAPITAL, HANDBOOK))
    assert work(asked(CAPITAL, HANDBOOK)).entry == first.entry
    for named in ([Source("handbook", "v2")], [], [HANDBOOK, Source("atlas")]):
        other = asked(CAPITAL, *named)
        pipeline.answer(str(other.pk))
        other.refresh_from_db()
        assert other.looked_up and other.status == Status.PENDING


def test_exactly_what_was_made_from_it_is_frozen(db: None) -> None:
    spoilt = [
        work(asked("What is the capital of Spain?", HANDBOOK)).entry,
        work(asked("What is the capital of Italy?", HANDBOOK, Source("atlas"))).entry,
    ]
    kept = [
        work(asked("What is the capital of Norway?", Source("atlas"))).entry,
        work(asked("What is the capital of Sweden?", Source("handbook/2"))).entry,
        work(asked("What is the capital of Poland?")).entry,
    ]
    assert sources.invalidate("handbook").entries == 2
    states = dict(Entry.objects.values_list("pk", "state"))
    assert {states[entry.pk] for entry in spoilt} == {State.FROZEN}
    assert State.FROZEN not in {states[entry.pk] for entry in kept}
    assert sources.invalidate("handbook").entries == 0


def test_what_was_made_from_the_version_it_changed_to_stays(db: None) -> None:
    old = work(asked(CAPITAL, HANDBOOK)).entry
    new = work(asked(CAPITAL, Source("handbook", "v2"))).entry
    assert sources.invalidate("handbook", "v2").entries == 1
    old.refresh_from_db()
    new.refresh_from_db()
    assert (old.state, new.state) == (State.FROZEN, State.SUSPECT)


def test_a_rejected_entry_stays_rejected(db: None) -> None:
    entry = work(asked(CAPITAL, HANDBOOK)).entry
    Entry.objects.update(state=State.REJECTED)
    assert sources.invalidate("handbook").entries == 0
    entry.refresh_from_db()
    assert entry.state == State.REJECTED


def test_an_answer_in_the_making_is_not_stored(db: None) -> None:
    generation = asked(CAPITAL, HANDBOOK)
    pipeline.answer(str(generation.pk))
    sources.invalidate("handbook")
    pipeline.generate(str(generation.pk))
    generation.refresh_from_db()
    assert generation.status == Status.COMPLETE and generation.text
    assert generation.entry is None and not Entry.objects.exists()


def test_an_answer_in_the_making_from_the_version_it_changed_to_is_stored(db: None) -> None:
    generation = asked(CAPITAL, Source("handbook", "v2"))
    pipeline.answer(str(generation.pk))
    sources.invalidate("handbook", "v2")
    pipeline.generate(str(generation.pk))
    assert Entry.objects.get().state != State.FROZEN


def test_invalidated_while_it_is_served_it_is_not_served_again(queue: Ask, monkeypatch) -> None:
    """The change comes between the moment an entry was found and the moment its hit is counted."""
    first = work(asked(CAPITAL, HANDBOOK))
    deliver = stream.deliver

    def changed_meanwhile(*arguments: object) -> None:
        sources.invalidate("handbook")
        deliver(*arguments)

    monkeypatch.setattr(stream, "deliver", changed_meanwhile)
    served = asked(CAPITAL, HANDBOOK)
    pipeline.answer(str(served.pk))
    monkeypatch.undo()
    served.refresh_from_db()
    assert (served.status, served.text) == (Status.COMPLETE, first.text)  # its reader had it already
    entry = Entry.objects.get()
    assert entry.state == State.FROZEN and entry.expires_at <= entry.dies_at
    again = work(asked(CAPITAL, HANDBOOK))
    assert again.served_by == ServedBy.MODEL and again.entry not in (None, first.entry)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("first", ["store", "invalidate"])
def test_of_storing_and_a_change_at_once_neither_misses_the_other(first: str) -> None:
    """Whoever comes first, the other waits for it: at the end no entry from before the change is servable."""
    generation = asked(CAPITAL, HANDBOOK)
    pipeline.answer(str(generation.pk))
    generation.refresh_from_db()
    generation.text = "Paris."
    read = probe.read(generation.scope, generation.session_id, turns(CAPITAL))
    acts: dict[str, Callable[[], object]] = {
        "store": lambda: lifecycle.admit(read, generation, classify(turns(CAPITAL)), None),
        "invalidate": lambda: sources.invalidate("handbook"),
    }
    (second,) = acts.keys() - {first}
    outcome: list[object] = []

    def other() -> None:
        try:
            outcome.append(acts[second]())
        finally:
            connection.close()

    thread = threading.Thread(target=other)
    with transaction.atomic():
        outcome.append(acts[first]())
        thread.start()
        thread.join(0.5)
        assert thread.is_alive(), "the second did not wait for the first"
    thread.join(30)
    assert set(Entry.objects.values_list("state", flat=True)) <= {State.FROZEN}
    assert Entry.objects.exists() is (first == "store")


@pytest.mark.parametrize("key", ["", "a b", "a\n", "x" * 201, "a\x00"])
def test_what_can_be_no_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="no key"):
        Source(key)


def test_a_source_named_twice_or_as_the_knowledge_file_is_refused(db: None) -> None:
    for named in ([HANDBOOK, Source("handbook")], [Source("knowledge:shop.txt")]):
        with pytest.raises(ValueError, match=r"twice|knowledge"):
            asked(CAPITAL, *named)
    assert not Generation.objects.exists()


def test_a_source_that_nothing_was_made_from_is_unknown(db: None) -> None:
    with pytest.raises(sources.UnknownSource):
        sources.invalidate("nobody")
    assert not DataSource.objects.exists()


def test_however_often_it_is_hit_it_dies_when_it_must(db: None, scope) -> None:
    """A hit moves the expiry, but never past the absolute end."""
    done = work(asked(CAPITAL))
    soon = timezone.now() + timedelta(minutes=2)
    Entry.objects.update(content_class="live", expires_at=soon, dies_at=soon)
    for _ in range(20):
        lifecycle.count([Served.now(done.wording_id, done.entry_id, timedelta(minutes=5))])
    entry = Entry.objects.get()
    assert (entry.hits, entry.expires_at, entry.dies_at) == (20, soon, soon)
    Entry.objects.update(expires_at=timezone.now(), dies_at=timezone.now())
    assert work(asked(CAPITAL)).served_by == ServedBy.MODEL


def test_lives_are_scattered_and_none_is_longer_than_its_class_allows(db: None) -> None:
    now, life = timezone.now(), classify(turns(CAPITAL)).life
    assert life is not None
    spans = [lifecycle._death(now, life) - now for _ in range(200)]
    assert life * 0.9 <= min(spans) < max(spans) <= life
    assert max(spans) - min(spans) > life * 0.05


def test_a_source_is_held_only_while_it_is_what_was_read(db: None) -> None:
    made = provenance.read_now([("handbook", "v1")])
    with transaction.atomic():
        assert provenance.hold(made) and provenance.hold([])
    sources.invalidate("handbook")
    with transaction.atomic():
        assert not provenance.hold(made)
        assert not provenance.hold([{"key": "never read", "version": "", "changes": 0}])
