"""manage.py calibrate: what it is fitted to, what it writes, and what it asks before."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from cacheadmin.models import AuditRecord
from inference.cache import policy
from inference.cache.policy import BUILT_IN, Thresholds
from inference.models import Mode, Outcome, Policy, Scope, Verdict
from tests.calibration.rows import entry_of, looked_up, values
from tests.evaluation.test_evaluate_cache import case

pytestmark = pytest.mark.django_db

LOOSE = ("--target", "0.3", "--confidence", "0.9")


def run(*arguments: str) -> str:
    shown = StringIO()
    call_command("calibrate", *arguments, stdout=shown, stderr=StringIO())
    return shown.getvalue()


def found(*arguments: str) -> dict[str, Any]:
    return dict(json.loads(run("--json", *arguments)))


@pytest.fixture
def observed(scope: Scope) -> Scope:
    """Forty right answers, half of them below the lower threshold."""
    born = entry_of(scope)
    for at in range(40):
        looked_up(
            born,
            Outcome.GRAY if at % 2 else Outcome.NEAR,
            Verdict.AGREE,
            score=0.95 if at % 2 else 0.85,
        )
    return scope


def test_a_dry_run_shows_and_changes_nothing(observed: Scope) -> None:
    text = run("--dry-run", *LOOSE)
    assert "40 lookups whose truth is known: 40 right, 0 wrong." in text and "0.850 holds 30.0%" in text
    assert not Policy.objects.exists() and not AuditRecord.objects.exists()


def test_without_a_word_what_serves_more_is_proposed(observed: Scope) -> None:
    fits = found(*LOOSE)["fits"]
    assert {one["did"] for one in fits} == {"proposed"} and fits[0]["after"]["low"] == 0.85
    assert policy.standing(None, "").live == BUILT_IN
    proposed = policy.standing(None, "").proposed
    assert values(proposed.fit)["data"]["source"] == "observations" and values(proposed.fit)["pairs"] == 40
    assert values(proposed.fit)["digest"] and values(proposed.fit)["low"]["curve"]
    run("--accept", str(proposed.pk))
    assert policy.standing(None, "").live.low == 0.85
    with pytest.raises(CommandError, match="neither waits nor is tried"):
        run("--accept", str(proposed.pk))


def test_with_yes_it_is_in_force(observed: Scope) -> None:
    run("--yes", *LOOSE, "--class", "fact")
    assert policy.rules(observed).of("fact").low == 0.85 and policy.rules(observed).of("advice") == BUILT_IN
    assert AuditRecord.objects.get().action == "tune"


def test_or_on_trial(observed: Scope) -> None:
    run("--shadow", *LOOSE, "--scope", observed.hash[:20])
    assert (
        policy.shadow_rules(observed).of("fact").low == 0.85 and policy.rules(observed).of("fact") == BUILT_IN
    )
    assert "tried on 0 lookups" in run("--shadow-report")
    assert json.loads(run("--shadow-report", "--json"))["shadow"][0]["lookups"] == 0


def test_little_data_say_nothing(observed: Scope) -> None:
    text = run()
    assert "too little is known" in text and "0.900 stays: too few for a bound" in text
    assert not Policy.objects.exists()


def test_from_cases(tmp_path: Path) -> None:
    cases = [
        case("1", "paraphrase", "hit", "How do I get to the lake?", "how could one get over to the lake"),
        case("2", "flip", "reject", "How do I switch the boiler on?", "How do I switch the boiler off?"),
        case("3", "same", "hit", "Where is the town hall?", "where is the town hall"),
    ]
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(json.dumps(one) for one in cases))
    report = found("--cases", str(path), "--dry-run")
    # The third is answered by the exact layer: no threshold decides on it.
    assert (report["lookups"], report["right"], report["wrong"]) == (2, 1, 1)
    assert report["fits"][0]["data"]["source"] == "cases cases.jsonl"
    assert not Scope.objects.filter(app="evaluation").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--target", "2"), "target"),
        (("--confidence", "0.2"), "confidence"),
        (("--scope", "nothing"), "No scope begins"),
        (("--accept", "0"), "no policy 0"),
        (("--cases", "/nowhere.jsonl"), "nowhere"),
    ],
)
def test_what_can_t_be_done_is_said(scope: Scope, arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        run(*arguments)


def test_somebody_else_s_trial_is_accepted_by_its_number(scope: Scope) -> None:
    row = policy.write(scope, "fact", Thresholds(0.97, 0.9, 0.78, 0.5), Mode.SHADOW, seen=0)
    assert "In force: high 0.970" in run("--accept", str(row.pk))
    assert policy.standing(scope, "fact").live.high == 0.97
