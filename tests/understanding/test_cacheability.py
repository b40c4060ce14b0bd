"""Who may be shown an answer again, and for how long."""

from datetime import timedelta

import pytest

from inference.understanding.cacheability import ContentClass, classify, is_personal
from inference.understanding.turns import Turn


def ask(*texts: str) -> list[Turn]:
    return [{"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(texts)]


SHAREABLE: list[tuple[ContentClass, str]] = [
    ("fact", "What is the capital of France?"),
    ("fact", "Why is the sky blue?"),
    ("fact", "Explain photosynthesis in two sentences."),
    ("fact", "光合作用是什么？"),
    ("fact", "How do I reset my password?"),
    ("fact", "Where do I find my serial number on the machine?"),
    ("fact", "How do I change my e-mail address?"),
    ("fact", "怎么修改我的登录密码"),
    ("fact", "我的手机怎么开飞行模式"),
    ("fact", "Why is my washing machine shaking?"),
    ("fact", "How do I write a condolence letter?"),
    ("fact", "求职信的格式"),
    ("fact", "怎样写一篇合格的检讨"),
    ("fact", "How do I mute my microphone now?"),
    ("fact", "英语现在完成时怎么造句"),
    ("fact", "身份证现在怎么换领"),
    ("fact", "What does 'live and let live' mean?"),
    ("fact", "I live with two cats, how do I keep them off the table?"),
    ("fact", "Which planet is closest to the Sun?"),
    ("fact", "What is the nearest star to the Earth?"),
    ("fact", "How old is our galaxy?"),
    ("fact", "我们的地球有多大年纪"),
    ("fact", "端午节是农历几月几号"),
    ("fact", "What is a limerick?"),
    ("fact", "怎么给小朋友讲故事"),
    ("code", "How do I sort a list in Python?"),
    ("code", "怎么在 Python 里给列表排序？"),
    ("code", "Write a function that reverses a string in Go"),
    ("business", "退货需要什么条件？"),
    ("business", "Do you ship to Norway?"),
    ("business", "Can I return my shoes after thirty days?"),
    ("business", "How much does express delivery cost?"),
    ("business", "会员年费多少钱"),
    ("advice", "Should I learn the guitar or the piano first?"),
    ("advice", "第一次去爬山有什么建议"),
    # However they are begun.
    ("fact", "Now tell me how tall the tower is"),
    ("fact", "I'd like to know what a limerick is"),
    ("fact", "告诉我家庭套餐的年费"),
    ("chitchat", "hello there!"),
    ("chitchat", "你好呀"),
]
PERSONAL = [
    "My name is Ann, what does it mean?",
    "Is alice@example.com a valid address?",
    "Call +44 20 7946 0958, what country is that?",
    "Is 138 0013 8000 a mobile number?",
    "Where is order 8812?",
    "What's in my order 8812?",
    "Where is order number #88121?",
    "When will my refund arrive?",
    "What is my favourite colour?",
    "Where are my keys?",
    "Did I already pay?",
    "我的猫叫什么",
    "告诉我家里的无线密码",
    "我家庭医生的电话是多少",
    "What is the balance of my account?",
    "Why is our landlord late with our contract?",
    "我们的合同在哪里",
    "I have a headache, what helps?",
    "i’m 43 and tired",
    "My wife left, what now?",
    "Does 4111 1111 1111 1111 look like a card number?",
    "Is GB29 NWBK 6016 1331 9268 19 a bank in London?",
    "Deliver to 12 Baker Street",
    "my password is hunter2, is it safe?",
    "我的订单到哪了？",
    "我的快递怎么还没到",
    "我叫小明",
    "我今年五十了还能学车吗",
    "我女儿发烧了吃什么药",
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
    "Is the museum open now?",
    "Who is the mayor of London at the moment?",
    "pharmacy near me",
    "Which petrol station is closest?",
    "What is the closest bakery to me?",
    "the nearest station to here",
    "今天几号",
    "几月几号了？",
    "今天星期几？",
    "现在美元汇率是多少",
    "这个月有什么节日",
    "这款手机多少钱？",
    "附近有什么好吃的",
    "目前谁排第一",
]
CREATIVE = [
    "Write a poem about autumn",
    "Tell me a joke",
    "Come up with five names for a bakery",
    "pick one at random",
    "Rewrite this sentence so that it sounds friendlier",
    "pretend to be a pirate",
    "写一首关于秋天的诗",
    "给我讲个笑话",
    "帮小店起个名字",
    "随便说点什么",
    "帮我拟一份请假条",
]


@pytest.mark.parametrize(("content_class", "text"), SHAREABLE)
def test_general_questions_are_shared(content_class: ContentClass, text: str) -> None:
    verdict = classify(ask(text))
    assert (verdict.content_class, verdict.stored, verdict.shareable) == (content_class, True, True), verdict
    assert verdict.ttl is not None and verdict.life is not None and verdict.ttl <= verdict.life


@pytest.mark.parametrize("text", PERSONAL)
def test_personal_questions_stay_in_their_session(text: str) -> None:
    verdict = classify(ask(text))
    assert not verdict.shareable and verdict.content_class in ("personal", "live")
    assert verdict.ttl is None or verdict.ttl <= timedelta(minutes=30)


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


def test_business_rules_are_kept_for_hours_and_knowledge_for_a_day() -> None:
    business, fact = classify(ask("退货需要什么条件？")), classify(ask("光合作用是什么？"))
    assert business.life is not None and timedelta(hours=1) <= business.life <= timedelta(hours=4)
    assert fact.ttl == timedelta(hours=24)


@pytest.mark.parametrize("said", PERSONAL)
def test_personal_history_makes_a_plain_question_personal(said: str) -> None:
    assert not classify(ask(said, "I see.", "What is the capital of France?")).shareable


def test_personal_data_in_an_answer_makes_what_follows_personal() -> None:
    assert not classify(
        ask("Who is it?", "It is bob@example.com.", "What is the capital of France?")
    ).shareable


def test_what_the_operator_tells_the_model_is_not_the_user_speaking() -> None:
    told: list[Turn] = [{"role": "system", "content": "Complaints go to help@example.com."}]
    assert classify([*told, *ask("What is the capital of France?")]).shareable


@pytest.mark.parametrize(
    "follow_up", ["And in Rome?", "What about tomorrow morning there?", "那上海呢", "为什么？"]
)
def test_a_follow_up_to_a_live_question_is_live(follow_up: str) -> None:
    assert not classify(ask("What is the weather in Paris?", "Sunny.", follow_up)).stored


def test_another_topic_after_a_live_question_is_not_live() -> None:
    turns = ask(
        "What is the weather in Paris?", "Sunny.", "How many legs does a grown spider have in general?"
    )
    assert classify(turns).shareable


def test_small_talk_after_something_is_not_shared() -> None:
    assert not classify(ask("How do tides work?", "The moon pulls.", "thanks!")).shareable


@pytest.mark.parametrize(
    "text",
    [
        "4111 1111 1111 1112 tiles in rows of 4",  # no card by its check digit
        "It seats 100000 people.",
        "I am an assistant, and my answer is 42.",
        "Version 3.11.2 came out in 2023-02-08.",
        "The ratio is 1.61803398875.",
    ],
)
def test_what_only_looks_like_data_is_not_personal(text: str) -> None:
    assert not is_personal(text)


@pytest.mark.parametrize(
    "text",
    [
        "Write to bob@example.com.",
        "Your card 4111-1111-1111-1111 was charged.",
        "身份证号11010519491231002X已登记",
        "Pay to DE89 3704 0044 0532 0130 00.",
        "Call (555) 123-4567.",
        "地址：上海市浦东新区张杨路500号",
    ],
)
def test_answers_with_data_are_personal(text: str) -> None:
    assert is_personal(text)
