"""What is left out of a prompt goes in steps, and nothing that isn't summarised is lost."""

import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.engines.prompt import compose
from inference.engines.tokenizer import ChatTokenizer
from inference.engines.written import WrittenAnswers, prompt_tokens
from inference.understanding.digest import extract
from inference.understanding.turns import Turn
from inference.understanding.window import LEAST_PARTS, arrange, cuts, exchanges, last_part, left_out

words = st.text(alphabet="ab 中🎉\n.", max_size=40)
pairs = st.lists(st.tuples(words, words), max_size=40)
least = st.integers(3, 10)
step = st.integers(1, 8)


def said(conversation: list[tuple[str, str]]) -> list[Turn]:
    return [
        turn
        for ask, answer in conversation
        for turn in (Turn(role="user", content=ask), Turn(role="assistant", content=answer))
    ]


@given(pairs, least, step)
def test_what_is_not_shown_is_summarised(conversation: list[tuple[str, str]], least: int, step: int) -> None:
    past = said(conversation)
    window = arrange(past, least, step)
    shown = len(exchanges(window.shown))
    assert min(least, len(conversation)) <= shown < least + step
    summarised = [turn for part in window.parts for turn in part]
    kept = [*summarised, *window.shown]
    assert past[len(past) - len(kept) :] == kept
    assert all(len(exchanges(part)) == step for part in window.parts)
    assert len(window.parts) < 2 * LEAST_PARTS
    assert len(kept) == len(past) or len(window.parts) >= LEAST_PARTS


@given(pairs, least, step)
def test_each_part_was_the_last_one_in_its_time(
    conversation: list[tuple[str, str]], least: int, step: int
) -> None:
    """So that whoever prepares the last part prepares all that a prompt will ask for, and early enough."""
    parts = [last_part(said(conversation[:at]), step) for at in range(len(conversation) + 1)]
    whole = [part for part in parts if part]
    assert len(whole) == len(conversation) // step
    wanted = arrange(said(conversation), least, step).parts
    assert set(map(str, wanted)) <= set(map(str, whole[: max(0, len(conversation) - least) // step]))


@given(pairs, least, step)
def test_between_two_steps_a_prompt_begins_with_the_one_before(
    conversation: list[tuple[str, str]], least: int, step: int
) -> None:
    windows = [arrange(said(conversation[:at]), least, step) for at in range(len(conversation) + 1)]
    for at, (before, after) in enumerate(itertools.pairwise(windows), 1):
        if (at - least) % step or at <= least:
            assert after.parts == before.parts
            assert after.shown[:-2] == before.shown
        else:
            assert after.parts != before.parts


def test_a_turn_without_an_answer_is_an_exchange_too() -> None:
    turns = [*said([("a", "b")]), Turn(role="user", content="c"), *said([("d", "e")])]
    assert [len(group) for group in exchanges(turns)] == [2, 1, 2]


def test_the_newest_stays_when_a_whole_step_would_take_it() -> None:
    assert cuts(6, 4) == [0, 4, 5, 6]
    assert left_out([9, 9, 9, 9, 9, 9], 18, 4) == 4
    assert left_out([9, 9, 9], 10, 4) == 2
    assert left_out([9, 9, 9], 8, 4) == 3
    assert left_out([], 0, 4) == 0


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(0, 200), step)
def test_what_is_left_out_makes_room_and_no_more_than_a_step_too_much(
    sizes: list[int], room: int, step: int
) -> None:
    cut = left_out(sizes, room, step)
    assert sum(sizes[cut:]) <= room
    fewer = [other for other in cuts(len(sizes), step) if other < cut]
    assert not fewer or sum(sizes[fewer[-1] :]) > room


# --- as the model's tokenizer reads it ---------------------------------------------------------------

DEFAULT = Path(__file__).parents[2] / "var" / "models" / "smollm2-135m-instruct"


@pytest.fixture(scope="module")
def tokenizer() -> ChatTokenizer:
    return ChatTokenizer(Path(os.environ.get("MODEL_DIR") or DEFAULT))


sentences = st.lists(st.sampled_from("rain snow 雨 3 km Paris, why? Yes. \n".split(" ")), max_size=9).map(
    " ".join
)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(sentences, sentences), min_size=8, max_size=24), least, st.integers(2, 6))
def test_the_next_prompt_begins_with_the_tokens_of_this_one_and_its_answer(
    tokenizer: ChatTokenizer, conversation: list[tuple[str, str]], least: int, step: int
) -> None:
    written = WrittenAnswers()
    known: list[int] = []
    for at, (asked, answered) in enumerate(conversation):
        window = arrange(said(conversation[:at]), least, step)
        prompt = prompt_tokens(
            tokenizer,
            compose(
                system="You help.",
                knowledge="Shops open at 9.",
                summary="\n".join(map(extract, window.parts)),
                turns=window.shown,
                question=asked,
            ),
            "",
            written,
        )
        steps = at > least and (at - least) % step == 0
        if not steps:
            assert prompt[: len(known)] == known
        answer = tokenizer.encode_plain(answered)
        written.remember("", prompt, tokenizer.decode(answer), answer)
        known = [*prompt, *answer] if tokenizer.decode(answer) == answered else prompt
