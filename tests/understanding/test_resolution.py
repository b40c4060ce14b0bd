"""What a dependent question means, written out."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.understanding.context import read_context
from inference.understanding.turns import Turns

from .conversations import read, turns


@pytest.mark.parametrize(
    ("said", "resolved"),
    [
        (("Ada Lovelace: Early life", "", "When was she born?"), "When was Ada Lovelace born?"),
        (("Ada Lovelace: Early life", "", "Who taught her?"), "Who taught Ada Lovelace?"),
        (("Ada Lovelace: Work", "", "What was her first idea?"), "What was Ada Lovelace's first idea?"),
        (("What is photosynthesis?", "", "Why is it important?"), "Why is photosynthesis important?"),
        (("What's the capital of Peru?", "Lima.", "And of Chile?"), "What's the capital of Chile?"),
        (("Is the library open on Sundays?", "No.", "on Mondays?"), "Is the library open on Mondays?"),
        (("怀孕能吃螃蟹吗", "少量可以。", "芒果呢"), "怀孕能吃芒果吗"),
        (("“去”在文言文里是什么意思", "离开。", "“走”呢"), "“走”在文言文里是什么意思"),
        (("小米手机和荣耀手机怎么选", "看预算。", "哪个更轻"), "小米手机和荣耀手机哪个更轻"),
        (("Tell me about Rust and Go.", "", "Which is easier?"), "Which is easier, Rust and Go?"),
    ],
)  # fmt: skip
def test_written_out(said: tuple[str, ...], resolved: str) -> None:
    assert read(*said).resolved == resolved


@pytest.mark.parametrize(
    ("said", "named"),
    [
        (("Which kettle is quiet?", "1. Stagg. 2. Styline.", "How much is the second one?"), "Styline"),
        (("列三种川菜", "1. 鱼香肉丝 2. 麻婆豆腐 3. 水煮鱼", "第二个怎么做"), "麻婆豆腐"),
        (("推荐一款修图软件", "可以用Snapseed。", "它要钱吗"), "Snapseed"),
        (("Tell me about lavender.", "", "Thanks!", "", "Where does it grow?"), "lavender"),
    ],
)  # fmt: skip
def test_what_is_meant_is_named(said: tuple[str, ...], named: str) -> None:
    assert named in read(*said).resolved


@pytest.mark.parametrize(
    ("said", "right", "wrong"),
    [
        (
            ("How warm is Oslo in May?", "16 °C.", "No, I meant Bergen.", "14 °C.", "Does it rain there?"),
            "Bergen",
            "Oslo",
        ),
        (("我想去大理玩", "好呀。", "不对，我是说丽江", "丽江也很美。", "那里几月去好"), "丽江", "大理"),
    ],
)  # fmt: skip
def test_a_correction_outweighs_what_it_corrects(said: tuple[str, ...], right: str, wrong: str) -> None:
    resolved = read(*said).resolved
    assert right in resolved and wrong not in resolved


def test_an_engine_may_write_it_out() -> None:
    said = turns("What is photosynthesis?", "", "Why is it important?")
    asked: list[tuple[str, Turns]] = []

    def engine(text: str, history: Turns) -> str | None:
        asked.append((text, history))
        return "Why does photosynthesis matter?"

    assert read_context(said, resolver=engine).resolved == "Why does photosynthesis matter?"
    assert asked == [("Why is it important?", tuple(said[:2]))]
    assert (
        read_context(said, resolver=lambda text, history: None).resolved == "Why is photosynthesis important?"
    )
    assert read_context(turns("What is rain?"), resolver=engine).resolved == "What is rain?"


_WORDS = st.sampled_from(
    "it that the second one which what about Berlin 那个 第二个 呢 这软件 哪个 他 “ ” 《 》 ? ？ 🙂 "
    "`x=1` https://a.b ，".split()
)
_TEXTS = st.one_of(
    st.text(max_size=60),
    st.lists(_WORDS, max_size=12).map(" ".join),
    st.lists(_WORDS, max_size=12).map("".join),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_TEXTS, min_size=1, max_size=11).filter(lambda texts: len(texts) % 2 == 1))
def test_any_conversation_can_be_read(texts: list[str]) -> None:
    context = read(*texts)
    found = context.dependence
    assert context == read(*texts)
    assert 0.5 <= found.confidence <= 1
    assert all(0 <= at < len(context.window) for at in found.leans_on)
    if not found.dependent:
        assert context.resolved == context.question and found.on is None
    # Written out, a question is read alone, and then it leans on nothing.
    assert read(context.resolved).resolved == context.resolved


@pytest.mark.parametrize(
    "text", ["", "?", "🙂🙂", "\u200b\u200b", "ﷺ مرحبا", "a" * 8000, "那" * 8000, "it " * 3000]
)
def test_odd_messages_are_read(text: str) -> None:
    assert read(text).resolved == text
    assert read("What is rain?", "Water.", text).question == text
