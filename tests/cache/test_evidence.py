"""What may be served in far other words, for all that speaks for it."""

from dataclasses import replace
from uuid import UUID

import pytest

from inference.cache import evidence, policy, probe
from inference.cache.lookup import Candidate
from inference.cache.probe import Probe
from inference.embedding import embed
from inference.evaluation.fit_evidence import Row, crossed, fitted
from inference.models import Outcome, Policy, Scope

from .conftest import decided, stored, turns

QUESTION = "How do I get limescale out of a kettle?"
OTHERWISE = "Our water is hard and by now the kettle is white inside. How would one descale it?"
ANSWER = (
    "Boil equal parts of white vinegar and water in the kettle to dissolve the limescale, wait an hour, then"
    " rinse."
)
SESSION = UUID(int=7)


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
        ("When was the lighthouse at Corran Point opened to visitors?", "Who designed that old sea tower?"),
    ],
)
def test_where_the_difference_may_be_the_meaning_it_is_not_asked(scope: Scope, asked: str, kept: str) -> None:
    one, candidate = pair(scope, asked, kept)
    assert evidence.eligible(one, [(candidate, 0.99)]) == {}


def test_an_answer_without_a_vector_is_no_evidence(scope: Scope) -> None:
    one, candidate = pair(scope, OTHERWISE, QUESTION)
    assert 0 in evidence.eligible(one, [(candidate, 0.9)])
    assert evidence.eligible(one, [(replace(candidate, answer_likeness=None), 0.9)]) == {}


def test_a_better_word_of_the_verifier_never_counts_against(scope: Scope) -> None:
    one, candidate = pair(scope, OTHERWISE, QUESTION)
    case = evidence.eligible(one, [(candidate, 0.9)])[0]
    for lang in ("en", "zh"):
        sure = [evidence.weigh(case, p, None, lang) for p in (0.0, 0.2, 0.5, 0.9, 1.0)]
        assert sure == sorted(sure) and sure[0] < sure[-1] and all(0 <= p <= 1 for p in sure)
    assert evidence.weigh(case, 1.0, None, "other") == 0


def test_being_ahead_of_few_counts_no_more_than_being_ahead_of_many(scope: Scope) -> None:
    one, candidate = pair(scope, OTHERWISE, QUESTION)
    far = replace(candidate, entry=UUID(int=8))
    alone = evidence.eligible(one, [(candidate, 0.9)])[0].features["ahead"]
    beside = evidence.eligible(one, [(candidate, 0.9), (far, 0.4)])[0].features["ahead"]
    behind = evidence.eligible(one, [(candidate, 0.9), (far, 0.89)])[0].features["ahead"]
    assert alone == beside > behind == pytest.approx(0.01)


def test_fitting_finds_what_tells_and_measures_each_half_by_the_other() -> None:
    rows = [
        Row((f"c{at}", "first"), "en", at // 2 % 2, at % 2 == 0, {"x": 1.0 * (at % 2 == 0), "y": 0.5})
        for at in range(80)
    ]
    weights = fitted(rows)
    assert weights["x"] > 1 and abs(weights["y"]) < 0.1
    right, wrong = map(int, crossed(rows)["first 0.9"].split("/"))
    assert right == 40 and wrong == 0
