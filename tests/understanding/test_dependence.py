"""Which messages lean on their history, by what they lean with."""

import pytest

from .conversations import read

BREAD = ("How do I bake rye bread?", "Mix rye flour, water and salt, let it rise overnight, bake at 230 °C.")
PHONES = ("手机电池怎么保养", "别充到满格，也别用到没电，保持在两成到八成之间。")
KETTLES = ("Which kettle is quiet?", "1. The Fellow Stagg. 2. The Bosch Styline. 3. The Smeg KLF.")


@pytest.mark.parametrize(
    ("history", "message"),
    [
        # pronouns
        (BREAD, "Can I freeze it?"),
        (("Who wrote Emma?", "Jane Austen."), "Where was she born?"),
        (("Are llamas friendly?", "Mostly, if they grew up with people."), "What do they eat?"),
        (PHONES, "它一般能用几年"),
        (("谁发明了电话", "贝尔。"), "他是哪国人"),
        # demonstratives
        (BREAD, "Why is that necessary?"),
        (KETTLES, "Does this kettle keep water warm?"),
        (PHONES, "这个办法对旧手机也有效吗"),
        (("推荐一款记账软件", "可以试试随手记。"), "这软件要钱吗"),
        # ellipsis
        (BREAD, "Why?"),
        (BREAD, "and for how long?"),
        (PHONES, "为什么"),
        (("去云南几月好", "三四月。"), "要带厚衣服吗"),
        # a bare noun
        (("How much sugar is in an orange?", "About 12 grams."), "a banana"),
        (("苹果放冰箱能放多久", "一个月左右。"), "香蕉"),
        # the same about something else
        (BREAD, "What about wheat bread?"),
        (("What's the capital of Peru?", "Lima."), "And Chile?"),
        (("从北京到西安坐高铁几小时", "四个多小时。"), "那到成都呢"),
        (KETTLES, "那第二个呢"),
        # comparison
        (("Tell me about Rust and Go.", "Go has a garbage collector."), "Which is easier to learn?"),
        (("猫和狗哪个好养", "猫省事一些。"), "哪个更便宜"),
        # ordinals, the former, the latter
        (KETTLES, "How much does the second one cost?"),
        (("Tea or coffee in the morning?", "Both are fine."), "Does the latter stain teeth?"),
        (("列三种川菜", "1. 鱼香肉丝 2. 麻婆豆腐 3. 水煮鱼"), "第三个怎么做"),
    ],
)  # fmt: skip
def test_leaning(history: tuple[str, str], message: str) -> None:
    found = read(*history, message).dependence
    assert found.dependent
    assert 0.5 <= found.confidence <= 1
    assert found.reasons
    assert found.on in found.leans_on


@pytest.mark.parametrize(
    "message",
    [
        "What is it called when a word sounds like what it means?",
        "How long does it take to learn Portuguese?",
        "Is it rude to eat with your hands in India?",
        "What does it mean when a cat blinks slowly?",
        "My washing machine leaks, can I repair it myself?",
        "If a friend lends you money, when should you pay them back?",
        "What is the boiling point of ethanol?",
        "Who painted the Sistine Chapel?",
        "有人跟我说“辛苦了”，这是什么意思",
        "“内卷”这个词是什么意思",
        "李清照是哪个朝代的人",
        "那不勒斯在意大利的什么地方",
        "我的洗衣机漏水，可以自己修它吗",
        "水的沸点是多少度",
    ],
)
@pytest.mark.parametrize("history", [BREAD, PHONES])
def test_standing_alone(history: tuple[str, str], message: str) -> None:
    context = read(*history, message)
    assert not context.dependence.dependent
    assert context.resolved == message
    assert (context.dependence.on, context.dependence.leans_on) == (None, ())


def test_nothing_was_said_that_could_be_leaned_on() -> None:
    assert not read("And why is that?").dependence.dependent
    assert not read("", "", "那第二个呢").dependence.dependent


def test_greetings_and_thanks_are_not_leaned_on() -> None:
    context = read("hi", "Hello!", *BREAD, "Thanks!", "You're welcome.", "Can I freeze it?")
    assert context.dependence.leans_on == (2, 3)


def test_an_earlier_topic_is_not_leaned_on() -> None:
    context = read("What's the capital of Peru?", "Lima.", *BREAD, "Can I freeze it?")
    assert context.dependence.leans_on == (2, 3)


def test_what_is_leaned_on_leans_on_what_came_before() -> None:
    context = read(*BREAD, "Can I freeze it?", "Yes, sliced.", "For how long?")
    assert context.dependence.leans_on == (0, 1, 2, 3)
