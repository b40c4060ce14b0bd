"""Which language a text is in, and which one its answer may be in."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.understanding.language import asked_language, language, same_language


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("How are you?", "en"),
        ("你好吗", "zh"),
        ("怎么用 Docker Compose 部署", "zh"),
        ("What does 你好 mean in a letter?", "en"),
        ("`print(x)`", ""),
        ("42", ""),
        ("😀", ""),
        ("Как дела?", "other"),
        ("```\nfor x in y: pass\n```", ""),
    ],
)
def test_the_language_of_the_prose_counts(text: str, expected: str) -> None:
    assert language(text) == expected


@pytest.mark.parametrize(
    ("question", "answer", "fits"),
    [
        ("长城有多长", "The wall is long.", False),
        ("长城有多长", "很长。", True),
        ("长城有多长，用英文回答", "The wall is long.", True),
        ("长城有多长，用英文回答", "很长。", False),
        ("How long is the wall?", "很长。", False),
        ("How long is the wall? Answer in Chinese.", "很长。", True),
        ("“谢谢”英语怎么说", "Thank you", True),
        ("“谢谢”英语怎么说", "英语里说 thank you。", True),
        ("这句话怎么说更好", "Say it slowly.", False),
        ("用法语介绍长城", "La muraille est longue.", True),
        ("print 怎么用", "`print('x')`", True),
        ("2 + 2 等于几", "4", True),
        ("How do I learn Chinese?", "Read a lot.", True),
    ],
)
def test_an_answer_is_in_the_language_asked_for(question: str, answer: str, fits: bool) -> None:
    assert same_language(question, answer) == fits


@settings(deadline=None)
@given(st.text(max_size=200))
def test_a_text_may_answer_itself_in_its_own_language(text: str) -> None:
    assert same_language(text, text) or asked_language(text) != language(text)
