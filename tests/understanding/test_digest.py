"""A summary without a model keeps what later questions are about."""

from hypothesis import given
from hypothesis import strategies as st

from inference.understanding.digest import ANSWER_CHARS, NAME_CHARS, NAMED, QUESTION_CHARS, extract, figures
from inference.understanding.turns import Turn


def exchange(ask: str, answer: str) -> list[Turn]:
    return [{"role": "user", "content": ask}, {"role": "assistant", "content": answer}]


def test_first_sentences_and_the_names_and_figures_of_the_rest() -> None:
    text = extract(
        exchange(
            "Who built the tower? I read it was for a fair.",
            "It was built by an engineer. His name was Gustave Eiffel, and it is 330 m high. It opened in "
            "1889.",
        )
    )
    assert text.startswith("Q: Who built the tower? A: It was built by an engineer.")
    for kept in ("Gustave Eiffel", "330 m", "1889"):
        assert kept in text
    assert "It opened" not in text


def test_chinese_sentences_end_without_a_space() -> None:
    text = extract(exchange("珠峰有多高？我想知道。", "大约8849米。它在《喜马拉雅山脉》。"))
    assert text.startswith("Q: 珠峰有多高？ A: 大约8849米。")
    assert "《喜马拉雅山脉》" in text and "我想知道" not in text


def test_one_line_for_each_exchange() -> None:
    assert len(extract([*exchange("One?\nmore", "Yes."), *exchange("Two?", "No.\n\nWhy.")]).splitlines()) == 2


@given(st.text(max_size=2000), st.text(max_size=2000))
def test_it_is_short_whatever_was_said(ask: str, answer: str) -> None:
    text = extract(exchange(ask, answer))
    assert text.startswith("Q: ")
    assert len(text) <= QUESTION_CHARS + ANSWER_CHARS + NAMED * (NAME_CHARS + 2) + 12


def test_figures_are_compared_as_written() -> None:
    assert figures("3 km, 1,200.5 and v2.1") == {"3", "1,200.5", "2.1"}
