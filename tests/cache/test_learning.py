"""What fresh answers and readers teach: which wordings an entry may be reached by."""

import uuid
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from inference.cache import agreement, decision, learning, lifecycle, lookup, policy, probe, standing
from inference.cache.agreement import Answer, Asked
from inference.cache.lookup import Candidate
from inference.cache.probe import Probe
from inference.embedding import embed
from inference.models import (
    Decision,
    Entry,
    Generation,
    Observation,
    Origin,
    Outcome,
    Scope,
    Session,
    State,
    Status,
    Verdict,
    Wording,
)
from inference.understanding.cacheability import Cacheability
from inference.understanding.fingerprint import Comparison, compare, fingerprint

from .conftest import at_once, decided, stored, turns

KEPT = Cacheability("fact", True, True, timedelta(hours=1), timedelta(days=1), "a test")
QUESTION = "How do I get limescale out of a kettle?"
OTHERWISE = "what dissolves the white crust at the bottom of my water boiler"
ANSWER = "Boil equal parts of white vinegar and water in it, wait an hour, then rinse it with fresh water."
SAME = (
    "Fill it with half vinegar and half water, bring that to the boil, leave it for an hour and rinse well."
)
OTHER = "The ferry leaves from pier four at a quarter past nine, and the ticket office opens an hour before."


@pytest.fixture
def proof_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is served for the evidence: what is like a stored question is proved."""
    monkeypatch.setattr(policy, "BUILT_IN", replace(policy.BUILT_IN, likely=1.0))
    policy.forget()


def answered(scope: Scope, text: str, *asked: str, session: uuid.UUID | None = None) -> Generation:
    """A fresh answer to the last of `asked`, looked up before and kept now, as a worker does."""
    owner = Session.objects.get_or_create(pk=session or uuid.uuid4())[0]
    read = probe.read(scope, owner.pk, turns(*asked))
    generation = Generation.objects.create(
        session=owner,
        scope=scope,
        epoch=owner.epoch,
        question={"turns": turns(*asked)},
        exact_key=read.exact_key,
        status=Status.COMPLETE,
        text=text,
        total_ms=0,
    )
    decision.record(generation, decision.decide(read), 0)
    learning.keep(read, generation, KEPT)
    return generation


@pytest.mark.usefixtures("proof_only")
class TestNear:
    def test_an_agreeing_answer_makes_the_wording_proved(self, scope: Scope) -> None:
        entry = stored(scope, QUESTION, answer=ANSWER).entry
        assert decided(scope, OTHERWISE).outcome == Outcome.NEAR
        generation = answered(scope, SAME, OTHERWISE)
        wording = Wording.objects.get(question=OTHERWISE)
        assert (wording.entry, wording.state, wording.origin) == (entry, State.ACTIVE, Origin.NEAR)
        assert Observation.objects.get(generation=generation).verdict == Verdict.AGREE
        found = decided(scope, OTHERWISE)
        assert (found.layer, found.served.entry) == ("exact", entry.pk)
        assert Entry.objects.count() == 1

    def test_a_disagreeing_answer_is_kept_by_itself_and_vetoes_the_pair(self, scope: Scope) -> None:
        entry = stored(scope, QUESTION, answer=ANSWER).entry
        answered(scope, OTHER, OTHERWISE)
        refuted = Wording.objects.get(question=OTHERWISE, entry=entry)
        assert refuted.state == State.REJECTED
        found = decided(scope, OTHERWISE)
        assert found.layer == "exact" and found.served.answer == OTHER
        read, candidate = _pair(scope, entry, OTHERWISE + "?")
        assert "rejected" in decision._forbidden(read, candidate, policy.rules(scope))

    def test_neighbours_with_other_answers_leave_the_entry_alone(self, scope: Scope) -> None:
        """However many there are: none was given its answer, and it is still right for its question."""
        entry = stored(scope, QUESTION, answer=ANSWER).entry
        for question in (OTHERWISE, "How do I clean a kettle?", "How do I get limescale off a shower head?"):
            answered(scope, OTHER, question)
            assert Wording.objects.get(question=question, entry=entry).state == State.REJECTED
            Entry.objects.exclude(pk=entry.pk).delete()  # or the next would be compared with this answer
        entry.refresh_from_db()
        assert (entry.state, entry.disagreed) == (State.ACTIVE, 0)
        assert decided(scope, QUESTION).served.answer == ANSWER

    def test_what_it_leaves_open_is_noted_where_the_answer_is_likest(self, scope: Scope) -> None:
        """Of the questions that are near, the likest may be about something else."""
        likest = stored(scope, OTHERWISE + ", a boiler of copper", answer=OTHER).entry
        entry = stored(scope, QUESTION, answer=ANSWER).entry
        candidate = _pair(scope, likest, OTHERWISE)[1]
        assert (candidate.likeness or 0) > (_pair(scope, entry, OTHERWISE)[1].likeness or 0)
        answered(scope, SAME + " `vinegar --half`, then `rinse`; it takes 15 minutes.", OTHERWISE)
        noted = Wording.objects.filter(question=OTHERWISE).exclude(origin=Origin.BIRTH).get()
        assert noted.entry == entry and noted.state != State.REJECTED
        assert Observation.objects.get().verdict in (Verdict.UNCLEAR, Verdict.AGREE)

    @pytest.mark.parametrize(
        ("stored_for", "asked", "answer"),
        [
            ("Why does water fall from the sky?", "What makes drops fall out of clouds?", "They grow heavy."),
            ("天上为什么会下雨？", "云里的水为什么会掉下来", "水滴越聚越重，就落下来。"),
            ("雨是怎么形成的？", "天上的水从哪里来", "水滴越聚越重，就落下来。"),
        ],
    )
    def test_the_same_words_are_the_answer_to_what_was_asked_whatever_they_prove(
        self, scope: Scope, stored_for: str, asked: str, answer: str
    ) -> None:
        """An answer in the words of a stored one says little of whether both questions ask the same. It is
        the answer to this one all the same: who asks it again must not wait for the model for ever."""
        entry = stored(scope, stored_for, answer=answer).entry
        answered(scope, answer, asked)
        assert Observation.objects.get().verdict == Verdict.UNCLEAR
        found = decided(scope, asked)
        assert (found.layer, found.served.answer) == ("exact", answer)
        assert found.served.entry != entry.pk, "its own, so that what befalls the other doesn't befall it"

    def test_the_same_words_prove_what_was_only_served_for_its_likeness(self, scope: Scope) -> None:
        entry = stored(scope, QUESTION, answer=ANSWER).entry
        _served_for_its_likeness(scope, entry)
        answered(scope, ANSWER, OTHERWISE)
        found = decided(scope, OTHERWISE)
        assert (found.layer, found.served.entry) == ("exact", entry.pk)

    def test_the_same_words_do_not_clear_what_somebody_said_against_them(self, scope: Scope) -> None:
        entry = stored(scope, QUESTION, answer=ANSWER).entry
        generation, wording = _served_for_its_likeness(scope, entry)
        lifecycle.observe(generation.pk, standing.Witness.USER, Verdict.DISAGREE, wording)
        answered(scope, ANSWER, OTHERWISE)
        assert decided(scope, OTHERWISE).layer != "exact"
        answered(scope, OTHER, OTHERWISE)
        assert decided(scope, OTHERWISE).served.answer == OTHER

    @pytest.mark.parametrize(
        ("first", "likewise", "then"),
        [
            (
                "Which name does the reef have?",
                "What is the reef called?",
                "And how many teeth does it have?",
            ),
            ("那片礁石叫什么名字？", "礁石的名字是什么？", "它有几颗牙？"),
        ],
    )
    def test_the_next_question_is_not_paired_with_the_last(
        self, scope: Scope, first: str, likewise: str, then: str
    ) -> None:
        """Not with other wordings of that either, though the model says nearly the same to both."""
        said = "The reef is called the Comb. It is a rock of the reef." if first.isascii() else "叫梳子礁。"
        entry = stored(scope, first, answer=said).entry
        asked = (likewise, "It has a name.", then)
        read = probe.read(scope, uuid.uuid4(), turns(*asked))
        wording = Wording.objects.get(entry=entry)
        assert learning.was_asked_before(read, wording)
        again = probe.read(scope, uuid.uuid4(), turns("Hello", "Hello!", likewise))
        assert not learning.was_asked_before(again, wording)
        answered(scope, said, *asked)
        assert not Wording.objects.filter(entry=entry, question=then).exclude(state=State.REJECTED).exists()

    def test_what_is_rejected_stays_rejected(self, scope: Scope) -> None:
        entry = stored(scope, QUESTION, answer=ANSWER).entry
        generation = answered(scope, OTHER, OTHERWISE)
        read = probe.read(scope, generation.session_id, turns(OTHERWISE))
        lifecycle.learn(read, generation, entry.pk, State.ACTIVE, Origin.NEAR, True)
        assert Wording.objects.get(question=OTHERWISE, entry=entry).state == State.REJECTED

    def test_a_private_wording_of_a_shared_entry_stays_private(self, scope: Scope) -> None:
        entry = stored(scope, QUESTION, answer=ANSWER).entry
        owner = Session.objects.create(pk=uuid.uuid4())
        read = probe.read(scope, owner.pk, turns(OTHERWISE))
        generation = Generation.objects.create(session=owner, scope=scope, question={}, text=SAME)
        lifecycle.learn(read, generation, entry.pk, State.ACTIVE, Origin.NEAR, shared=False)
        assert decided(scope, OTHERWISE, session=owner.pk).layer == "exact"
        assert decided(scope, OTHERWISE).layer != "exact"

    def test_nothing_is_learned_about_an_entry_that_is_over_or_gone(self, scope: Scope) -> None:
        entry = stored(scope, QUESTION, answer=ANSWER).entry
        owner = Session.objects.create(pk=uuid.uuid4())
        read = probe.read(scope, owner.pk, turns(OTHERWISE))
        generation = Generation.objects.create(session=owner, scope=scope, question={}, text=SAME)
        Entry.objects.update(state=State.FROZEN)
        assert lifecycle.learn(read, generation, entry.pk, State.ACTIVE, Origin.NEAR, True) is None
        Entry.objects.all().delete()
        assert lifecycle.learn(read, generation, entry.pk, State.ACTIVE, Origin.NEAR, True) is None

    def test_a_session_that_moved_on_teaches_nothing(self, scope: Scope) -> None:
        entry = stored(scope, QUESTION, answer=ANSWER).entry
        owner = Session.objects.create(pk=uuid.uuid4(), epoch=1)
        read = probe.read(scope, owner.pk, turns(OTHERWISE))
        generation = Generation.objects.create(session=owner, scope=scope, epoch=0, question={}, text=SAME)
        assert lifecycle.learn(read, generation, entry.pk, State.ACTIVE, Origin.NEAR, True) is None


def _served_for_its_likeness(scope: Scope, entry: Entry) -> tuple[Generation, Wording]:
    owner = Session.objects.create(pk=uuid.uuid4())
    read = probe.read(scope, owner.pk, turns(OTHERWISE))
    generation = Generation.objects.create(session=owner, scope=scope, question={}, text=ANSWER)
    wording = lifecycle.learn(read, generation, entry.pk, State.SUSPECT, Origin.HIT, True)
    assert wording is not None and wording.state == State.SUSPECT
    return generation, wording


def _pair(scope: Scope, entry: Entry, text: str) -> tuple[Probe, Candidate]:
    read = probe.read(scope, uuid.uuid4(), turns(text))
    return read, next(one for one in lookup.nearest(read) if one.entry == entry.pk)


class TestProof:
    def test_a_wording_that_was_only_served_needs_several_agreeing_verdicts(self, scope: Scope) -> None:
        entry = stored(scope, QUESTION, answer=ANSWER).entry
        wording = None
        for at in range(3):
            generation, wording = _served_for_its_likeness(scope, entry)
            assert wording.state == State.SUSPECT, f"after {at} verdicts"
            Observation.objects.create(generation=generation, wording=wording, verdict=Verdict.AGREE)
            state = lifecycle.weigh(wording)
        assert state == State.ACTIVE
        Observation.objects.create(
            generation=generation, wording=wording, verdict=Verdict.DISAGREE, source="near"
        )
        assert lifecycle.weigh(wording) == State.SUSPECT

    def test_the_bounds_rise_with_agreement_and_fall_with_doubt(self) -> None:
        lower = [standing.bounds(n, 0)[0] for n in range(6)]
        assert lower == sorted(lower) and lower[0] == 0 and lower[-1] < 1
        assert standing.bounds(5, 1)[0] < standing.bounds(5, 0)[0]
        assert standing.bounds(1, 5)[1] < standing.bounds(1, 1)[1] < 1


class TestAgreement:
    def judge(self, stored: str, fresh: str, asked: Comparison | None = None) -> Verdict:
        vectors = embed([stored, fresh])
        assert vectors is not None
        a, b = Answer(stored, vectors[0]), Answer(fresh, vectors[1])
        known = Asked(asked or Comparison("unknown"))
        ours = agreement.judge(a, b, known).verdict
        assert ours == agreement.judge(b, a, known).verdict, "it is symmetric"
        return ours

    @pytest.mark.parametrize(
        ("stored", "fresh", "verdict"),
        [
            (ANSWER, SAME, Verdict.AGREE),
            (ANSWER, ANSWER.upper(), Verdict.AGREE),
            (
                "每天早晚各吃一片，饭后用温水送服，连吃七天。",
                "饭后温水送服，早上一片晚上一片，吃满七天。",
                Verdict.AGREE,
            ),
            (ANSWER, OTHER, Verdict.DISAGREE),
            (
                "The deposit is returned within 14 days.",
                "The deposit is returned within 30 days.",
                Verdict.DISAGREE,
            ),
            ("Yes, it is waterproof.", "No, it is not waterproof.", Verdict.DISAGREE),
            ("Use `git merge` for that.", "Use `git rebase` for that.", Verdict.DISAGREE),
            (
                "Open the settings and turn it on there.",
                "Open the settings and turn it off there.",
                Verdict.DISAGREE,
            ),
            ("It opens at nine.", "九点开门。", Verdict.DISAGREE),
            # Hardly another word but one more: what it adds may be the difference.
            ("The lighthouse is 38 metres tall.", "The lighthouse tower is 38 metres high.", Verdict.UNCLEAR),
            (
                "Soak it in lukewarm water with conditioner and dry it flat on a towel.",
                "It can be rescued: lukewarm water and conditioner for 30 minutes, then flat on a towel.",
                Verdict.UNCLEAR,
            ),
            ("I'm sorry, I can't help with that.", ANSWER, Verdict.UNCLEAR),
            ("", ANSWER, Verdict.UNCLEAR),
            ("", "", Verdict.UNCLEAR),
        ],
    )
    def test_of_two_answers(self, stored: str, fresh: str, verdict: Verdict) -> None:
        assert self.judge(stored, fresh) == verdict

    def test_is_never_found_between_questions_that_ask_the_opposite(self) -> None:
        asked = compare(fingerprint("How do I enable it?"), fingerprint("How do I disable it?"))
        assert asked.verdict == "conflict"
        assert self.judge(ANSWER, SAME, asked) == Verdict.UNCLEAR

    @pytest.mark.parametrize(
        ("asked", "other", "stored", "fresh"),
        [
            (
                "In one short sentence, what is special about wool?",
                "In one short sentence, why is wool useful?",
                "Wool is warm even when it is wet and does not catch fire easily.",
                "Even when wet, wool keeps warm, and it hardly burns.",
            ),
            (
                "扫地机第一次开机会怎么样？",
                "扫地机最后一次开机会怎么样？",
                "它会先绕房间走一圈，把地图存下来。",
                "先绕着房间走一圈，再把地图存好。",
            ),
            (
                "什么时候可以第一次施肥？",
                "什么时候可以最后一次施肥？",
                "等长出四片叶子以后就可以了。",
                "长出四片叶子以后就行。",
            ),
        ],
    )
    def test_is_never_found_between_questions_that_differ_in_nearly_the_same_words(
        self, scope: Scope, asked: str, other: str, stored: str, fresh: str
    ) -> None:
        def read(text: str) -> Probe:
            return probe.read(scope, uuid.uuid4(), turns(text))

        a, b = learning.answer_of(stored), learning.answer_of(fresh)
        assert agreement.judge(a, b, learning.asked(read(asked), read(other))).verdict != Verdict.AGREE

    def test_what_is_said_twice_is_shared_once(self, scope: Scope) -> None:
        """A weak model repeats itself, which makes no two answers the same."""
        path = (
            "The way is a long straight way that is made of a rope around a wheel. The way is made of a rope."
        )
        reef = (
            "The rock is called the Ridge. The Ridge is a rock in the mouth of the rock. The rock is a rock."
        )
        once = [agreement.features_of(text, reef, 0.9, frozenset())["shared"] for text in (path, path + path)]
        assert once[0] == once[1] and once[0] < 3
        asked = ("How long does it take to walk it?", "Please say what the reef is called.")
        a, b = (probe.read(scope, uuid.uuid4(), turns(text)) for text in asked)
        answers = learning.answer_of(path), learning.answer_of(reef)
        assert agreement.judge(*answers, learning.asked(a, b)).verdict != Verdict.AGREE

    def test_without_vectors_only_the_same_words_agree(self) -> None:
        asked = Asked(Comparison("agree"))
        assert agreement.judge(Answer(ANSWER, None), Answer(SAME, None), asked).verdict == Verdict.UNCLEAR
        assert agreement.judge(Answer(ANSWER, None), Answer(ANSWER, None), asked).verdict == Verdict.AGREE
        short, long = np.ones(3, np.float32), np.ones(4, np.float32)
        assert agreement.judge(Answer(ANSWER, short), Answer(SAME, long), asked).verdict == Verdict.UNCLEAR


@pytest.mark.django_db(transaction=True)
def test_the_same_wording_learned_twice_at_once_is_one_row(scope: Scope) -> None:
    entry = stored(scope, QUESTION, answer=ANSWER).entry

    def learn() -> object:
        owner = Session.objects.create(pk=uuid.uuid4())
        read = probe.read(scope, owner.pk, turns(OTHERWISE))
        generation = Generation.objects.create(session=owner, scope=scope, question={}, text=SAME)
        return lifecycle.learn(read, generation, entry.pk, State.ACTIVE, Origin.NEAR, True)

    results = at_once([learn, learn, learn])
    assert len(results) == 3
    assert Wording.objects.filter(question=OTHERWISE).count() == 1


@pytest.mark.usefixtures("proof_only")
def test_every_decision_says_why(scope: Scope) -> None:
    stored(scope, QUESTION, answer=ANSWER)
    answered(scope, SAME, OTHERWISE)
    row = Decision.objects.get()
    assert (row.outcome, row.layer) == (Outcome.NEAR, "semantic")
    assert row.reason and row.near and 0 < row.scores["score"] <= 1
