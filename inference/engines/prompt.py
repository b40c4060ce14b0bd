"""The order of a prompt, and what is left out when it doesn't fit. Pure functions over turns and a count."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from inference.understanding.turns import Turn, Turns
from inference.understanding.window import cuts
from inference.understanding.window import exchanges as exchanges_of

Count = Callable[[Turns], int]
"""Tokens of a whole prompt made of these turns."""

CUT_MARK = "\n[…]\n"
# The start of a long paste says what it is, its end usually asks: both stay, the start a little more.
HEAD_SHARE = 0.6
# Exchanges that don't fit go by as many at once: the prompts between two cuts begin alike.
CUT_STEP = 4
# A question cut to fewer characters than this says nothing; the system prompt is what has to shrink then.
LEAST_QUESTION = 32


class PromptTooLong(ValueError):
    """The part that is always kept, the system prompt, leaves no room for a question."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """The turns that fit. `prompt_cut`: the question lost its middle. `history_cut`: older turns are gone."""

    turns: tuple[Turn, ...]
    prompt_cut: bool
    history_cut: bool


def compose(
    *,
    question: str,
    system: str = "",
    knowledge: str = "",
    task: str = "",
    summary: str = "",
    turns: Turns = (),
) -> list[Turn]:
    """The turns of a prompt, from most to least shared, so that prompts agree on the longest prefix: system
    prompt, knowledge, task, summary of older turns (one system turn), recent turns, question."""
    told = "Earlier in this conversation: " + summary.strip() if summary.strip() else ""
    parts = [part.strip() for part in (system, knowledge, task, told)]
    head = "\n\n".join(part for part in parts if part)
    first: list[Turn] = [{"role": "system", "content": head}] if head else []
    return [*first, *turns, {"role": "user", "content": question}]


def answer_room(window: int, max_tokens: int) -> int:
    """Tokens kept free for the answer: what it may need, but never more than a quarter of the window."""
    return max(1, min(max_tokens, window // 4))


def defuse(text: str, marks: Iterable[str]) -> str:
    """`text` in which none of `marks` (the tokenizer's control tokens) is left, each broken by a space after
    its first character: what a person types never opens or closes a turn."""
    for mark in marks:
        text = text.replace(mark, f"{mark[:1]} {mark[1:]}")
    return text


def fit(turns: Turns, *, count: Count, budget: int, step: int = CUT_STEP) -> Fitted:
    """The turns, cut to at most `budget` tokens by `count`.

    The oldest user/assistant exchanges go first, each as a whole and `step` of them at once, as long as more
    than the newest would be left; leading system turns always stay. A question that doesn't fit alone keeps
    its head and tail around CUT_MARK. Raises ValueError when the last turn isn't the user's, PromptTooLong
    when the system turns leave no room.
    """
    head, exchanges, question = _split(turns)
    if _is_short(turns, budget) and count(turns) <= budget:
        return Fitted(tuple(turns), False, False)
    kept = _newest_that_fit(head, exchanges, question, count, budget, step)
    if kept is not None:
        history = [turn for exchange in exchanges[len(exchanges) - kept :] for turn in exchange]
        return Fitted((*head, *history, question), False, kept < len(exchanges))
    shorter = _cut_question(head, question["content"], count, budget)
    return Fitted((*head, shorter), True, bool(exchanges))


def _is_short(turns: Turns, budget: int) -> bool:
    """Whether all of it may well fit: worth one count of the whole. Four characters make a token, or more."""
    return sum(len(turn["content"]) for turn in turns) <= 4 * budget


def _split(turns: Turns) -> tuple[list[Turn], list[list[Turn]], Turn]:
    """Leading system turns, exchanges (each begins with a user turn, where there is one), question."""
    if not turns or turns[-1]["role"] != "user":
        raise ValueError("The last turn must be the user's question.")
    first = next(place for place, turn in enumerate(turns) if turn["role"] != "system")
    return list(turns[:first]), exchanges_of(turns[first:-1]), turns[-1]


def _newest_that_fit(
    head: Sequence[Turn],
    exchanges: Sequence[Sequence[Turn]],
    question: Turn,
    count: Count,
    budget: int,
    step: int,
) -> int | None:
    """How many of the newest exchanges fit, when the others go in steps; None when not even the question
    does. Doubles, then halves: a conversation of a thousand turns is never counted whole."""
    choices = [len(exchanges) - cut for cut in reversed(cuts(len(exchanges), step))]

    def fits(choice: int) -> bool:
        history = [turn for exchange in exchanges[len(exchanges) - choices[choice] :] for turn in exchange]
        return count([*head, *history, question]) <= budget

    if not fits(0):
        return None
    last = len(choices) - 1
    good, leap = 0, 1
    while good < last and fits(min(good + leap, last)):
        good = min(good + leap, last)
        leap *= 2
    bad = min(good + leap, last + 1)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return choices[good]


def _cut_question(head: Sequence[Turn], text: str, count: Count, budget: int) -> Turn:
    """The question with as much of its head and tail as fits."""

    def cut(length: int) -> Turn:
        front = round(length * HEAD_SHARE)
        return {"role": "user", "content": text[:front] + CUT_MARK + text[len(text) - (length - front) :]}

    def fits(length: int) -> bool:
        return count([*head, cut(length)]) <= budget

    good, bad = min(LEAST_QUESTION, len(text)), len(text)
    if not fits(good):
        raise PromptTooLong(f"The system prompt leaves no room for a question in {budget} tokens.")
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return cut(good)
