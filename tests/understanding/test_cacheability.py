"""Who may be shown an answer again, and for how long."""

import pytest

from inference.understanding.cacheability import classify, is_personal
from inference.understanding.turns import Turn


def ask(*texts: str) -> list[Turn]:
    return [{"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(texts)]


SHAREABLE = [
    "What is the capital of France?",
    "Why is the sky blue?",
    "How do I sort a list in Python?",
    "Explain photosynthesis in two sentences.",
    "光合作用是什么？",
    "怎么在 Python 里给列表排序？",
    "退货需要什么条件？",
]
PERSONAL = [
    "My name is Ann, what does it mean?",
    "Is alice@example.com a valid address?",
    "Call +44 20 7946 0958, what country is that?",
    "Where is order 8812?",
    "Where is order number #88121?",
    "I have a headache, what helps?",
    "i’m 43 and tired",
    "Does 4111 1111 1111 1111 look like a card number?",
    "Deliver to 12 Baker Street",
    "我的订单到哪了？",
    "我叫小明",
    "订单 12345 到哪了？",
    "寄到朝阳区建国路88号",
    "身份证 110101199003074578 是哪里的",
]
LIVE = [
    "What is the weather in Paris?",
    "What time is it now?",
    "Latest news about rockets",
    "How much does a ticket cost?",
    "What happened this week?",
    "今天星期几？",
    "现在美元汇率是多少",
    "这个月有什么节日",
    "这款手机多少钱？",
]
CREATIVE = [
    "Write a poem about autumn",
    "Tell me a joke",
    "Come up with five names for a bakery",
    "pick one at random",
    "写一首关于秋天的诗",
    "给我讲个笑话",
    "帮小店起个名字",
    "随便说点什么",
]


@pytest.mark.parametrize("text", SHAREABLE)
def test_general_questions_are_shared(text: str) -> None:
    verdict = classify(ask(text))
    assert verdict.stored and verdict.shareable
    assert verdict.ttl is not None and verdict.life is not None and verdict.ttl <= verdict.life


@pytest.mark.parametrize("text", PERSONAL)
def test_personal_questions_stay_in_their_session(text: str) -> None:
    assert not classify(ask(text)).shareable


@pytest.mark.parametrize("text", LIVE)
def test_live_questions_are_not_kept(text: str) -> None:
    verdict = classify(ask(text))
    assert not verdict.stored and verdict.content_class == "live"


@pytest.mark.parametrize("text", CREATIVE)
def test_creative_questions_are_not_kept(text: str) -> None:
    verdict = classify(ask(text))
    assert not verdict.stored and verdict.content_class == "creative"


@pytest.mark.parametrize("text", ["", "?", "😀", "…"])
def test_a_question_without_words_is_not_kept(text: str) -> None:
    assert not classify(ask(text)).stored


@pytest.mark.parametrize("said", PERSONAL)
def test_personal_history_makes_a_plain_question_personal(said: str) -> None:
    assert not classify(ask(said, "I see.", "What is the capital of France?")).shareable


def test_a_follow_up_to_a_live_question_is_live() -> None:
    assert not classify(ask("What is the weather in Paris?", "Sunny.", "And in Rome?")).stored


def test_answers_are_searched_for_data_only() -> None:
    assert not is_personal("I am an assistant, and my answer is 42.")
    assert is_personal("Write to bob@example.com.")
