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


def evaluate(path: Path) -> dict[str, Any]:
    shown = StringIO()
    call_command("evaluate_cache", "--cases", str(path), "--json", stdout=shown, stderr=StringIO())
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


def test_a_file_of_something_else_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text("not JSON\n")
    with pytest.raises(CommandError, match="1"):
        evaluate(path)
