import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.engines.prompt import CUT_MARK, CUT_STEP, PromptTooLong, answer_room, compose, defuse, fit
from inference.understanding.turns import Turn, Turns

from .conftest import assistant, system, user


def count(turns: Turns) -> int:
    """Four tokens around every turn, one a character; the answer's opening costs two."""
    return 2 + sum(4 + len(turn["content"]) for turn in turns)


words = st.text(alphabet="ab 中🎉\n", max_size=80)
exchanges = st.lists(st.tuples(words, words), max_size=30)


def conversation(told: str, pairs: list[tuple[str, str]], question: str) -> list[Turn]:
    history = [turn for ask, answer in pairs for turn in (user(ask), assistant(answer))]
    return [system(told), *history, user(question)]


@given(st.text("x", max_size=30), exchanges, words, st.integers(120, 1500))
def test_what_is_kept_is_the_most_that_fits(
    told: str, pairs: list[tuple[str, str]], question: str, budget: int
) -> None:
    turns = conversation(told, pairs, question)
    fitted = fit(turns, count=count, budget=budget)
    assert count(fitted.turns) <= budget
    assert fitted.turns[0] == turns[0]
    if fitted.prompt_cut:
        assert count([turns[0], turns[-1]]) > budget
        return
    assert fitted.turns[-1] == turns[-1]
    kept = len(fitted.turns) - 2
    assert kept % 2 == 0
    assert list(fitted.turns[1:]) == turns[len(turns) - kept - 1 :]
    assert fitted.history_cut == (len(fitted.turns) < len(turns))
    if fitted.history_cut:
        cut = len(pairs) - kept // 2
        assert cut % CUT_STEP == 0 or kept <= 2
        # One step less, and it would not fit.
        more = max(0, cut - 1) // CUT_STEP * CUT_STEP
        assert count([turns[0], *turns[1 + 2 * more :]]) > budget


@given(exchanges.filter(lambda pairs: len(pairs) > 8), st.integers(200, 1500))
def test_between_two_cuts_prompts_begin_alike(pairs: list[tuple[str, str]], budget: int) -> None:
    """As a conversation grows, its prompts lose their beginning once in CUT_STEP turns at most, as long as
    more than one exchange fits."""
    fitted = [
        fit(conversation("be kind", pairs[:at], "x"), count=count, budget=budget).turns
        for at in range(len(pairs) + 1)
    ]
    for before, after in itertools.pairwise(range(len(fitted))):
        if len(fitted[after]) > 4:
            grown = fitted[after][: len(fitted[before]) - 1] == fitted[before][:-1]
            dropped = after - (len(fitted[after]) - 2) // 2
            assert grown or (dropped > 0 and dropped % CUT_STEP == 0)


@given(st.text("abc中", min_size=200, max_size=3000), exchanges, st.integers(120, 190))
def test_a_question_too_long_keeps_head_and_tail(
    question: str, pairs: list[tuple[str, str]], budget: int
) -> None:
    fitted = fit(conversation("be kind", pairs, question), count=count, budget=budget)
    assert fitted.prompt_cut
    assert fitted.history_cut == bool(pairs)
    assert len(fitted.turns) == 2
    head, tail = fitted.turns[1]["content"].split(CUT_MARK)
    assert question.startswith(head) and question.endswith(tail)
    assert len(head) >= len(tail) > 0
    assert budget - 1 <= count(fitted.turns) <= budget


def test_a_conversation_of_a_thousand_turns_is_not_counted_whole() -> None:
    counted = 0

    def counting(turns: Turns) -> int:
        nonlocal counted
        counted += len(turns)
        return count(turns)

    turns = conversation("be kind", [("ask", "answer")] * 500, "and now?")
    fitted = fit(turns, count=counting, budget=300)
    assert fitted.history_cut and not fitted.prompt_cut
    assert counted < 300  # five times what is kept, at most


def test_exchanges_go_whole_even_when_unanswered_or_begun_by_the_assistant() -> None:
    turns = [assistant("hello"), user("a" * 50), user("b"), assistant("c"), assistant("d"), user("e")]
    assert fit(turns, count=count, budget=1000).turns == tuple(turns)
    assert fit(turns, count=count, budget=40).turns == tuple(turns[2:])
    assert fit(turns, count=count, budget=20).turns == (turns[-1],)


def test_all_leading_system_turns_stay() -> None:
    turns = [system("one"), system("two"), user("x" * 90), assistant("y"), user("z")]
    assert fit(turns, count=count, budget=40).turns == (turns[0], turns[1], turns[-1])


@pytest.mark.parametrize("turns", [[], [system("only told")], [user("a"), assistant("b")]])
def test_without_a_question_there_is_no_prompt(turns: list[Turn]) -> None:
    with pytest.raises(ValueError, match="question"):
        fit(turns, count=count, budget=100)


@pytest.mark.parametrize("question", ["", "hi", "x" * 500])
def test_a_system_prompt_that_fills_the_window_is_refused(question: str) -> None:
    with pytest.raises(PromptTooLong, match="100 tokens"):
        fit([system("s" * 100), user(question)], count=count, budget=100)


def test_the_order_is_from_most_to_least_shared() -> None:
    turns = compose(
        system="You help.\n",
        knowledge="Shops open at 9.",
        task="Answer briefly.",
        summary="They asked about shops.",
        turns=[user("hi"), assistant("hello")],
        question="when?",
    )
    assert turns == [
        system(
            "You help.\n\nShops open at 9.\n\nAnswer briefly.\n\n"
            "Earlier in this conversation: They asked about shops."
        ),
        user("hi"),
        assistant("hello"),
        user("when?"),
    ]
    assert compose(question="when?", system="  ") == [user("when?")]


@given(st.integers(1, 100_000), st.integers(1, 100_000))
def test_the_answer_has_room_but_never_most_of_the_window(window: int, max_tokens: int) -> None:
    room = answer_room(window, max_tokens)
    assert 1 <= room <= max_tokens
    assert room <= max(1, window // 4)


MARKS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<filename>")
typed = st.lists(st.sampled_from([*MARKS, "<|", "im_end", "|>", "<", "hello", " "]), max_size=12).map("".join)


@given(typed)
def test_no_control_token_survives_and_nothing_else_changes(text: str) -> None:
    safe = defuse(text, MARKS)
    assert not any(mark in safe for mark in MARKS)
    assert safe.replace(" ", "") == text.replace(" ", "")
    if not any(mark in text for mark in MARKS):
        assert safe == text
