"""The key of the exact layer: the same words after another history are another question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.understanding.context import exact_key, read_context
from inference.understanding.turns import Turn

SCOPE = "scope-a"


def turns(*texts: str) -> list[Turn]:
    """User and assistant in turn, a user first."""
    return [{"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(texts)]


def key(*texts: str, scope: str = SCOPE) -> str:
    return exact_key(scope, read_context(turns(*texts)))


def test_spelling_does_not_matter() -> None:
    assert key("What is rain?") == key("what is  RAIN")


def test_history_matters() -> None:
    assert key("And why?") != key("What is rain?", "Water.", "And why?")
    assert key("What is rain?", "Water.", "And why?") != key("What is snow?", "Water.", "And why?")


def test_the_answers_given_so_far_matter() -> None:
    assert key("Pick one", "Red.", "Why that?") != key("Pick one", "Blue.", "Why that?")


def test_a_turn_outside_the_window_matters() -> None:
    long = ["q", "a"] * 9
    assert key("nuts are fine", "ok", *long, "Recipe?") != key("no nuts, please", "ok", *long, "Recipe?")


def test_scope_matters() -> None:
    assert key("What is rain?") != key("What is rain?", scope="scope-b")


def test_texts_cannot_flow_into_each_other() -> None:
    assert key("a", "b c", "d") != key("a b", "c", "d")


def test_a_shared_beginning_of_any_length_does_not_collide() -> None:
    start = "word " * 512
    assert key(start + "enable it") != key(start + "disable it")


@given(st.lists(st.text(), min_size=1, max_size=9), st.integers(1, 10))
def test_reading_takes_nothing_away(texts: list[str], window: int) -> None:
    said = turns(*texts)
    if said[-1]["role"] != "user":
        with pytest.raises(ValueError, match="question"):
            read_context(said, window)
        return
    context = read_context(said, window)
    assert context.question == texts[-1]
    assert context.topic == texts[0]
    assert len(context.window) == min(len(texts) - 1, 2 * window)
    assert bool(context.older) == (len(texts) - 1 > 2 * window)


def test_nothing_to_read() -> None:
    with pytest.raises(ValueError, match="question"):
        read_context([])
