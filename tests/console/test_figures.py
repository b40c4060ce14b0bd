"""The overview's figures, counted from rows and from hours that were counted before."""

import uuid
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from cacheadmin import charts, figures, reliability, sampling, tallies
from cacheadmin.models import AnswerHour, AuditRecord, LoadSample, LookupHour
from cacheadmin.reliability import Stratum
from cacheadmin.tasks import count_hours
from inference.calibration.bounds import wilson
from inference.models import (
    Cause,
    Decision,
    Entry,
    Generation,
    Invalidation,
    Observation,
    Policy,
    Scope,
    ServedBy,
    Session,
    Verdict,
)
from inference.scopes import for_measuring

from .conftest import ANSWER, generated, operator, signed_in

pytestmark = pytest.mark.django_db
DAY, WEEK = "24h", "7d"


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
    now = timezone.now()
    entry = Entry.objects.create(
        scope=scope,
        session=Session.objects.create(pk=uuid.uuid4()),
        content_class="fact",
        answer=ANSWER,
        tokens_to_compute=50,
        seconds_to_compute=2.0,
        expires_at=now + timedelta(days=1),
        dies_at=now + timedelta(days=1),
    )
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


@pytest.mark.parametrize("which", ["all", "scope", "class", "both"])
@pytest.mark.parametrize("span", figures.RANGES)
def test_counting_hours_changes_no_figure(week: Scope, span: str, which: str) -> None:
    other = for_measuring("another scope")
    for ago in (timedelta(), timedelta(hours=20)):
        lookup(other, "miss", "semantic", timezone.now() - ago)
    scope = week if which in ("scope", "both") else None
    content_class = "fact" if which in ("class", "both") else ""
    before = figures.overview(span, scope, content_class)
    assert tallies.count_hours() > 0
    after = figures.overview(span, scope, content_class)
    assert replace(after, stretch=before.stretch) == before
    assert charts.sheet(after).data["charts"] == charts.sheet(before).data["charts"]
    assert tallies.count_hours() == 0, "an hour is counted once"


def test_what_is_counted_is_not_read_again(week: Scope) -> None:
    count_hours()
    LookupHour.objects.update(n=1_000)
    AnswerHour.objects.update(n=1_000)
    assert figures.overview(WEEK, None, "").lookups >= 1_000 * 3
    assert LookupHour.objects.filter(cut="all", hour__gt=timezone.now() - timedelta(hours=1)).count() <= 4


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


# --- over time ----------------------------------------------------------------------------------------


def series(sheet: charts.Sheet, name: str) -> dict[str, list[float]]:
    """What a chart's lines hold, without the steps in which nothing was."""
    chart = next(one for one in sheet.charts if one.name == name)
    return {one.label: [value for value in one.values if value is not None] for one in chart.series}


def test_charts_say_what_the_figures_say(week: Scope) -> None:
    day = figures.overview(DAY, None, "")
    sheet = charts.sheet(day)
    answered = series(sheet, "answered")
    assert all(value == pytest.approx(1 / 3) for value in answered["exact"])
    assert all(value == pytest.approx(2 / 3) for value in answered["went on to the model"])
    assert sum(series(sheet, "saved")["answered from the cache"]) == day.tokens_saved
    assert series(sheet, "speeds")["the model"] == pytest.approx([1_000] * 3, rel=0.25)
    assert len(sheet.steps) == 25 and sheet.steps[0] <= timezone.now() - timedelta(hours=24)
    step = sheet.steps[1] - sheet.steps[0]
    assert all(later - earlier == step for earlier, later in zip(sheet.steps, sheet.steps[1:], strict=False))


def test_what_was_taken_back_by_cause(week: Scope) -> None:
    generation = generated(week, "No, I mean the other.", "Sorry.")
    taken = Invalidation.objects.create(
        session=generation.session, generation=generation, cause=Cause.CORRECTION
    )
    AuditRecord.objects.create(action="invalidate", actor="http", selection={"source": "prices"})
    found = series(charts.sheet(figures.overview(DAY, None, "")), "invalidations")
    assert found == {"corrected by the person": [1.0], "source changed": [1.0]}
    other = for_measuring("another scope")
    assert "corrected by the person" not in series(
        charts.sheet(figures.overview(DAY, other, "")), "invalidations"
    )
    taken.undone_at = timezone.now()
    taken.save()
    assert "corrected by the person" not in series(
        charts.sheet(figures.overview(DAY, None, "")), "invalidations"
    )


def test_what_waits_is_sampled_and_forgotten(week: Scope) -> None:
    old = LoadSample.objects.create(
        at=timezone.now() - sampling.KEPT - timedelta(days=1), waiting=9, suspects=9
    )
    generated(week, "Asked just now?", "", status="running", served_by="")
    LoadSample.objects.exclude(pk=old.pk).delete()  # what a running stack noted in other tests
    sampling.sample()
    assert not LoadSample.objects.filter(pk=old.pk).exists()
    sample = LoadSample.objects.get()
    assert (sample.waiting, sample.kv_bytes) == (1, None)
    waited = series(charts.sheet(figures.overview("1h", None, "")), "waiting")
    assert waited == {"answers being written or waiting": [1], "in review": [0]}


def test_what_changed_is_marked(week: Scope) -> None:
    AuditRecord.objects.create(
        action="bump", actor="olga", before={"knowledge": "1"}, after={"knowledge": "2"}
    )
    AuditRecord.objects.create(action="approve", actor="olga")
    thresholds = {"high": 0.98, "low": 0.9, "near": 0.8, "consent": 0.5, "content_class": "fact"}
    Policy.objects.create(version=1, mode="live", **thresholds)
    Policy.objects.create(version=2, mode="shadow", **thresholds)
    marks = charts.sheet(figures.overview(DAY, None, "")).marks
    assert [mark.what for mark in marks] == [
        "version bumped: 1 → 2",
        "thresholds of general knowledge: 0.900 and 0.980",
    ]
    text = signed_in(operator()).get(reverse("console")).content.decode()
    assert "version bumped: 1 → 2" in text and '"marks": [{"at"' in text


def test_money_is_told_where_somebody_says_what_tokens_cost(week: Scope, settings) -> None:
    client = signed_in(operator())
    assert "set PRICE_PER_1000_TOKENS" in client.get(reverse("console")).content.decode()
    settings.PRICE_PER_1000_TOKENS, settings.PRICE_CURRENCY = 20.0, "EUR"
    text = client.get(reverse("console")).content.decode()
    assert "3.00 EUR" in text and "at 20 EUR per 1,000 tokens" in text


def test_money_over_time_is_what_the_saved_tokens_cost(week: Scope, settings) -> None:
    assert "money" not in {chart.name for chart in charts.sheet(figures.overview(DAY, None, "")).charts}
    settings.PRICE_PER_1000_TOKENS, settings.PRICE_CURRENCY = 20.0, "EUR"
    day = figures.overview(DAY, None, "")
    saved = series(charts.sheet(day), "money")["by the cache"]
    assert [value for value in saved if value] == pytest.approx([1.0] * 3)
    assert sum(saved) == pytest.approx(day.money_saved)
    text = signed_in(operator()).get(reverse("console")).content.decode()
    assert '<td class="number">1.00 EUR</td>' in text and '"currency": "EUR"' in text


# --- how often it is wrong ----------------------------------------------------------------------------


def judge(scope: Scope, served_by: str, verdict: Verdict, source: str = "user") -> None:
    generation = generated(scope, "Asked?", "Answered.", served_by=served_by)
    Observation.objects.create(generation=generation, verdict=verdict, source=source)


def test_wrong_hits_are_estimated_from_verdicts_on_hits(week: Scope) -> None:
    assert figures.overview(DAY, None, "").false_hits is None
    judge(week, "model", Verdict.DISAGREE)  # no hit
    judge(week, "exact", Verdict.UNCLEAR)
    judge(week, "exact", Verdict.DISAGREE, "undo")
    assert figures.overview(DAY, None, "").false_hits is None
    for verdict in [Verdict.AGREE] * 3 + [Verdict.DISAGREE]:
        judge(week, "exact", verdict)
    found = figures.overview(DAY, None, "").false_hits
    assert (found.share, found.verdicts) == (pytest.approx(0.25), 4)
    assert found.low < 0.1 and 0.6 < found.high < 0.8
    assert figures.overview(DAY, for_measuring("another scope"), "").false_hits is None


def test_background_checks_are_believed_before_people_once_they_are_enough(week: Scope) -> None:
    for _ in range(3):
        judge(week, "exact", Verdict.DISAGREE)
    judge(week, "exact", Verdict.DISAGREE, "regenerate")  # a hint, and no verdict
    for _ in range(reliability.ENOUGH - 1):
        judge(week, "exact", Verdict.AGREE, "gray")
    few = figures.overview(DAY, None, "").false_hits
    assert (few.checked, few.verdicts) == (False, reliability.ENOUGH + 2) and few.share > 0.05
    judge(week, "exact", Verdict.AGREE, "gray")
    enough = figures.overview(DAY, None, "").false_hits
    assert (enough.checked, enough.verdicts, enough.share) == (True, reliability.ENOUGH, 0.0)


def test_wrong_hits_over_time_say_nothing_of_a_few_verdicts(week: Scope) -> None:
    """A step is estimated as the whole is: each kind by itself, weighed by how many hits there were of it."""
    now = timezone.now()
    few, many = now - timedelta(hours=3), now - timedelta(hours=6)
    for hours, wrong, right in ((3, 1, reliability.A_FEW - 2), (6, 2, reliability.A_FEW - 2)):
        for verdict in [Verdict.DISAGREE] * wrong + [Verdict.AGREE] * right:
            judge(week, "exact", verdict, "gray")
        fresh = Observation.objects.filter(created_at__gt=now)
        fresh.update(created_at=now - timedelta(hours=hours))
    day = figures.overview(DAY, None, "")
    step = next(at for at in day.stretch.steps if at <= many < at + day.stretch.step)
    assert list(day.false_hits_over_time) == [step], few
    assert day.false_hits_over_time[step].share == pytest.approx(2 / reliability.A_FEW)
    assert sum(n for n, _wrong in day.judged.by_gray.values()) == day.false_hits.verdicts == 19
    drawn = series(charts.sheet(day), "wrong")
    assert drawn["estimated"] == pytest.approx([0.2]) and 0.4 < drawn["at most, 95% sure"][0] < 0.6
    # Half of the hits of that hour were doubtful ones, of which most were wrong.
    for verdict in [Verdict.DISAGREE] * 9 + [Verdict.AGREE]:
        judge(week, "gray", verdict, "gray")
    Observation.objects.filter(created_at__gt=now).update(created_at=many)
    for outcome in ("hit", "gray"):
        for _ in range(20):
            lookup(week, outcome, "semantic", many)
    found = figures.overview(DAY, None, "").false_hits_over_time[step]
    assert found.share == pytest.approx(0.5 * 0.2 + 0.5 * 0.9) and found.verdicts == 20


@pytest.mark.parametrize(
    ("query", "hints"),
    [
        ({}, {}),
        (
            {"scope": "one"},
            {
                "invalidations": "Sources, versions and flushes: of all scopes.",
                "waiting": "Of all scopes and classes.",
                "memory": "Of all scopes and classes.",
            },
        ),
        (
            {"class": "fact"},
            {
                "invalidations": "Of all classes.",
                "waiting": "Of all scopes and classes.",
                "memory": "Of all scopes and classes.",
            },
        ),
    ],
)
def test_what_a_filter_does_not_narrow_says_so(
    week: Scope, query: dict[str, str], hints: dict[str, str]
) -> None:
    sampling.sample()
    asked = {name: str(week.pk) if name == "scope" else value for name, value in query.items()}
    response = signed_in(operator()).get(reverse("console"), asked)
    said = {chart.name: chart.hint for chart in response.context["sheet"].charts if chart.hint}
    assert said.pop("wrong")
    assert said == hints
    text = response.content.decode()
    now = text.partition("<h2>Now</h2>")[2].partition("<h2>")[0]
    assert ("Of all scopes and classes." in now) == bool(query)
    assert all(hint in text for hint in hints.values())


def test_of_many_verdicts_a_sample_is_looked_at(week: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    for at in range(60):
        judge(week, "exact", Verdict.DISAGREE if at % 3 == 0 else Verdict.AGREE, "gray")
    every = figures.overview(DAY, None, "").false_hits
    assert every.verdicts == 60
    monkeypatch.setattr(reliability, "MOST", 20)
    some = figures.overview(DAY, None, "").false_hits
    assert 5 <= some.verdicts <= 40 and some.low < 1 / 3 < some.high
    assert some == figures.overview(DAY, None, "").false_hits  # always the same ones


def test_kinds_that_are_judged_more_often_do_not_count_for_more() -> None:
    found = reliability.estimate([Stratum(hits=100, judged=100, wrong=50), Stratum(900, 9, 0)])
    assert found.share == pytest.approx(0.05)
    assert found.low < 0.05 < found.high < 0.35


def test_what_nobody_judged_may_be_anything() -> None:
    assert reliability.estimate([Stratum(10, 0, 0)]) is None
    found = reliability.estimate([Stratum(50, 0, 0), Stratum(50, 50, 0)])
    assert (found.share, found.low) == (0.0, 0.0) and found.high >= 0.5


@pytest.mark.parametrize(("hits", "n"), [(0, 0), (0, 10), (5, 10), (10, 10), (1, 1_000)])
def test_bounds_hold_the_share(hits: int, n: int) -> None:
    low, high = wilson(hits, n)
    assert 0.0 <= low <= hits / max(1, n) <= high <= 1.0
