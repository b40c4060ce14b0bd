"""The written cases are what they say: well-formed, enough of each class, and hard where they mean to be."""

import json
import re
from collections import Counter
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

HERE = Path(__file__).parent
TRAFFIC = HERE.parents[1] / "benchmarks" / "traffic"
LANGUAGES = ("en", "zh")
HITS = {"paraphrase", "coreference", "supplement"}
REJECTS = {"entity_swap", "intent_flip", "related", "context_mismatch"}
LABELS = {"correction", "rejection", "restatement", "none"}

Row = dict[str, Any]


def rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def cache_cases(lang: str) -> list[Row]:
    return rows(HERE / f"cache_{lang}.jsonl")


def signal_cases(lang: str) -> list[Row]:
    return rows(HERE / f"signals_{lang}.jsonl")


def intents(lang: str) -> list[Row]:
    return rows(TRAFFIC / f"intents_{lang}.jsonl")


def one_offs(lang: str) -> list[Row]:
    return rows(TRAFFIC / f"one_offs_{lang}.jsonl")


def plain(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.lower())


def pieces(text: str, lang: str) -> set[str]:
    """English by words, Chinese by characters: what a reader would call the same words."""
    return set(re.findall(r"\w+", text.lower())) if lang == "en" else set(plain(text))


def overlap(one: str, other: str, lang: str) -> float:
    """Jaccard overlap, 0 to 1."""
    a, b = pieces(one, lang), pieces(other, lang)
    return len(a & b) / len(a | b)


def roles(turns: list[Row]) -> list[str]:
    return [turn["role"] for turn in turns]


def alternating(count: int) -> list[str]:
    return ["user" if at % 2 == 0 else "assistant" for at in range(count)]


def asked(turns: list[Row]) -> tuple[str, ...]:
    return tuple(plain(turn["content"]) for turn in turns)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_cache_cases_are_well_formed(lang: str) -> None:
    cases = cache_cases(lang)
    assert len({case["id"] for case in cases}) == len(cases)
    for case in cases:
        assert case["lang"] == lang and case["class"] in HITS | REJECTS, case["id"]
        assert case["id"].startswith(f"{lang}-{case['class']}-")
        assert case["expect"] == ("hit" if case["class"] in HITS else "reject"), case["id"]
        assert case["fresh"].strip(), case["id"]
        for part, last in (("seed", "assistant"), ("probe", "user"), ("third", "user")):
            assert roles(case[part]) == alternating(len(case[part])), (case["id"], part)
            assert case[part][-1]["role"] == last, (case["id"], part)
            assert all(turn["content"].strip() for turn in case[part]), (case["id"], part)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_class_has_enough_cases(lang: str) -> None:
    counted = Counter(case["class"] for case in cache_cases(lang))
    assert all(counted[name] >= 40 for name in HITS | REJECTS), counted


@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_conversation_is_written_twice(lang: str) -> None:
    """Nothing asked is the stored conversation itself, of its own case or of another one."""
    cases = cache_cases(lang)
    seeds = [asked(case["seed"][:-1]) for case in cases]
    assert len(set(seeds)) == len(seeds)
    for case in cases:
        assert asked(case["probe"]) not in seeds, case["id"]
        assert asked(case["third"]) not in seeds, case["id"]
        assert asked(case["third"]) != asked(case["probe"]), case["id"]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_answers_are_worded_independently(lang: str) -> None:
    for case in cache_cases(lang):
        assert plain(case["fresh"]) != plain(case["seed"][-1]["content"]), case["id"]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_self_contained_hits_are_asked_in_other_words(lang: str) -> None:
    for case in cache_cases(lang):
        if case["class"] == "paraphrase":
            assert len(case["seed"]) == 2 and len(case["probe"]) == len(case["third"]) == 1, case["id"]
            stored = case["seed"][0]["content"]
            assert overlap(stored, case["probe"][0]["content"], lang) < 0.5, case["id"]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_dependent_classes_carry_a_history(lang: str) -> None:
    for case in cache_cases(lang):
        if case["class"] in {"coreference", "context_mismatch"}:
            assert len(case["probe"]) >= 3 and len(case["third"]) >= 3, case["id"]
        if case["class"] == "context_mismatch":
            assert case["seed"][-2]["content"] == case["probe"][-1]["content"], case["id"]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_what_must_be_rejected_looks_more_alike_than_what_must_hit(lang: str) -> None:
    """So a cache that goes by likeness alone does badly on these files."""
    alike: dict[str, list[float]] = {"hit": [], "reject": []}
    for case in cache_cases(lang):
        alike[case["expect"]].append(overlap(case["seed"][-2]["content"], case["probe"][-1]["content"], lang))
    assert mean(alike["reject"]) > mean(alike["hit"]) + 0.2


@pytest.mark.parametrize("lang", LANGUAGES)
def test_signal_cases_are_well_formed(lang: str) -> None:
    cases = signal_cases(lang)
    assert len({case["id"] for case in cases}) == len(cases)
    for case in cases:
        assert case["lang"] == lang and case["label"] in LABELS, case["id"]
        assert case["invalidates"] is (case["label"] != "none"), case["id"]
        assert case["id"].startswith(f"{lang}-{case['label']}-"), case["id"]
        assert case["text"].strip(), case["id"]
        assert len(case["history"]) >= 2 and len(case["history"]) % 2 == 0, case["id"]
        assert roles(case["history"]) == alternating(len(case["history"])), case["id"]
        assert all(turn["content"].strip() for turn in case["history"]), case["id"]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_signal_cases_balance_cues_silence_and_look_alikes(lang: str) -> None:
    cases = signal_cases(lang)
    labels = Counter(case["label"] for case in cases)
    positives = len(cases) - labels["none"]
    implicit = sum("-implicit-" in case["id"] for case in cases)
    assert len(cases) >= 130 and 0.4 <= labels["none"] / len(cases) <= 0.6
    assert implicit >= positives / 3
    assert min(labels.values()) >= 18


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_sentence_can_mean_either_depending_on_its_history(lang: str) -> None:
    meanings: dict[str, set[bool]] = {}
    for case in signal_cases(lang):
        meanings.setdefault(plain(case["text"]), set()).add(case["invalidates"])
    assert sum(len(both) == 2 for both in meanings.values()) >= 8


@pytest.mark.parametrize("lang", LANGUAGES)
def test_traffic_is_well_formed(lang: str) -> None:
    traffic, single = intents(lang), one_offs(lang)
    assert len(traffic) == 30 and len(single) == 45
    labels = [intent["id"] for intent in traffic] + [question["id"] for question in single]
    assert len(set(labels)) == len(labels)
    for intent in traffic:
        follow_up = intent["follow_up"]
        assert len(set(map(plain, intent["wordings"]))) == 6, intent["id"]
        assert len(set(map(plain, follow_up["wordings"]))) == 3, intent["id"]
        assert follow_up["id"] == f"{intent['id']}/follow-up"
        assert intent["answer"].strip() and follow_up["answer"].strip(), intent["id"]
    assert all(question["question"].strip() and question["answer"].strip() for question in single)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_traffic_holds_near_misses_and_asks_nothing_under_two_labels(lang: str) -> None:
    traffic = intents(lang)
    labels = {intent["id"] for intent in traffic}
    twins = [intent["near_miss_of"] for intent in traffic if intent["near_miss_of"]]
    assert len(twins) >= 6 and set(twins) <= labels
    texts = [plain(text) for intent in traffic for text in intent["wordings"]]
    texts += [plain(question["question"]) for question in one_offs(lang)]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_dependence_cases_are_pairs_of_one_history(lang: str) -> None:
    cases = rows(HERE / f"dependence_{lang}.jsonl")
    by_history: dict[tuple[str, ...], list[bool]] = {}
    for case in cases:
        assert case["lang"] == lang and case["text"].strip()
        assert roles(case["history"]) == alternating(len(case["history"])), case["text"]
        assert case["history"][-1]["role"] == "assistant"
        assert case["dependent"] == ("resolved" in case), case["text"]
        by_history.setdefault(asked(case["history"]), []).append(case["dependent"])
    assert len({plain(case["text"]) for case in cases}) == len(cases) >= 100
    assert all(sorted(leans) == [False, True] for leans in by_history.values())


def agreement_cases(lang: str) -> list[Row]:
    return rows(HERE / f"agreement_{lang}.jsonl")


LOOK_ALIKES = {"number", "unit", "entity", "polarity", "condition", "order", "date"}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_agreement_cases_are_well_formed(lang: str) -> None:
    cases = agreement_cases(lang)
    assert len({case["id"] for case in cases}) == len(cases) >= 200
    for case in cases:
        assert case["lang"] == lang and case["id"].startswith(f"{lang}-"), case["id"]
        assert case["label"] in {"agree", "disagree"} and case["part"] in {"tune", "measure"}, case["id"]
        assert all(case[name].strip() for name in ("question", "stored", "fresh")), case["id"]
        assert case.get("stored_question") != case["question"], case["id"]
    labels = Counter(case["label"] for case in cases)
    assert 0.4 <= labels["agree"] / len(cases) <= 0.6


@pytest.mark.parametrize("lang", LANGUAGES)
def test_agreement_cases_that_disagree_look_more_alike_than_those_that_agree(lang: str) -> None:
    cases = agreement_cases(lang)
    look_alikes = [case for case in cases if case["kind"] in LOOK_ALIKES]
    assert len(look_alikes) >= 100 and {case["kind"] for case in look_alikes} == LOOK_ALIKES
    alike = {
        label: mean(overlap(c["stored"], c["fresh"], lang) for c in cases if c["label"] == label)
        for label in ("agree", "disagree")
    }
    assert alike["disagree"] > alike["agree"] + 0.2


@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_question_of_agreement_cases_is_in_both_parts(lang: str) -> None:
    parts: dict[str, set[str]] = {"tune": set(), "measure": set()}
    for case in agreement_cases(lang):
        parts[case["part"]] |= {plain(case["question"]), plain(case.get("stored_question") or "")}
    assert parts["tune"] & parts["measure"] <= {""}
    sizes = Counter(case["part"] for case in agreement_cases(lang))
    assert min(sizes.values()) >= 100
