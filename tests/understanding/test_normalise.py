"""One spelling for what reads alike; digits, operators, code and negation come out as they went in."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from inference.understanding.normalise import normalise

SAME = [
    ("What is Python?", "what  is python"),
    ("What is Python?", "ＷＨＡＴ ｉｓ Ｐｙｔｈｏｎ？"),
    ("What is Python?", "\u200bWhat is\u00a0Python??  "),
    ("你好，世界！", "你好 , 世界"),
    ("用 3 个怎么办？", "用3个怎么办"),
    ("它说“好”", '它说"好"'),
    ("Stop that!", "stop that"),
    ("cafe\u0301", "CAFÉ"),
]
DIFFERENT = [
    ("turn it on", "turn it off"),
    ("is it safe", "is it not safe"),
    ("开启 A", "别开启 A"),
    ("2 apples", "3 apples"),
    ("what is 10²", "what is 102"),
    ("½ cup", "12 cup"),
    ("5! + 1", "5 + 1"),
    ("what is 5!", "what is 5"),
    ("what is n!", "what is n"),
    ("a != b", "a = b"),
    ("a < b", "a > b"),
    ("-5", "5"),
    ("`Foo` is what", "`foo` is what"),
    ("explain getName", "explain getname"),
    ("run it with -V", "run it with -v"),
    ("regex .*?", "regex .*"),
    ("what does a?.b do", "what does a.b do"),
    ("C++", "C"),
    ("1。5", "15"),
    ("version 1.5", "version 15"),
    ("3 4", "34"),
    ("是 -5 吗", "是 5 吗"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_folds_what_carries_no_meaning(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_keeps_what_carries_meaning(one: str, other: str) -> None:
    assert normalise(one) != normalise(other)


@given(st.text())
@example("ŉ")
@example("a!?!?")
@example("`x")
def test_is_idempotent(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once


@given(st.text(alphabet="aZ1９+-*/=<>!?.。！ `x²½不别not\n"))
def test_digits_and_operators_survive(text: str) -> None:
    def kept(of: str) -> list[str]:
        return [c for c in of if c.isdigit() or c in "+-*/=<>²½"]

    # Wide digits become plain ones in prose and stay in code.
    assert kept(normalise(text).replace("９", "9")) == kept(text.replace("９", "9"))


@given(st.text(alphabet="ab 不没别無not n't"))
def test_negation_survives(text: str) -> None:
    folded = normalise(text)
    assert [c for c in folded if c in "不没别無"] == [c for c in text if c in "不没别無"]
    assert "".join(folded.split()) == "".join(text.split())


@given(st.text(alphabet=st.characters(exclude_characters="`"), min_size=1))
def test_inline_code_is_verbatim(code: str) -> None:
    code = code.replace("\n", " ")
    assert f"`{code}`" in normalise(f"Explain `{code}` please")


@pytest.mark.parametrize("text", ["", "   ", "?", "！", "\u200b", "👨‍👩‍👧", "مرحبا", "a" * 8000, "吗" * 8000])
def test_odd_texts(text: str) -> None:
    assert isinstance(normalise(text), str)


def test_emoji_families_are_not_taken_apart() -> None:
    assert normalise("👨‍👩‍👧") == "👨‍👩‍👧"
