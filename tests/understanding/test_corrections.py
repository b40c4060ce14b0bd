"""What a conversation has taken back, and what of it later questions are compared by."""

import pytest

from inference.understanding.context import Context, careful, context_text, exact_key, read_context
from inference.understanding.corrections import corrections, subject_of, what_holds
from inference.understanding.signals import detect

from .conversations import turns

EN = ("How do we carry out plan A?", "In three steps: survey, pilot, roll-out.")
EN_BACK = ("No, plan A won't work for us, let's take plan B.", "Then two steps will do.")
ZH = ("A 方案怎么实施", "分三步：调研、试点、推广。")
ZH_BACK = ("不对，A 方案不适用，改走 B 方案", "那分两步就行。")
LATER = [
    (EN, EN_BACK, "Then carry out the plan."),
    (EN, EN_BACK, "OK, let's do it that way."),
    (EN, EN_BACK, "How many people does the plan need?"),
    (EN, EN_BACK, "What does it cost?"),
    (EN, EN_BACK, "And how long will that take?"),
    (EN, EN_BACK, "Back to the plan we chose: where do we begin?"),
    (ZH, ZH_BACK, "那就按方案实施吧"),
    (ZH, ZH_BACK, "就照这个方案办"),
    (ZH, ZH_BACK, "方案需要多少人"),
    (ZH, ZH_BACK, "它的预算是多少"),
    (ZH, ZH_BACK, "按刚才说的方案，第一步做什么"),
    (ZH, ZH_BACK, "那要多久"),
]
BETWEEN = ("What is the capital of Peru?", "Lima.", "And of Chile?", "Santiago.")
BETWEEN_ZH = ("秘鲁的首都是哪里", "利马。", "智利呢", "圣地亚哥。")


def read(*said: str) -> Context:
    """As lookups read it."""
    return careful(read_context(turns(*said)))


def key(*said: str) -> str:
    return exact_key("scope", read(*said))


@pytest.mark.parametrize(("before", "back", "later"), LATER, ids=[later for *_, later in LATER])
def test_what_follows_a_correction_is_another_question(
    before: tuple[str, ...], back: tuple[str, ...], later: str
) -> None:
    corrected, uncorrected = read(*before, *back, later), read(*before, later)
    assert corrected.dependence.dependent
    assert exact_key("scope", corrected) != exact_key("scope", uncorrected)
    assert corrected.corrections == (back[0],)
    lead = context_text(corrected).splitlines()[0]
    assert "B" in lead and before[0] not in context_text(corrected)
    assert not detect(turns(*before, *back), later).invalidates, "going on with what holds takes nothing back"


@pytest.mark.parametrize(("before", "back", "later"), LATER, ids=[later for *_, later in LATER])
@pytest.mark.parametrize("times", [1, 4])
def test_however_long_ago_it_was_said(
    before: tuple[str, ...], back: tuple[str, ...], later: str, times: int
) -> None:
    between = (BETWEEN if before is EN else BETWEEN_ZH) * times
    corrected, uncorrected = read(*before, *back, *between, later), read(*before, *between, later)
    assert corrected.dependence.dependent
    assert exact_key("scope", corrected) != exact_key("scope", uncorrected)
    assert "B" in context_text(corrected).splitlines()[0]


def test_a_question_about_something_else_is_the_same_after_it() -> None:
    question = "Is it true that Vikings reached America before Columbus did?"
    assert not read(*EN, *EN_BACK, question).dependence.dependent
    assert key(*EN, *EN_BACK, question) == key(question)


def test_the_same_correction_makes_the_same_question() -> None:
    assert key(*EN, *EN_BACK, "What does it cost?") == key(*EN, *EN_BACK, "what does it cost")
    other = ("No, plan A won't work for us, let's take plan C.", EN_BACK[1])
    assert key(*EN, *EN_BACK, "What does it cost?") != key(*EN, *other, "What does it cost?")


def test_a_correction_leans_on_what_it_corrects() -> None:
    for said in (
        (*EN, "my guests are vegan"),
        ("A cake recipe for eight", "200 g butter, 4 eggs.", "my oven broke this morning"),
        ("八个人吃的蛋糕怎么做", "黄油200克，鸡蛋4个。", "今早烤箱坏了"),
    ):
        assert read(*said).dependence.dependent or not detect(turns(*said[:-1]), said[-1]).invalidates


def test_what_the_person_said_was_misread_counts_for_nothing() -> None:
    said = turns(*EN, *EN_BACK, "Then carry out the plan.")
    assert corrections(said) == (2,)
    assert corrections(said, {2}) == ()
    undone = careful(read_context(said, misread={2}))
    assert undone.corrections == () and undone.replaced == frozenset()
    assert exact_key("scope", undone) != exact_key("scope", careful(read_context(said)))


@pytest.mark.parametrize(
    ("said", "holds"),
    [
        ((*ZH, ZH_BACK[0]), "改走 B 方案"),
        ((*EN, EN_BACK[0]), "let's take plan B"),
        (("Hotels in Oslo?", "Many.", "No, I meant Bergen."), "I meant Bergen"),
        (("How do I cook rice?", "Boil it.", "make it 3 cups, not 2"), "make it 3 cups"),
        (("Plan a trip to Rome", "Day one: the Forum.", "scrap that"), "scrap that"),
    ],
)
def test_what_a_correction_puts_in_the_place_of_what_it_takes_back(said: tuple[str, ...], holds: str) -> None:
    assert what_holds(turns(*said), len(said) - 1) == holds


def test_what_it_may_take_back_is_the_topic_and_no_small_talk() -> None:
    said = turns(
        *EN, "What does it cost?", "A lot.",
        "What is the boiling point of ethanol?", "78 °C.", "Thanks!", "You're welcome.",
    )  # fmt: skip
    assert subject_of(said[:4]) == (1, 3)
    assert subject_of(said) == (5,)


def test_traditional_characters() -> None:
    history = turns("幫我看看週一去南京的高鐵", "週一可以坐9:12那班。")
    for text in ("不對，我說的是南昌", "改成週二吧", "算了，不去了"):
        assert detect(history, text).invalidates, text
        span = detect(history, text).span
        assert span is None or 0 <= span[0] <= span[1] <= len(text)
    assert not detect(history, "還有晚一點的嗎？").invalidates
