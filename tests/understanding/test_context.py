"""The key of the exact layer: the same words after another history are another question."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.understanding.context import context_text, exact_key, read_context
from inference.understanding.fingerprint import fingerprint
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


@settings(deadline=None)
@given(st.lists(st.text(), min_size=1, max_size=9), st.integers(1, 10))
def test_reading_takes_nothing_away(texts: list[str], window: int) -> None:
    said = turns(*texts)
    if said[-1]["role"] != "user":
        with pytest.raises(ValueError, match="question"):
            read_context(said, window)
        return
    context = read_context(said, window)
    assert context.question == texts[-1]
    assert context.topic in texts[::2]
    assert len(context.window) == min(len(texts) - 1, 2 * window)
    assert bool(context.older) == (len(texts) - 1 > 2 * window)


def test_nothing_to_read() -> None:
    with pytest.raises(ValueError, match="question"):
        read_context([])


def test_a_self_contained_question_is_the_same_after_any_history() -> None:
    alone = key("What is the boiling point of ethanol?")
    assert key("Name a colour.", "Red.", "What is the boiling point of ethanol?") == alone
    assert key("你好", "你好！", "What is the boiling point of ethanol?") == alone


def test_a_dependent_question_is_the_same_after_what_it_leans_on() -> None:
    leaning = key("Who wrote Emma?", "Jane Austen.", "When was she born?")
    assert (
        key("hello", "Hi!", "Who wrote Emma?", "Jane Austen.", "thanks!", "Sure.", "When was she born?")
        == leaning
    )
    assert key("What is rain?", "Water.", "Who wrote Emma?", "Jane Austen.", "When was she born?") == leaning
    assert key("Who wrote Ulysses?", "James Joyce.", "When was she born?") != leaning


def test_scripts_do_not_matter() -> None:
    assert key("這個軟體要錢嗎") == key("这个软体要钱吗")


def test_the_context_of_a_self_contained_question_is_empty() -> None:
    assert (
        context_text(
            read_context(turns("Who wrote Emma?", "Austen.", "What is the boiling point of ethanol?"))
        )
        == ""
    )


def test_the_context_is_what_was_leaned_on() -> None:
    said = turns("hello", "Hi!", "Who wrote Emma?", "Jane Austen.", "thanks", "Sure.", "When was she born?")
    assert context_text(read_context(said)) == "Who wrote Emma?"


def test_a_correction_takes_the_place_of_what_it_corrects() -> None:
    said = turns("Hotels in Oslo?", "Many.", "No, I meant Bergen.", "Fewer.", "Are they expensive?")
    text = context_text(read_context(said))
    assert "Bergen" in text and "Oslo" not in text


def test_the_topic_is_what_the_conversation_opened_with() -> None:
    assert (
        read_context(turns("hi there", "Hello!", "Who wrote Emma?", "Austen.", "When?")).topic
        == "Who wrote Emma?"
    )


def test_what_is_beyond_the_window_is_kept_apart() -> None:
    said = turns("one", "1", "two", "2", "three", "3", "and four?")
    context = read_context(said, exchanges=2)
    assert list(context.window) == said[2:6] == list(context.history)
    assert list(context.older) == said[:2]


# Runs of marks, of addresses, tags and prices: nothing that anybody asks, and everything that somebody sends.
_UNITS = (
    "!?",
    "*",
    "# ",
    "，",
    "😀",
    "@",
    "a@b.",
    "<b>",
    "$5 ",
    "1.",
    "it ",
    "the ",
    "\n",
    "请",
    "不",
    "tell me ",
    "(",
    "`a` ",
)


@pytest.mark.parametrize("unit", _UNITS)
def test_a_message_as_long_as_may_be_is_read_in_no_time(unit: str) -> None:
    """Some of these took seconds once, some minutes, in which a worker answers nobody."""
    said = turns("How tall is it?", "It is 38 metres tall.")
    text = ("what " + unit * 8_000)[:7_999] + "?"
    started = time.process_time()
    read_context([*said, {"role": "user", "content": text}])
    read_context(turns(text, text, "And how tall is it?"))
    fingerprint(text)
    assert time.process_time() - started < 5
