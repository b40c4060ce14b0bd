"""The entry's wording stands for another one only if that says nothing of its own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.understanding.canonical import adds_nothing

CAPITAL = "What is the capital of France?"


@pytest.mark.parametrize(
    ("question", "canonical"),
    [
        ("what is the  capital of FRANCE", CAPITAL),
        ("Can you tell me what the capital of France is?", CAPITAL),
        ("Please tell me the capital of France", CAPITAL),
        ("How can I bake bread?", "How do I bake bread?"),
        ("Can you tell me how long I should boil 3 eggs?", "How long should I boil 3 eggs?"),
        ("法国的首都是哪里？", "法国首都是哪里"),
        ("请问法国的首都是哪里呢", "法国的首都是哪里？"),
    ],
)
def test_another_way_of_saying_it(question: str, canonical: str) -> None:
    assert adds_nothing(question, canonical)


@pytest.mark.parametrize(
    ("question", "canonical"),
    [
        ("What is the capital of Germany?", CAPITAL),
        ("What is the capital of France for tourists?", CAPITAL),
        ("Which city is France's capital if Paris doesn't count?", CAPITAL),
        ("What is the capital of France in 1940?", CAPITAL),
        ("How long does it take to boil 4 eggs?", "How long should I boil 3 eggs?"),
        ("How long should I boil eggs at 2000 m?", "How long should I boil eggs?"),
        ("Can I bake bread without yeast?", "Can I bake bread?"),
        ("How do I not burn bread?", "How do I burn bread?"),
        ("How do I bake bread in Python 3.12?", "How do I bake bread?"),
        ("How do I turn the light off?", "How do I turn the light on?"),
        ("德国的首都是哪里？", "法国的首都是哪里？"),
        ("如果不算巴黎，法国的首都是哪里？", "法国的首都是哪里？"),
        ("怎么不开启蓝牙", "怎么开启蓝牙"),
        ("煮4个鸡蛋要多久", "煮3个鸡蛋要多久"),
        ("法国的首都是哪里？", CAPITAL),
    ],
)
def test_something_of_its_own(question: str, canonical: str) -> None:
    assert not adds_nothing(question, canonical)


@given(st.text(max_size=60))
def test_a_question_adds_nothing_to_itself(text: str) -> None:
    assert adds_nothing(text, text)


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_can_be_asked(one: str, other: str) -> None:
    assert adds_nothing(one, other) in (True, False)
