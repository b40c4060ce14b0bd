"""manage.py evaluate_cache on cases small enough to know what must come out."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from inference.models import Entry, Scope

pytestmark = pytest.mark.django_db(transaction=True)


def case(name: str, kind: str, expect: str, seed: str, probe: str) -> dict[str, Any]:
    stored = [{"role": "user", "content": seed}, {"role": "assistant", "content": "Take the tram, line 4."}]
    asked = [{"role": "user", "content": probe}]
    return {"id": name, "lang": "en", "class": kind, "expect": expect, "seed": stored, "probe": asked}


def evaluate(path: Path, *options: str) -> dict[str, Any]:
    shown = StringIO()
    call_command("evaluate_cache", "--cases", str(path), "--json", *options, stdout=shown, stderr=StringIO())
    return dict(json.loads(shown.getvalue()))


def test_counts_what_the_cache_would_do_and_leaves_nothing_behind(tmp_path: Path) -> None:
    cases = [
        case("1", "paraphrase", "hit", "How do I get to the lake?", "how do I get to the lake"),
        case(
            "2", "intent_flip", "reject", "How do I switch the boiler on?", "How do I switch the boiler off?"
        ),
    ]
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(json.dumps(one) for one in cases))
    found = evaluate(path)
    assert (found["overall"]["n"], found["overall"]["right_hits"], found["overall"]["wrong_hits"]) == (
        2,
        1,
        0,
    )
    assert found["by_class"]["en/paraphrase"]["recall"] == 1
    assert found["by_class"]["en/intent_flip"]["right_rejects"] == 1
    assert set(found["latency_ms"]) == {"p50", "p99"}
    assert not Scope.objects.exists() and not Entry.objects.exists()


def test_third_wordings_are_asked_before_anything_is_learned_and_again_after(tmp_path: Path) -> None:
    hit = case("1", "paraphrase", "hit", "How do I get to the lake?", "which way to the lake")
    reject = case("2", "intent_flip", "reject", "How do I switch it on?", "How do I switch it off?")
    fresh = {"fresh": "Take the tram, line 4.", "third": [{"role": "user", "content": "way to the lake?"}]}
    seen = {"fresh": "Press the red button.", "third": [{"role": "user", "content": "how to switch it off"}]}
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(json.dumps(one) for one in (hit | fresh, reject | seen)))
    found = evaluate(path, "--warm")
    assert found["reworded"]["overall"]["n"] == 2 and found["reworded"]["overall"]["wrong_hits"] == 0
    assert found["warm"]["overall"]["n"] == 3 and found["warm"]["overall"]["wrong_hits"] == 0
    assert found["warm"]["overall"]["right_hits"] >= found["overall"]["right_hits"]
    assert "reworded" not in evaluate(path)


def test_a_file_of_something_else_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text("not JSON\n")
    with pytest.raises(CommandError, match="1"):
        evaluate(path)


def test_ablation_says_which_part_keeps_which_wrong_answer_back(tmp_path: Path) -> None:
    flip = case("1", "flip", "reject", "How do I switch the boiler on?", "How do I switch the boiler off?")
    follows = case("2", "context", "reject", "What does it cost?", "What does it cost?")
    follows["seed"] = [
        {"role": "user", "content": "Tell me about the ferry to Skye."},
        {"role": "assistant", "content": "It sails from Mallaig four times a day."},
        *follows["seed"],
    ]
    follows["probe"] = [
        {"role": "user", "content": "Is there a course in Portuguese for beginners?"},
        {"role": "assistant", "content": "Yes, on Tuesday evenings in the library."},
        *follows["probe"],
    ]
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(json.dumps(one) for one in (flip, follows)))
    found = evaluate(path, "--ablate")
    assert list(found) == ["cosine", "context", "fingerprint", "verifier", "live"]
    wrong = {
        step: [block["by_class"][kind]["wrong_hits"] for kind in ("en/flip", "en/context")]
        for step, block in found.items()
    }
    assert wrong["cosine"] == [1, 1] and wrong["context"] == [1, 0]
    assert wrong["fingerprint"] == wrong["verifier"] == wrong["live"] == [0, 0]
    assert not Scope.objects.exists()
