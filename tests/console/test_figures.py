"""The overview's figures, counted from rows and from hours that were counted before."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from cacheadmin import figures, tallies
from cacheadmin.models import AnswerHour, LookupHour
from cacheadmin.tasks import count_hours
from inference.models import Decision, Entry, Generation, Scope, ServedBy
from inference.scopes import for_measuring

from .conftest import generated, operator, signed_in, stored

pytestmark = pytest.mark.django_db
DAY, WEEK = figures.RANGES["24h"], figures.RANGES["7d"]


def lookup(
    scope: Scope, outcome: str, layer: str, at: datetime, entry: Entry | None = None, soon: float = 10.0
) -> None:
    by = ServedBy(layer) if outcome == "hit" else ServedBy.MODEL
    generation = generated(
        scope,
        "Asked?",
        "Answered.",
        served_by=by,
        entry=entry if by != ServedBy.MODEL else None,
        first_token_ms=soon,
        prompt_tokens=100,
        cached_tokens=60,
    )
    decision = Decision.objects.create(
        generation=generation, layer=layer, outcome=outcome, entry=entry, reason="", milliseconds=4.0
    )
    Generation.objects.filter(pk=generation.pk).update(created_at=at)
    Decision.objects.filter(pk=decision.pk).update(created_at=at)


@pytest.fixture
def week(scope: Scope) -> Scope:
    """Lookups over some days: now, an hour, a day and six days ago."""
    entry = stored(scope).entry
    Entry.objects.filter(pk=entry.pk).update(tokens_to_compute=50, seconds_to_compute=2.0)
    now = timezone.now()
    for ago in (timedelta(), timedelta(minutes=70), timedelta(hours=20), timedelta(days=6)):
        lookup(scope, "hit", "exact", now - ago, entry)
        lookup(scope, "near", "semantic", now - ago, entry, soon=900)
        lookup(scope, "miss", "semantic", now - ago, soon=1_100)
        lookup(scope, "bypass", "exact", now - ago, soon=1_000)
    return scope


def test_what_was_answered_and_saved(week: Scope) -> None:
    day = figures.overview(DAY, None, "")
    assert (day.lookups, day.served) == (9, 3)
    assert day.hit_ratio == pytest.approx(1 / 3)
    assert day.penetration == pytest.approx(2 / 3)
    assert day.outcomes == {"hit": 3, "gray": 0, "near": 3, "miss": 3, "bypass": 3}
    exact, fuzzy, semantic = day.layers
    assert (exact.name, exact.outcomes) == ("exact", {"hit": 3, "bypass": 3})
    assert exact.share == pytest.approx(1 / 3)
    assert (fuzzy.total, semantic.total) == (0, 6)
    assert semantic.milliseconds == pytest.approx(4.0)
    assert (day.answers_saved, day.tokens_saved, day.seconds_saved) == (3, 150, 6.0)
    assert day.reused == pytest.approx(0.6)
    assert [(one.served_by, one.answers) for one in day.speeds] == [("exact", 3), ("model", 9)]
    assert day.speeds[0].p50 == pytest.approx(10, rel=0.2)
    assert day.speeds[1].p95 == pytest.approx(1_100, rel=0.2)


def test_of_one_scope_and_one_class(week: Scope) -> None:
    other = for_measuring("another scope")
    lookup(other, "miss", "semantic", timezone.now())
    assert figures.overview(DAY, other, "").lookups == 1
    assert figures.overview(DAY, week, "").lookups == 9
    assert figures.overview(DAY, None, "fact").lookups == 6, "misses have no class"
    assert figures.overview(DAY, None, "code").lookups == 0


@pytest.mark.parametrize("span", list(figures.RANGES.values()), ids=list(figures.RANGES))
def test_counting_hours_changes_no_figure(week: Scope, span: timedelta) -> None:
    before = figures.overview(span, None, "")
    assert tallies.count_hours() > 0
    after = figures.overview(span, None, "")
    assert replace(after, since=before.since) == before
    assert tallies.count_hours() == 0, "an hour is counted once"


def test_what_is_counted_is_not_read_again(week: Scope) -> None:
    count_hours()
    LookupHour.objects.update(n=1_000)
    AnswerHour.objects.update(n=1_000)
    assert figures.overview(WEEK, None, "").lookups >= 1_000 * 3
    assert LookupHour.objects.filter(hour__gt=timezone.now() - timedelta(hours=1)).count() <= 4


def test_hours_outlive_what_they_count(week: Scope) -> None:
    count_hours()
    before = figures.overview(WEEK, None, "").lookups
    Generation.objects.filter(created_at__lt=timezone.now() - timedelta(days=2)).delete()
    assert figures.overview(WEEK, None, "").lookups == before


def test_there_may_be_nothing() -> None:
    assert tallies.count_hours() == 0
    nothing = figures.overview(DAY, None, "")
    assert (nothing.hit_ratio, nothing.penetration, nothing.reused, nothing.speeds) == (None, None, None, [])


@pytest.mark.parametrize(
    ("counts", "share", "expected"),
    [
        ({10: 100}, 0.5, tallies.EDGES[9] * 1.1),
        ({1: 1, 30: 99}, 0.001, 1.0),
        ({}, 0.5, None),
        ({0: 5}, 0.5, 0.5),
    ],
)
def test_percentiles_of_buckets(counts: dict[int, float], share: float, expected: float | None) -> None:
    found = tallies.percentile(counts, share)
    assert found == (None if expected is None else pytest.approx(expected, rel=0.1))


@pytest.mark.parametrize(
    "query", ["range=nonsense", "scope=-1", "scope=x", "class=x", "scope=99999999999999"]
)
def test_nonsense_is_answered_with_the_usual(week: Scope, query: str) -> None:
    response = signed_in(operator()).get(f"{reverse('console')}?{query}")
    assert response.status_code == 200 and "3 of 9 lookups" in response.content.decode()
