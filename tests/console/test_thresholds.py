"""The thresholds' page: what it shows, what saving does, and what it never does without a word."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from cacheadmin import thresholds
from cacheadmin.models import AuditRecord
from inference.cache import policy
from inference.cache.policy import BUILT_IN, Thresholds
from inference.calibration import fitting
from inference.calibration.fitting import Pair
from inference.models import Decision, Entry, Mode, Outcome, Policy, Scope, Verdict
from tests.calibration.rows import entry_of, looked_up
from tests.calibration.rows import values as stored_values

from .conftest import operator, signed_in

pytestmark = pytest.mark.django_db
AGREE, DISAGREE = Verdict.AGREE, Verdict.DISAGREE


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    thresholds.forget()


@pytest.fixture
def client() -> Client:
    return signed_in(operator())


@pytest.fixture
def observed(scope: Scope) -> list[Decision]:
    """Right hits at 0.95, wrong ones at 0.91, and what was near at 0.87 and right."""
    born = entry_of(scope)
    rows = [looked_up(born, Outcome.GRAY, AGREE, score=0.95) for _at in range(6)]
    rows += [looked_up(born, Outcome.GRAY, DISAGREE, score=0.91) for _at in range(3)]
    return rows + [looked_up(born, Outcome.NEAR, AGREE, score=0.87) for _at in range(2)]


def show(client: Client, **query: object) -> str:
    return client.get(reverse("console_thresholds"), query).content.decode()


def save(client: Client, **values: object) -> Any:
    sent = {"scope": "", "class": "", "seen": 0, "mode": "live", "near": 0.78, "consent": 0.5, "likely": 0.97}
    return client.post(reverse("console_tune"), sent | {"high": 0.985, "low": 0.9} | values)


class TestLooking:
    def test_without_anything_known_it_says_how_that_comes(self, client: Client) -> None:
        text = show(client)
        assert "Nothing is known yet" in text and "Built in." in text and "0.985" in text
        assert "was never changed" in text

    def test_right_and_wrong_pairs_are_drawn_and_counted(
        self, client: Client, observed: list[Decision]
    ) -> None:
        text = show(client)
        assert 'class="right"' in text and 'class="wrong"' in text
        assert "8 that ask the same (upwards) and 3 that do not" in text
        assert "9 of 11 whose truth is known" in text and "3 of 9" in text

    def test_other_thresholds_come_to_other_figures(self, client: Client, observed: list[Decision]) -> None:
        text = show(client, high=0.99, low=0.93)
        assert "6 of 11 whose truth is known; now 81.8%" in text and "0 of 6" in text
        assert "Of the last 11, 3 would be others: 0 more hits, 3 fewer." in text
        for row in observed:
            entry = reverse("console_entry", args=[stored_values(row.measured)["entry"]])
            session = reverse("console_session", args=[row.generation.session_id])
            changes = stored_values(row.measured)["score"] == 0.91
            assert (row.generation.canonical_question in text) == (session in text) == changes
            assert entry in text
        lower = show(client, high=0.99, low=0.86)
        assert "2 more hits, 0 fewer" in lower and "you will be asked once more" in lower

    def test_links_lead_somewhere_also_when_the_entry_is_gone(
        self, client: Client, scope: Scope, observed: list[Decision]
    ) -> None:
        row = policy.write(None, "", Thresholds(0.985, 0.8, 0.78, 0.5), Mode.SHADOW, seen=0)
        born = entry_of(scope)
        hit = {"outcome": "gray", "entry": str(born.entry_id)}
        tried = looked_up(born, Outcome.NEAR, AGREE, shadow=row, shadowed=hit)
        text = show(client, high=0.99, low=0.93)
        assert "deleted since" not in text and f"{reverse('console_entry', args=[born.entry_id])}" in text
        Entry.objects.all().delete()
        thresholds.forget()
        text = show(client, high=0.99, low=0.93)
        assert text.count("deleted since") == 4 + 1 and tried.generation.canonical_question in text
        links = set(re.findall(r'href="(/console/(?:sessions|entries)/[^"#?]+)', text))
        assert len(links) == 4
        assert {client.get(link).status_code for link in links} == {200}

    def test_only_of_the_chosen_scope_and_class(
        self, client: Client, scope: Scope, observed: list[Decision]
    ) -> None:
        other = Scope.objects.create(hash="other", app="other", prompt_template="", knowledge_version="")
        assert "9 of 11" in show(client, scope=scope.pk) and "9 of 11" in show(client, **{"class": "fact"})
        assert "9 of 11" not in show(client, scope=other.pk)
        assert "9 of 11" not in show(client, **{"class": "advice"})

    def test_the_part_for_a_slider_is_only_a_part(self, client: Client, observed: list[Decision]) -> None:
        response = client.get(
            reverse("console_thresholds"), {"high": 0.99, "low": 0.93}, headers={"HX-Request": "true"}
        )
        text = response.content.decode()
        assert "<html" not in text and "6 of 11" in text and "Earlier policies" not in text

    @pytest.mark.parametrize(
        "query", [{"high": "x"}, {"high": "nan"}, {"low": "7"}, {"scope": "x"}, {"class": "x"}, {"high": 0.2}]
    )
    def test_nonsense_is_left_aside(self, client: Client, query: dict[str, object]) -> None:
        assert client.get(reverse("console_thresholds"), query).status_code == 200

    def test_who_may_only_look_can_save_nothing(self, observed: list[Decision]) -> None:
        viewer = signed_in(operator("vera", "view"))
        assert reverse("console_tune") not in show(viewer, high=0.99, low=0.93)
        assert save(viewer, high=0.99).status_code == 403 and not Policy.objects.exists()


class TestSaving:
    def test_what_serves_less_is_in_force_at_once(self, client: Client, scope: Scope) -> None:
        response = save(client, scope=scope.pk, **{"class": "fact"}, high=0.995, low=0.95, reason="Too much.")
        assert response.status_code == 302
        row = Policy.objects.get()
        assert (row.mode, row.version, row.high, row.low, row.author) == ("live", 1, 0.995, 0.95, "olga")
        assert policy.rules(scope).of("fact").high == 0.995 and policy.rules(scope).of("advice") == BUILT_IN
        record = AuditRecord.objects.get()
        assert (record.action, record.reason, record.actor) == ("tune", "Too much.", "olga")
        assert record.before["high"] == 0.985 and record.after["high"] == 0.995
        assert "Too much." in client.get(reverse("console_action", args=[record.batch])).content.decode()

    def test_what_serves_more_is_asked_for_once_more(self, client: Client, observed: list[Decision]) -> None:
        response = save(client, low=0.85, reason="Why not.")
        text = response.content.decode()
        assert response.status_code == 400 and not Policy.objects.exists()
        assert "Serve more all the same" in text and 'value="Why not."' in text and 'value="0.85"' in text
        assert save(client, low=0.85, confirmed="yes").status_code == 302
        assert Policy.objects.get().low == 0.85

    def test_a_trial_needs_no_second_word_and_decides_nothing(self, client: Client, scope: Scope) -> None:
        assert save(client, low=0.8, mode="shadow").status_code == 302
        assert policy.rules(scope).of("fact") == BUILT_IN and policy.shadow_rules(scope).of("fact").low == 0.8
        text = show(client)
        assert "On trial: version 1" in text and "End the trial" in text
        assert save(client, seen=1).status_code == 302
        assert policy.shadow_rules(scope) is None

    def test_what_somebody_changed_meanwhile_is_a_conflict(self, client: Client) -> None:
        save(signed_in(operator("boris")), high=0.99)
        response = save(client, high=0.999)
        text = response.content.decode()
        assert response.status_code == 409 and "so nothing was done" in text and "boris" in text
        assert Policy.objects.count() == 1
        assert 'name="seen" value="1"' in text and 'value="0.999"' in text  # what she had chosen is kept

    @pytest.mark.parametrize(
        "values",
        [
            {"high": ""},
            {"likely": "x"},
            {"high": "nan"},
            {"low": 2},
            {"mode": "proposed"},
            {"mode": ""},
            {"seen": "x"},
            {"scope": "999999"},
            {"class": "x"},
            {"high": 0.8, "low": 0.9, "confirmed": "yes"},
            {"near": 0.95},
        ],
    )
    def test_what_can_t_be_meant_changes_nothing(self, client: Client, values: dict[str, object]) -> None:
        response = save(client, **values)
        assert response.status_code == 400 and 'role="alert"' in response.content.decode()
        assert not Policy.objects.exists() and not AuditRecord.objects.exists()

    def test_back_to_an_earlier_one(self, client: Client) -> None:
        save(client, high=0.99)
        save(client, high=0.995, seen=1)
        text = show(client)
        assert "back to version 1" in text and text.count("back to version") == 1
        assert save(client, high=0.99, seen=2).status_code == 400  # serves more than now
        assert save(client, high=0.99, seen=2, confirmed="yes").status_code == 302
        assert [row.high for row in Policy.objects.order_by("version")] == [0.99, 0.995, 0.99]
        assert policy.standing(None, "").live.high == 0.99

    def test_a_proposal_waits_on_the_page(self, client: Client) -> None:
        fit = {"pairs": 1_200, "target": 0.02, "confidence": 0.95, "data": {"source": "observations"}}
        fit |= {"likely": {"bound": 1.0}, "high": {"bound": 1.0}, "low": {"bound": 0.012}}
        proposed = Thresholds(0.985, 0.88, 0.78, 0.5)
        policy.write(None, "", proposed, Mode.PROPOSED, seen=0, fit=fit)
        text = show(client)
        assert "Calibration proposes" in text and "fitted to 1,200 pairs (observations)" in text
        assert "low=0.88" in text
        save(client, low=0.88, seen=1, confirmed="yes")
        assert "Calibration proposes" not in show(client) and policy.standing(None, "").live.low == 0.88

    @pytest.mark.parametrize("mode", ["live", "shadow"])
    def test_who_takes_up_a_proposal_keeps_what_it_was_fitted_to(self, client: Client, mode: str) -> None:
        fit = fitted()
        policy.write(None, "", Thresholds(0.985, 0.88, 0.78, 0.5), Mode.PROPOSED, seen=0, fit=fit)
        form = re.search(r'<section class="notice proposal".*?</section>', show(client), re.DOTALL)
        assert form
        sent = dict(re.findall(r'name="(\w+)"\s+value="([^"]*)"', form.group()))
        client.post(reverse("console_tune"), sent | {"mode": mode})
        row = Policy.objects.get(version=2)
        assert (row.mode, row.low, row.fit, row.author) == (mode, 0.88, fit, "olga")
        record = AuditRecord.objects.get()
        assert row.note == record.reason == "as proposed in version 1"
        if mode == "shadow":  # and from there
            save(client, low=0.88, seen=2, confirmed="yes", reason="It was right.")
            row = Policy.objects.get(version=3)
            assert (row.mode, row.fit, row.note) == ("live", fit, "It was right.")

    def test_other_thresholds_than_the_proposed_ones_were_fitted_to_nothing(self, client: Client) -> None:
        policy.write(None, "", Thresholds(0.985, 0.88, 0.78, 0.5), Mode.PROPOSED, seen=0, fit=fitted())
        save(client, low=0.89, seen=1, confirmed="yes")
        save(client, low=0.88, seen=2, confirmed="yes")  # by then the proposal does not wait any more
        assert list(Policy.objects.filter(version__gt=1).values_list("fit", "note")) == [(None, "")] * 2


def fitted() -> dict[str, Any]:
    """A fit to 400 pairs, of which the less alike are wrong."""
    pairs = [
        Pair(f"{number}", "low" if number % 2 else "high", 0.8 + number / 2_000, number > 60)
        for number in range(400)
    ]
    found = fitting.fit(pairs, {"high": 0.985, "low": 0.9, "likely": 0.97})
    return found.to_json() | {"data": {"source": "cases x.jsonl", "lookups": 410, "right": 340, "wrong": 70}}


def test_the_last_fit_is_shown_with_its_data_bounds_and_curves(client: Client) -> None:
    fit = fitted() | {"data": fitted()["data"] | {"by_class": {"fact": 300, "business": 110}}}
    policy.write(None, "", BUILT_IN, Mode.LIVE, seen=0, fit=fit)
    policy.write(None, "", Thresholds(0.99, 0.95, 0.78, 0.5), Mode.LIVE, seen=1)
    text = " ".join(show(client).split())
    assert "The last fit: version 1" in text and "95.0% sure that at most 2.0%" in text
    for told in ("by 400 pairs", "cases x.jsonl", "<dd>410</dd>", "<dd>340</dd>", fit["digest"]):
        assert told in text, told
    assert f"{fit['low']['bound'] * 100:.1f}%" in text and f"{fit['high']['bound'] * 100:.1f}%" in text
    curves = re.findall(r'<polyline points="([^"]+)"', text)
    assert [len(one.split()) for one in curves] == [len(fit[name]["curve"]) for name in ("high", "low")]
    for one in curves:
        across = [float(point.split(",")[0]) for point in one.split()]
        assert across == sorted(across) and across[0] >= 0 and across[-1] <= 240
        assert all(0 <= float(point.split(",")[1]) <= 80 for point in one.split())
    threshold, n, wrong, _bound = fit["low"]["curve"][-1]
    assert f'{threshold:.3f}</td> <td class="number">{n}</td> <td class="number">{wrong}</td>' in text
    assert "The last fit" not in show(client, **{"class": "fact"})


def test_the_trial_s_report_is_shown(client: Client, scope: Scope) -> None:
    row = policy.write(None, "", Thresholds(0.985, 0.8, 0.78, 0.5), Mode.SHADOW, seen=0)
    born = entry_of(scope)
    hit = {"outcome": "gray", "entry": str(born.entry_id)}
    looked_up(born, Outcome.NEAR, AGREE, shadow=row, shadowed=hit)
    looked_up(born, Outcome.NEAR, DISAGREE, shadow=row, shadowed=hit)
    text = show(client)
    assert "Tried on 2 lookups of the 1,000" in text and "served only by the one on trial" in text
    assert "50.0%" in text and "near → gray hit" in text
    flat = " ".join(re.sub(r"<[^>]+>", " ", text).split())
    assert "Of all lookups, served as it is 0.0% 0.0%–84.2%" in flat
    assert "Of all lookups, served by the one on trial 100.0% 15.8%–100.0%" in flat


def test_a_trial_that_was_long_enough_says_so(client: Client, scope: Scope, settings: Any) -> None:
    settings.SHADOW_LOOKUPS = 1
    row = policy.write(None, "", Thresholds(0.985, 0.8, 0.78, 0.5), Mode.SHADOW, seen=0)
    looked_up(entry_of(scope), Outcome.MISS, shadow=row, shadowed={"outcome": "miss"})
    assert "which is enough to go by" in show(client)


def test_the_last_fit_is_drawn_where_nothing_newer_is_known(client: Client) -> None:
    scores = {"first": 0.7, "width": 0.005, "right": [0] * 59 + [40], "wrong": [7] + [0] * 59}
    fit = {"pairs": 47, **{name: {"bound": 0.1} for name in ("high", "low", "likely")}}
    fit |= {"data": {"source": "cases x.jsonl", "scores": scores}}
    policy.write(None, "", BUILT_IN, Mode.LIVE, seen=0, fit=fit)
    text = show(client)
    assert "40 that ask the same (upwards) and 7 that do not" in text and "cases x.jsonl" in text
