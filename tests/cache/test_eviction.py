"""Who makes room: what can serve nobody, then what is dead, then what saves least for its size."""

import uuid
from datetime import timedelta

from django.utils import timezone

from inference.cache import eviction, invalidation
from inference.models import Entry, Generation, Invalidation, Scope, State
from inference.scopes import for_measuring

from .conftest import Ask, stored


def test_frozen_and_expired_entries_go_and_the_others_stay(scope: Scope) -> None:
    frozen, expired, alive = (stored(scope, f"What is colour number {at}?").entry for at in range(3))
    Entry.objects.filter(pk=frozen.pk).update(state=State.FROZEN, hits=1_000)
    Entry.objects.filter(pk=expired.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    freed = eviction.evict()
    assert (freed.over, freed.expired, freed.least_worth) == (1, 1, 0)
    assert list(Entry.objects.all()) == [alive]


def test_a_scope_over_its_quota_loses_what_is_worth_least(scope: Scope, settings) -> None:
    other = for_measuring("another")
    kept_there = stored(other, "Is this another scope?").entry
    entries = [stored(scope, f"What is colour number {at}?").entry for at in range(4)]
    for entry, hits in zip(entries, (0, 50, 3, 7), strict=True):
        Entry.objects.filter(pk=entry.pk).update(hits=hits, seconds_to_compute=1, tokens_to_compute=100)
    settings.CACHE_SCOPE_ROWS = 2
    assert eviction.evict().least_worth == 2
    assert set(Entry.objects.all()) == {entries[1], entries[3], kept_there}


def test_use_breaks_ties_only(scope: Scope, settings) -> None:
    old, new = (stored(scope, f"What is colour number {at}?").entry for at in range(2))
    now = timezone.now()
    Entry.objects.filter(pk=old.pk).update(last_hit_at=now - timedelta(hours=2), created_at=now)
    Entry.objects.filter(pk=new.pk).update(last_hit_at=now, created_at=now)
    settings.CACHE_ROWS = 1
    eviction.evict()
    assert list(Entry.objects.all()) == [new]


def test_the_cap_on_bytes_holds(scope: Scope, settings) -> None:
    for at in range(6):
        stored(scope, f"What is colour number {at}?", answer="x" * 20_000)
    settings.CACHE_MIB = 100_000 / 2**20
    eviction.evict()
    assert 0 < Entry.objects.count() <= 4
    assert eviction.evict().entries == 0


def test_what_a_correction_froze_stays_for_an_hour_to_be_undone(ask: Ask) -> None:
    session = uuid.uuid4()
    kept = ask("My name is Zoe. Is a cat an animal? Say yes or no.", session=session).entry
    generation = Generation.objects.get(entry=kept)
    done = invalidation.edited(generation, [])
    eviction.evict()
    assert Entry.objects.get(pk=kept.pk).state == State.FROZEN
    Invalidation.objects.filter(pk=done.pk).update(created_at=timezone.now() - timedelta(hours=2))
    eviction.evict()
    assert not Entry.objects.filter(pk=kept.pk).exists()
