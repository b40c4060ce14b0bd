"""What may be served in far other words, for all that speaks for it."""

import math
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from inference.cache import decision, evidence, policy, probe
from inference.cache.lookup import Candidate
from inference.cache.probe import Probe
from inference.embedding import embed
from inference.evaluation.cases import read
from inference.evaluation.fit_evidence import (
    Answered,
    Row,
    crossed,
    enough,
    figures,
    fitted,
    rows_of,
    shifted,
    without_answer,
)
from inference.models import Outcome, Policy, Scope

from .conftest import decided, stored, turns

QUESTION = "How do I get limescale out of a kettle?"
OTHERWISE = "Our water is hard and by now the kettle is white inside. How would one descale it?"
ANSWER = (
    "Boil equal parts of white vinegar and water in the kettle to dissolve the limescale, wait an hour, then"
    " rinse."
)
SESSION = UUID(int=7)
CASES = Path(__file__).parents[1] / "cases" / "cache_en.jsonl"


@pytest.fixture(autouse=True)
def _fresh_rules() -> None:
    policy.forget()


def pair(scope: Scope, asked: str, kept: str, answer: str = ANSWER) -> tuple[Probe, Candidate]:
    """A probe and a candidate, with real vectors."""
    one, other = (probe.read(scope, SESSION, turns(text)) for text in (asked, kept))
    vectors = embed([answer])
    assert vectors is not None and one.question_vector is not None and other.question_vector is not None
    candidate = Candidate(
        wording=SESSION,
        entry=SESSION,
        answer=answer,
        content_class="fact",
        proved=True,
        question=kept,
        resolved="",
        dependent=other.dependent,
        fingerprint=other.prints.to_json(),
        parameters=(),
        likeness=float(one.question_vector @ other.question_vector),
        answer_likeness=float(vectors[0] @ one.question_vector),
        own_answer_likeness=float(vectors[0] @ other.question_vector),
    )
    return one, candidate


def test_a_question_in_far_other_words_is_served_gray_and_says_why(scope: Scope) -> None:
    entry = stored(scope, QUESTION, answer=ANSWER).entry
    found = decided(scope, OTHERWISE)
    assert (found.outcome, found.served and found.served.entry) == (Outcome.GRAY, entry.pk)
    assert "evidence" in found.reason and found.scores["evidence"] >= policy.BUILT_IN.likely


def test_a_policy_turns_it_off(scope: Scope) -> None:
    stored(scope, QUESTION, answer=ANSWER)
    Policy.objects.create(scope=scope, version=1, mode="live", high=0.99, low=0.9, near=0.7, consent=1.0)
    policy.forget()
    assert decided(scope, OTHERWISE).outcome == Outcome.NEAR


def test_without_the_verifier_it_says_nothing(scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    stored(scope, QUESTION, answer=ANSWER)
    monkeypatch.setattr("inference.cache.verifier.available", lambda: False)
    assert decided(scope, OTHERWISE).outcome == Outcome.NEAR


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ("How do I get limescale out of a kettle quickly?", QUESTION),  # a near copy
        ("limescale", QUESTION),  # contained
    ],
)
def test_where_the_difference_may_be_the_meaning_it_is_not_asked(scope: Scope, asked: str, kept: str) -> None:
    one, candidate = pair(scope, asked, kept)
    assert evidence.eligible(one, [candidate], [candidate]) == {}


BICYCLE = ("How is a flat bicycle tyre mended?", "my bicycle has a flat, how do I patch that")
CAR = ("how does one change the flat tyre of a car", "the car has a flat and there's a spare, what is next")
JUMPER_ZH = ("毛衣缩水了怎么办", "怎么让毛衣恢复原来的大小")


@pytest.mark.parametrize(
    ("kept", "asked", "synonym"),
    [
        (
            BICYCLE,
            "What do I do about a flat on the scooter during a trip?",
            "What do I do about a flat on the bike during a trip?",
        ),
        (CAR, "my bicycle got a flat while I rode to work", "the vehicle got a flat while I rode to work"),
        (JUMPER_ZH, "皮鞋变小了有什么补救的办法", "毛衣变小了有什么补救的办法"),
    ],
)
def test_for_what_all_wordings_say_there_is_hardly_another_word(
    scope: Scope, kept: tuple[str, ...], asked: str, synonym: str
) -> None:
    """Several wordings tell what an entry is about; one alone doesn't."""
    for text, weighed in ((asked, False), (synonym, True)):
        (one, first), (_, second) = (pair(scope, text, each, "Take it off and see.") for each in kept)
        assert 0 in evidence.eligible(one, [first], [first])
        assert (0 in evidence.eligible(one, [first], [first, second])) == weighed, text


def test_what_differs_from_one_wording_is_not_asked_by_another(scope: Scope) -> None:
    one, near = pair(
        scope, "How do I change a flat tyre on my car?", "How do I repair a flat tyre on my bicycle?"
    )
    far = replace(pair(scope, one.question, BICYCLE[1])[1], wording=UUID(int=9))
    other = replace(far, entry=UUID(int=8))
    weighed = [decision.weigh(one, each, policy.rules(scope)) for each in (near, far, other)]
    assert weighed[0].comparison.verdict == "conflict" and not weighed[1].objection
    assert [each.candidate for each in decision.unopposed(weighed)] == [other]


def test_another_kind_of_answer_wanted_is_weighed(scope: Scope) -> None:
    asked = "When was the lighthouse at Corran Point opened to visitors?"
    one, candidate = pair(scope, asked, "Who designed that old sea tower?")
    assert evidence.eligible(one, [candidate], [candidate])[0].features["other_intent"] == 1


def test_an_answer_without_a_vector_is_no_evidence(scope: Scope) -> None:
    one, candidate = pair(scope, OTHERWISE, QUESTION)
    assert 0 in evidence.eligible(one, [candidate], [candidate])
    unknown = replace(candidate, answer_likeness=None)
    assert evidence.eligible(one, [unknown], [unknown]) == {}


def test_a_better_word_of_the_verifier_never_counts_against(scope: Scope) -> None:
    one, candidate = pair(scope, OTHERWISE, QUESTION)
    case = evidence.eligible(one, [candidate], [candidate])[0]
    for lang in ("en", "zh"):
        sure = [evidence.weigh(case, p, None, lang) for p in (0.0, 0.2, 0.5, 0.9, 1.0)]
        assert sure == sorted(sure) and all(0 <= p <= 1 for p in sure)
    assert evidence.weigh(case, 1.0, None, "other") == 0


def test_being_ahead_of_few_counts_no_more_than_being_ahead_of_many(scope: Scope) -> None:
    one, candidate = pair(scope, OTHERWISE, QUESTION)
    candidate = replace(candidate, likeness=0.9, answer_likeness=0.85)
    far = replace(candidate, entry=UUID(int=8), likeness=0.4, answer_likeness=0.4)
    close = replace(far, likeness=0.89, answer_likeness=0.84)

    def ahead(*others: Candidate) -> list[float]:
        """Also of those that something speaks against."""
        features = evidence.eligible(one, [candidate], [candidate, *others])[0].features
        return [features["ahead"], features["ahead_answer"]]

    assert ahead() == ahead(far)
    assert ahead(close) == pytest.approx([0.01, 0.01]) and ahead(far) > ahead(close)


def test_it_is_fitted_to_near_misses_that_can_be_reached_by_several_wordings() -> None:
    """Else having several would itself speak for a hit: those of a near miss are asked for it, too."""
    cases = read(CASES)[:60]
    rows = rows_of(cases)
    warm = [row for row in rows if row.question[1] == "again, absent"]
    assert warm and not any(row.same for row in warm)
    assert any(row.features["reworded"] for row in warm)
    known = without_answer(cases)
    assert {row.kind for row in rows if not row.same and "again, absent" in row.kind} <= set(known)
    assert sum(n for kind, n in known.items() if kind.endswith("again, absent")) == len(cases)


def row(at: int, same: bool, half: int, **features: float) -> Row:
    return Row((f"c{at}", "first"), "en", "en/paraphrase", half, same, features)


def test_the_verifier_is_never_fitted_against_what_it_speaks_for() -> None:
    """Where its word goes with pairs that differ, only its veto is left."""
    rows = [
        row(at, at % 2 == 0, at // 2 % 2, x=1.0 * (at % 2 == 0), verifier=at % 2 + at % 3) for at in range(80)
    ]
    weights = fitted(rows)
    assert weights["verifier"] == 0 and weights["x"] > 1


def test_fitting_finds_what_tells_and_measures_each_half_by_the_other() -> None:
    rows = [row(at, at % 2 == 0, at // 2 % 2, x=1.0 * (at % 2 == 0), y=0.5) for at in range(80)]
    weights = fitted(rows)
    assert weights["x"] > 1 and abs(weights["y"]) < 0.1
    assert figures(crossed(rows))["first 0.9"] == "40/0"


def answered(*found: tuple[float, bool]) -> list[Answered]:
    return [Answered(sure, row(at, same, 0)) for at, (sure, same) in enumerate(found)]


def test_so_much_is_asked_for_that_few_answers_are_wrong() -> None:
    right = [(0.5 + at / 1000, True) for at in range(400)]
    assert enough(answered(*right), {"en/paraphrase": 400}) == 0.5
    # One in four hundred may be wrong; of another kind there are so few that none may.
    some = [*right, (0.7005, False)]
    assert enough(answered(*some), {"en/paraphrase": 400}) == 0.5
    assert enough(answered(*some), {"en/paraphrase": 40}) == pytest.approx(0.701)
    assert enough(answered((0.9, False)), {"en/paraphrase": 1}) == 1


def test_what_is_enough_comes_to_the_threshold_in_use() -> None:
    def sure(constant: float) -> float:
        return 1 / (1 + math.exp(-constant))

    weights = shifted({"constant": 0.3, "x": 2.0}, needed=sure(0.3))
    assert sure(weights["constant"]) == pytest.approx(policy.BUILT_IN.likely, abs=1e-3)
    assert weights["x"] == 2.0
