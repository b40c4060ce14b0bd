"""How answers are compared, measured; the figures are in docs/benchmarks.md."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from inference.cache import logistic
from inference.cache.agreement import WEIGHTS
from inference.evaluation import agreement
from inference.evaluation.agreement import Pair

CASES = Path(__file__).parents[1] / "cases"


def measured(lang: str, label: str) -> list[Pair]:
    pairs = agreement.read(CASES / f"agreement_{lang}.jsonl")
    return [pair for pair in pairs if (pair.part, pair.label) == ("measure", label)]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_pair_that_nothing_was_fitted_to_is_called_the_same_wrongly(lang: str) -> None:
    wrong = [pair.id for pair in measured(lang, "disagree") if agreement.judge(pair).verdict == "agree"]
    assert wrong == []


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_some_of_those_that_say_the_same_are_seen_to(lang: str) -> None:
    pairs = [pair for pair in measured(lang, "agree") if pair.kind == "reworded"][:24]
    verdicts = [agreement.judge(pair).verdict for pair in pairs]
    assert verdicts.count("agree") >= 6 and verdicts.count("disagree") <= 2


def test_an_answer_to_everything_proves_no_pairing() -> None:
    """Nor does one that is right for either, but says nothing that only one of them has."""
    pairs = [pair for pair in measured("en", "disagree") if pair.kind == "generic"]
    assert len(pairs) >= 10
    for pair in pairs:
        assert agreement.judge(pair).verdict != "agree", pair.id
        same = Pair(**{**pair.__dict__, "stored_question": pair.question})
        if pair.stored == pair.fresh:
            assert agreement.judge(same).verdict == "agree", "to one question they are the same"


def test_the_command_prints_the_agreed_shape(tmp_path: Path) -> None:
    rows = (CASES / "agreement_en.jsonl").read_text("utf-8").splitlines()
    few = tmp_path / "few.jsonl"
    few.write_text("\n".join([*rows[:4], *rows[2:4]]), "utf-8")
    out = StringIO()
    call_command("evaluate_agreement", "--cases", str(few), "--json", stdout=out)
    found = json.loads(out.getvalue())
    assert set(found) == {"overall", "by_part", "by_kind", "wrong"}
    assert set(found["overall"]) == {
        "n", "unclear", "precision", "recall", "disagree_precision", "disagree_recall",
    }  # fmt: skip
    assert found["overall"]["n"] == 6 and set(found["by_part"]) == {"tune", "measure"}
    out = StringIO()
    call_command("evaluate_agreement", "--cases", str(few), stdout=out)
    assert "precision" in out.getvalue()


def test_a_file_that_is_none_is_refused_with_its_line(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"id": "x", "lang": "en", "label": "perhaps", "kind": "k"}\n', "utf-8")
    with pytest.raises(CommandError, match="line 1"):
        call_command("evaluate_agreement", "--cases", str(bad))


def test_weights_can_be_fitted_anew() -> None:
    pairs = agreement.read(CASES / "agreement_en.jsonl")[:24]
    weights = agreement.fit(pairs)["en"]
    live = logistic.read(WEIGHTS)["en"]
    assert set(weights) == set(live)
