"""What benchmarks.mixed_traffic draws, who answers it, and how what is saved is counted."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from benchmarks.mixed_books import Books, Row, saved, summary
from benchmarks.mixed_questions import Kind, Question, draw, intents
from benchmarks.written_model import Answers

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_fifth_follows_and_what_comes_once_comes_once() -> None:
    asked = [question for talk in draw(600, seed=4) for question in talk]
    kinds = Counter(question.kind for question in asked)
    assert kinds == {"intent": 390, "follow-up": 120, "one-off": 90}
    once = [question.label for question in asked if question.kind == "one-off"]
    assert len(set(once)) == len(once)
    assert {question.lang for question in asked} == {"en", "zh"}


def test_a_follow_up_comes_right_after_its_intent() -> None:
    for talk in draw(300, seed=2):
        assert talk[0].kind != "follow-up"
        for before, after in pairwise(talk):
            if after.kind == "follow-up":
                assert after.label == f"{before.label}/follow-up"


def test_the_seed_decides() -> None:
    assert draw(100, seed=1) == draw(100, seed=1) != draw(100, seed=2)


@pytest.mark.parametrize(("country", "river"), [("Portugal", "Tagus"), ("Spain", "Manzanares")])
def test_the_written_model_tells_follow_ups_apart_by_their_history(country: str, river: str) -> None:
    history = [
        {"role": "system", "content": "Answer."},
        {"role": "user", "content": f"What is {country}'s capital?"},
        {"role": "assistant", "content": "It is there."},
        {"role": "user", "content": "Which river flows through it?"},
    ]
    assert river in Answers().to(history)


def test_the_written_model_has_another_answer_for_other_words() -> None:
    answers = Answers()
    for intent in intents():
        given = {answers.to([{"role": "user", "content": wording}]) for wording in intent.wordings}
        assert given == set(intent.answers)
        assert len(given) == 2


def row(label: str, at: int, entry: str, *, served: bool, repeated: bool, kind: Kind = "intent") -> Row:
    books: dict[str, Any] = {
        "served_by": "exact" if served else "model",
        "entry": entry,
        "tokens": 100,
        "total_ms": 2000.0,
        "outcome": "hit" if served else "miss",
        "near": [],
        "verdict": None,
        "reason": "",
        "exact_key": label,
        "finish_reason": "stop",
        "created_at": START + timedelta(minutes=at),
        "finished_at": START + timedelta(minutes=at, seconds=9),
    }
    return Row(Question(label, "en", kind, "?"), 5.0, books, repeated)


def test_all_that_is_repeated_is_what_a_perfect_cache_saves() -> None:
    rows = [
        row("a", 0, "A", served=False, repeated=False),
        row("a", 1, "A", served=True, repeated=True),
        row("b", 2, "B", served=False, repeated=False),
        row("b", 3, "B", served=True, repeated=True),
    ]
    found = saved(Books(rows, {"A": "a", "B": "b"}), parts=2)
    assert (found["tokens"], found["seconds"], found["curve_tokens"]) == (1.0, 1.0, [1.0, 1.0])


def test_a_wrong_answer_saves_nothing_and_is_told() -> None:
    rows = [
        row("a", 0, "A", served=False, repeated=False),
        row("b", 1, "B", served=False, repeated=False),
        row("b", 2, "A", served=True, repeated=True),
        row("b", 3, "B", served=True, repeated=True),
    ]
    books = Books(rows, {"A": "a", "B": "b"})
    assert books.wrong == [rows[2]]
    assert saved(books, parts=1)["tokens"] == 0.5


def test_why_a_repeated_question_was_computed_again() -> None:
    rows = [
        row("a", 0, "A", served=False, repeated=False),
        row("a", 1, "A", served=False, repeated=True),
        row("b", 2, "", served=False, repeated=False),
        row("b", 3, "", served=False, repeated=True),
    ]
    because = summary(Books(rows, {"A": "a"}))["computed_again_because"]
    assert because == {"not found": 1, "no answer to it could be stored": 1}
