"""What the verifier learns from: schemes and corners that are whole, rules that do what they say, figures."""

import random
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.evaluation.altering import alter, exchange_in_all
from inference.evaluation.pair_measures import figures, logistic
from inference.evaluation.rewording import reword
from inference.evaluation.verifier_pairs import (
    Group,
    Mixture,
    all_pairs,
    composed,
    four_corners,
    held_out,
    learned,
    read_corners,
    read_schemes,
)

GROUPS = [
    Group(
        "en",
        ["How do I oil a chain?", "What's the way to oil a chain?", "chain needs oil, how"],
        ["Where do I buy a chain?"],
    ),
    Group(
        "en",
        ["Is it 3 miles to Rome?", "Rome, is it three miles off?"],
        ["Is it 5 miles to Rome?", "Is it 3 miles to Paris?"],
    ),
    Group("zh", ["怎么给链条上油", "链条要上油，怎么弄"], ["链条在哪里买"]),
    Group("zh", ["从北京到上海要3个小时吗", "北京到上海，3个小时够吗"], ["从上海到北京要3个小时吗"]),
]


def test_frames_of_one_ask_name_the_same_slots() -> None:
    for scheme in read_schemes():
        for ask, frames in scheme.asks.items():
            named = {frozenset(re.findall(r"\{(\w+)\}", frame)) for frame in frames}
            assert len(named) == 1 and named.pop() <= set(scheme.slots), (ask, frames)
        assert set(scheme.either_way) <= set(scheme.asks)


def test_no_text_stands_on_both_sides_of_a_corner() -> None:
    for corners in read_corners():
        same = {corners.text, *corners.near, *corners.far}
        assert not same & {*corners.near_not, *corners.far_not}
        assert Counter(pair.same for pair in four_corners(corners)) == {True: 3, False: 4}


@pytest.mark.parametrize("same", [True, False])
def test_composed_pairs_are_two_texts(same: bool) -> None:
    rng = random.Random(0)
    for scheme in read_schemes():
        for _ in range(20):
            pair = composed(rng, scheme, same)
            assert "{" not in pair.first + pair.second
            assert same or pair.first.casefold() != pair.second.casefold()


def test_half_the_pairs_are_the_same_in_either_language() -> None:
    rng = random.Random(0)
    mixture = Mixture(GROUPS, [[1], [0], [3], [2]], read_schemes(), read_corners())
    drawn = Counter((pair.lang, pair.same) for pair in (mixture.draw(rng) for _ in range(2000)))
    assert all(400 < drawn[lang, same] < 600 for lang in ("en", "zh") for same in (True, False))


@pytest.mark.parametrize("group", GROUPS)
def test_altering_alters_and_rewording_rewords(group: Group) -> None:
    rng = random.Random(0)
    for text in group.same:
        assert all(alter(rng, text, group.lang).casefold() != text.casefold() for _ in range(30))
        assert len({reword(rng, text, group.lang) for _ in range(30)}) > 5


def test_a_number_is_the_same_number_in_either_script() -> None:
    rng = random.Random(0)
    reworded = {reword(rng, "3个月后能退吗", "zh") for _ in range(200)}
    assert any("三个月" in text for text in reworded)
    assert not any(digit in text for text in reworded for digit in "12456789二四五六七八九")


def test_a_part_is_exchanged_in_all_wordings_or_in_none() -> None:
    rng = random.Random(0)
    changed = exchange_in_all(rng, ["北京到上海多远", "从北京去上海有多少公里"], "zh")
    assert changed is not None and all("北京" not in text or "上海" not in text for text in changed)
    assert exchange_in_all(rng, ["链条怎么上油", "给链条上油"], "zh") is None


def test_held_out_and_learned_are_all() -> None:
    wholes = list(range(50))
    assert sorted(learned(wholes) + held_out(wholes)) == wholes
    assert len(held_out(wholes)) == 8


def test_pairs_of_a_group() -> None:
    assert Counter(pair.same for pair in all_pairs(GROUPS[0])) == {True: 3, False: 3}


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=40))
def test_figures_are_what_they_say(rows: list[tuple[int, bool]]) -> None:
    scores, same = [float(score) for score, _ in rows], [truth for _, truth in rows]
    if len(set(same)) < 2:
        return
    found = figures(scores, same)
    positive = [score for score, truth in zip(scores, same, strict=True) if truth]
    negative = [score for score, truth in zip(scores, same, strict=True) if not truth]
    wins = sum((p > n) + 0.5 * (p == n) for p in positive for n in negative)
    assert found.auc == pytest.approx(wins / (len(positive) * len(negative)))
    best = 0.0
    for threshold in set(scores):
        hits = [truth for score, truth in zip(scores, same, strict=True) if score >= threshold]
        if sum(hits) / len(hits) >= 0.95:
            best = max(best, sum(hits) / len(positive))
    assert found.recall_at_95 == pytest.approx(best)


def test_a_logistic_finds_the_feature_that_tells() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(400, 2))
    same = (features[:, 1] + 0.3 * rng.normal(size=400) > 0.5).tolist()
    weights = logistic(features, same)
    assert weights[1] > 3 * abs(weights[0]) and weights[2] < 0
