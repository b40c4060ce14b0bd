"""The same question in other letters, found before anything is embedded; never across what decides."""

import uuid

import pytest

from inference import embedding
from inference.cache import lookup, probe
from inference.cache.spelling import mistyped, rearranged
from inference.models import Outcome, Scope
from inference.understanding import keys

from .conftest import decided, stored, turns


@pytest.fixture(autouse=True)
def _no_vectors(settings) -> None:
    """What is found here is found without the semantic layer; words are known all the same."""
    embedding.is_word("warm")


@pytest.mark.parametrize(
    ("cached", "asked"),
    [
        ("How do I descale a kettle?", "Please, how do I descale the kettle"),
        ("请问怎么清洗咖啡机？", "怎么清洗咖啡机呢"),
        ("What is the environment variable for the proxy?", "What is the enviroment variable for the proxy?"),
        ("Where is order 12345 now?", "where is the order 12345 now"),
    ],
    ids=["courtesy", "particles", "typo", "template"],
)
def test_other_letters_are_a_fuzzy_hit(scope: Scope, cached: str, asked: str) -> None:
    stored(scope, cached, answer="…")
    found = decided(scope, asked)
    assert (found.layer, found.outcome) == ("fuzzy", Outcome.HIT) and found.reason


@pytest.mark.parametrize(
    ("cached", "asked"),
    [
        ("Where is order 12345 now?", "Where is order 12346 now?"),
        ("订单 12345 到哪了", "订单 12354 到哪了"),
        ("What is the capital of Austria?", "What is the capital of Australia?"),
        ("Can a visitor enable logging?", "Can a visitor unable logging?"),
        ("Is the shop open on Monday?", "Is the shop not open on Monday?"),
        ("怎么开启夜间模式", "怎么别开启夜间模式"),
        ("酒吧几点开门", "酒几点开门"),
        ("How many grams are in 3 pounds?", "How many pounds are in 3 grams?"),
        ("Does the ferry go from Ostend to Dover?", "Does the ferry go from Dover to Ostend?"),
    ],
)
def test_never_across_what_decides(scope: Scope, cached: str, asked: str) -> None:
    stored(scope, cached, answer="…")
    assert decided(scope, asked).served is None


def test_among_many_of_one_template_there_is_one_to_weigh(scope: Scope) -> None:
    for number in range(1000, 1060):
        stored(scope, f"What is the status of parcel {number}?", answer="…")
    for asked in ("What is the statuss of parcel 1057?", "please, what is the status of the parcel 1057"):
        read = probe.read(scope, uuid.uuid4(), turns(asked))
        assert [one.parameters for one in lookup.alike(read)] == [("1057",)]
        assert decided(scope, asked).layer == "fuzzy"


def test_a_dependent_question_counts_in_its_context_only(scope: Scope) -> None:
    stored(scope, "Tell me about the Rhine.", "It is a river.", "Where does it end, please?")
    assert decided(scope, "Tell me about the Danube.", "It is a river.", "Where does it end?").served is None
    same = decided(scope, "Tell me about the Rhine.", "It is a river.", "Where does it end?")
    assert same.served is not None


def test_keys_leave_out_courtesy_and_nothing_else() -> None:
    assert keys.keywords("Please tell me, how do I descale the kettle?") == keys.keywords(
        "How do I descale a kettle"
    )
    assert keys.keywords("Is it not open?") != keys.keywords("Is it open?")
    assert keys.keywords("") == keys.keywords("?!") == ()
    assert keys.template("订单 12345 到哪了") == keys.template("订单 12345 到哪了？")
    text, parameters = keys.template("Where is order AB-12345, shipped 2024-01-05?")
    assert parameters == ("ab-12345", "2024-01-05") and "12345" not in text
    assert keys.template("Where is my order?")[1] == ()


def test_bands_meet_across_a_typo_and_not_across_scopes() -> None:
    right = keys.bands("What is the environment variable for the proxy?", "here")
    wrong = keys.bands("What is the enviroment variable for the proxy?", "here")
    assert set(right) & set(wrong)
    assert not set(right) & set(keys.bands("What is the environment variable for the proxy?", "elsewhere"))
    assert keys.bands("", "here") == []


@pytest.mark.parametrize(
    ("a", "b", "typo"),
    [
        ("clean up the enviroment", "clean up the environment", True),
        ("recieve a parcel", "receive a parcel", True),
        ("capital of austria", "capital of australia", False),
        ("open port 8080", "open port 8081", False),
        ("cat", "cut", False),
        ("same", "same", False),
        ("图书馆在哪", "图书管在哪", False),
    ],
)
def test_a_typo_is_what_is_no_word(a: str, b: str, typo: bool) -> None:
    assert mistyped(a, b) is mistyped(b, a) is typo


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("坐飞机比坐高铁有什么好处？", "坐高铁比坐飞机有什么好处？", True),
        ("from Ostend to Dover", "from Dover to Ostend", True),
        ("from Ostend to Dover", "from Ostend to Dover", False),
        ("Why is the sky blue?", "What is the tallest tree?", False),
    ],
)
def test_rearranged(a: str, b: str, expected: bool) -> None:
    assert rearranged(a, b) is rearranged(b, a) is expected
