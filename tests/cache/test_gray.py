"""Doubtful answers are asked for anew in the background, and what comes of it; on the real database, Valkey
and engine."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from cacheadmin import review
from inference import pipeline, service, versions, workers
from inference.cache import behaviour, gray, learning, lifecycle, probe, reuse, standing
from inference.cache.decision import Decided
from inference.cache.lookup import Found
from inference.cache.standing import HINTS, Witness
from inference.models import (
    Check,
    Decision,
    Entry,
    Generation,
    Observation,
    Origin,
    Outcome,
    ServedBy,
    Session,
    State,
    Status,
    Verdict,
    Wording,
)
from inference.redis import client
from inference.understanding.cacheability import classify

from .conftest import Ask, turns
from .test_invalidation import NO, PLAN, Talk

CAPITAL = "What is the capital of France?"
OTHERWISE = "Which city is France's capital?"


@pytest.fixture(autouse=True)
def _generous(settings) -> None:
    settings.OBSERVE_PER_MINUTE = 1_000
    settings.OBSERVE_SHARE = 0.0


def paired(generation: Generation, question: str, state: State = State.SUSPECT) -> Wording:
    """`question` is paired with the entry that `generation` was answered with."""
    owner = Session.objects.create(pk=uuid.uuid4())
    read = probe.read(generation.scope, owner.pk, turns(question))
    asked = Generation.objects.create(
        session=owner, scope=generation.scope, question={"turns": turns(question)}
    )
    wording = lifecycle.learn(read, asked, generation.entry_id, state, Origin.HIT, True)
    assert wording is not None
    return wording


def said(wording: Wording, source: str, verdict: Verdict) -> State:
    """A verdict on it, in a conversation of its own."""
    owner = Session.objects.create(pk=uuid.uuid4())
    generation = Generation.objects.create(session=owner, scope=wording.scope, question={"turns": turns("?")})
    lifecycle.observe(generation.pk, Witness(source), verdict, wording)
    return State(Wording.objects.values_list("state", flat=True).get(pk=wording.pk))


class TestACheck:
    def test_a_hit_on_a_new_entry_is_asked_anew_and_compared(self, ask: Ask) -> None:
        first = ask(CAPITAL)
        hit = ask(CAPITAL)
        check = Check.objects.get()
        assert (check.generation, check.wording) == (hit, first.wording)
        before = Generation.objects.count()
        assert gray.observe(check.pk).verdict == Verdict.AGREE
        seen = Observation.objects.get(source=Witness.GRAY)
        assert (seen.generation, seen.wording, seen.verdict) == (hit, first.wording, Verdict.AGREE)
        assert seen.reasons and seen.fresh == first.text
        assert not Check.objects.exists()
        assert Generation.objects.count() == before, "nobody's chat, and no figure, holds it"
        assert Entry.objects.count() == Wording.objects.count() == 1
        assert Decision.objects.count() == 2

    def test_a_miss_and_a_bypass_leave_none(self, ask: Ask) -> None:
        ask(CAPITAL)
        ask(CAPITAL, fresh=True)
        ask("Write me a poem about the sea.")
        assert not Check.objects.exists()

    def test_of_what_is_proved_a_share_is_checked(self, ask: Ask, settings) -> None:
        ask(CAPITAL)
        Entry.objects.update(state=State.ACTIVE)
        ask(CAPITAL)
        assert not Check.objects.exists()
        settings.OBSERVE_SHARE = 1.0
        ask(CAPITAL)
        assert Check.objects.count() == 1

    def test_one_at_a_time_for_each_pairing(self, ask: Ask) -> None:
        for _ in range(3):
            ask(CAPITAL)
        assert Check.objects.count() == 1

    def test_the_budget_of_a_minute_is_shared_by_all_workers(self, ask: Ask, settings) -> None:
        """It lies in Valkey: what another process has taken is gone here too."""
        settings.OBSERVE_PER_MINUTE = 2
        hit = ask(CAPITAL)
        pairings = [paired(hit, f"What is the capital of France, number {n}?") for n in range(4)]
        found = Found(hit.wording_id, hit.entry_id, hit.text, "fact", False)
        client().incr(gray._budget())
        left = [gray.watch(hit, pairing, found) for pairing in pairings]
        assert [check is not None for check in left] == [True, False, False, False]
        assert Check.objects.count() == 1
        settings.OBSERVE_PER_MINUTE = 0
        Check.objects.all().delete()
        client().delete(gray._budget())
        assert gray.watch(hit, pairings[0], found) is None

    def test_done_twice_counts_once(self, ask: Ask) -> None:
        ask(CAPITAL)
        ask(CAPITAL)
        check = Check.objects.get()
        assert gray.observe(check.pk) is not None
        assert gray.observe(check.pk) is None
        assert Observation.objects.count() == 1

    def test_a_pairing_served_for_its_likeness_is_what_is_checked(self, ask: Ask) -> None:
        first = ask(CAPITAL)
        generation = Generation.objects.create(
            session=Session.objects.create(pk=uuid.uuid4()),
            scope=first.scope,
            question={"turns": turns(OTHERWISE)},
        )
        question = pipeline._understand(generation)
        found = Found(first.wording_id, first.entry_id, first.text, "fact", True)
        decided = Decided(Outcome.GRAY, "semantic", "alike", found)
        pipeline._keep_books(generation, question, decided, found)
        own = Wording.objects.get(question=OTHERWISE)
        assert Check.objects.get().wording == own != first.wording


class TestPeopleFirst:
    def test_it_does_not_begin_while_somebody_waits(self, ask: Ask, queue: Ask) -> None:
        ask(CAPITAL)
        ask(CAPITAL)
        check = Check.objects.get()
        waiting = queue("What is the capital of Spain?")
        pipeline.answer(str(waiting.pk))
        assert gray.observe(check.pk) is None and gray.send_waiting() == 0
        check.refresh_from_db()
        assert (check.claimed_by, check.tries) == ("", 0)
        pipeline.generate(str(waiting.pk))
        assert gray.observe(check.pk) is not None

    def test_it_does_not_begin_while_this_process_writes_for_somebody(self, ask: Ask, settings) -> None:
        ask(CAPITAL)
        hit = ask(CAPITAL)
        Generation.objects.create(
            session=hit.session, question={}, status=Status.RUNNING, looked_up=True, claimed_by=workers.name()
        )
        assert gray.observe(Check.objects.get().pk) is None
        settings.OBSERVE_BESIDE = 1
        assert gray.observe(Check.objects.get().pk) is not None

    def test_it_gives_way_to_whoever_comes_while_it_runs(
        self, ask: Ask, queue: Ask, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The real engine is writing when somebody asks: it stops within a token, and the check waits."""
        ask(CAPITAL)
        ask(CAPITAL)
        check = Check.objects.get()
        looks = 0

        class Interrupted(gray._Interruption):
            def __call__(self) -> bool:
                nonlocal looks
                looks += 1
                if looks == 3:
                    pipeline.answer(str(queue("What is the capital of Spain?").pk))
                    self._looked_at = float("-inf")
                return super().__call__()

        monkeypatch.setattr(gray, "_Interruption", Interrupted)
        assert gray.observe(check.pk) is None
        check.refresh_from_db()
        assert (check.claimed_by, check.tries) == ("", 1)
        assert not Observation.objects.exists() and looks < 6

    def test_what_had_to_wait_is_sent_again_and_at_last_dropped(self, ask: Ask, settings) -> None:
        ask(CAPITAL)
        ask(CAPITAL)
        assert gray.send_waiting() == 0, "its first task is still on its way"
        Check.objects.update(created_at=timezone.now() - 2 * gray._WAITS / 3)
        assert gray.send_waiting() == 1
        Check.objects.update(created_at=timezone.now() - 2 * gray._WAITS)
        assert gray.send_waiting() == 0 and not Check.objects.exists()

    def test_it_is_no_question_that_waits(self, ask: Ask) -> None:
        from inference import dispatch

        ask(CAPITAL)
        ask(CAPITAL)
        assert Check.objects.exists() and not dispatch.is_anyone_waiting() and not dispatch.is_full()


class TestWhatChangedMeanwhile:
    """A check that runs while something changes writes nothing."""

    @pytest.fixture
    def checked(self, ask: Ask) -> Iterator[tuple[Check, gray._Fresh]]:
        ask(CAPITAL)
        ask(CAPITAL)
        check = gray._claim(Check.objects.get().pk)
        assert check is not None
        fresh = gray._ask(check)
        assert fresh is not None
        yield check, fresh

    def concludes(self, checked: tuple[Check, gray._Fresh]) -> bool:
        done = gray._conclude(*checked) is not None
        assert Observation.objects.exists() == done and not Check.objects.exists()
        return done

    def test_nothing(self, checked: tuple[Check, gray._Fresh]) -> None:
        assert self.concludes(checked)

    def test_the_version(self, checked: tuple[Check, gray._Fresh]) -> None:
        versions.bump("2")
        assert not self.concludes(checked)

    def test_the_session_was_corrected(self, checked: tuple[Check, gray._Fresh]) -> None:
        lifecycle.raise_epoch(checked[0].generation.session)
        assert not self.concludes(checked)

    def test_the_conversation_was_deleted(self, checked: tuple[Check, gray._Fresh]) -> None:
        service.forget_session(checked[0].generation.session_id)
        assert not self.concludes(checked)

    def test_the_entry_was_deleted(self, checked: tuple[Check, gray._Fresh]) -> None:
        Entry.objects.all().delete()
        assert not self.concludes(checked)

    @pytest.mark.parametrize("state", [State.FROZEN, State.REJECTED])
    def test_the_entry_is_over(self, checked: tuple[Check, gray._Fresh], state: State) -> None:
        Entry.objects.update(state=state)
        assert not self.concludes(checked)

    def test_the_answer_was_edited(self, checked: tuple[Check, gray._Fresh], monkeypatch) -> None:
        judged = gray.compare

        def edited(*args: object) -> object:
            Entry.objects.update(answer="Another one.")
            return judged(*args)

        monkeypatch.setattr(gray, "compare", edited)
        assert not self.concludes(checked)

    def test_an_answer_that_was_cut_proves_nothing(self, checked: tuple[Check, gray._Fresh]) -> None:
        check, fresh = checked
        assert not self.concludes((check, replace(fresh, usable=False)))


class TestStates:
    def test_agreement_proves_a_pairing_and_its_entry(self, ask: Ask) -> None:
        wording = paired(ask(CAPITAL), OTHERWISE)
        states = [said(wording, "gray", Verdict.AGREE) for _ in range(3)]
        assert states == [State.SUSPECT, State.SUSPECT, State.ACTIVE]
        entry = Entry.objects.get()
        assert (entry.state, entry.agreed, entry.disagreed) == (State.ACTIVE, 3, 0)

    def test_the_least_number_of_verdicts_and_the_target_are_settings(self, ask: Ask, settings) -> None:
        settings.OBSERVATIONS_LEAST = 5
        wording = paired(ask(CAPITAL), OTHERWISE)
        states = [said(wording, "gray", Verdict.AGREE) for _ in range(5)]
        assert states == [State.SUSPECT] * 4 + [State.ACTIVE]
        settings.AGREEMENT_TARGETS = {"fact": 0.99}
        other = paired(ask("What is the capital of Spain?"), "Which city is Spain's capital?")
        assert [said(other, "gray", Verdict.AGREE) for _ in range(8)][-1] == State.SUSPECT

    def test_disagreement_demotes_and_then_rejects(self, ask: Ask) -> None:
        first = ask(CAPITAL)
        assert said(first.wording, "gray", Verdict.DISAGREE) == State.SUSPECT
        assert ask(CAPITAL).served_by == ServedBy.MODEL
        assert said(first.wording, "gray", Verdict.DISAGREE) == State.REJECTED
        assert Entry.objects.get(pk=first.entry_id).state == State.REJECTED, (
            "it is refuted by its own question"
        )

    def test_what_many_agree_on_outlives_one_mistake(self, ask: Ask) -> None:
        first = ask(CAPITAL)
        for _ in range(8):
            said(first.wording, "gray", Verdict.AGREE)
        assert said(first.wording, "gray", Verdict.DISAGREE) == State.ACTIVE

    def test_a_rejected_pairing_of_another_question_leaves_the_entry_alone(self, ask: Ask) -> None:
        first = ask(CAPITAL)
        wording = paired(first, "What is the largest city of France?")
        for _ in range(2):
            said(wording, "gray", Verdict.DISAGREE)
        assert Wording.objects.get(pk=wording.pk).state == State.REJECTED
        assert ask(CAPITAL).served_by == ServedBy.EXACT

    def test_several_pairings_spoken_against_put_the_entry_in_doubt_and_it_is_not_served(
        self, ask: Ask
    ) -> None:
        first = ask(CAPITAL)
        third = paired(first, "Name France's capital city.", State.ACTIVE)
        for question in (OTHERWISE, "Where does France have its capital?"):
            said(paired(first, question), "correction", Verdict.DISAGREE)
        entry = Entry.objects.get(pk=first.entry_id)
        assert (entry.state, entry.disagreed) == (State.SUSPECT, 2) and lifecycle.is_doubted(entry)
        assert third.state == State.ACTIVE
        assert ask("Name France's capital city.").entry_id != entry.pk
        assert ask(CAPITAL).served_by == ServedBy.MODEL

    def test_corrections_by_people_through_several_wordings(self, ask: Ask) -> None:
        """The same over the real path: two conversations, two wordings, each corrected by who asked."""
        first = ask(PLAN)
        other = "Which city is the capital of France, in one word?"
        paired(first, other, State.ACTIVE)
        Observation.objects.create(
            generation=first,
            wording=Wording.objects.get(question=other),
            source="near",
            verdict=Verdict.AGREE,
        )
        for text in (PLAN, other):
            talk = Talk()
            assert talk.say(text).entry_id == first.entry_id
            talk.say(NO)
        entry = Entry.objects.get(pk=first.entry_id)
        assert lifecycle.is_doubted(entry)

    def test_unclear_waits_for_people_with_its_reasons(self, ask: Ask) -> None:
        wording = paired(ask(CAPITAL), OTHERWISE)
        owner = Session.objects.create(pk=uuid.uuid4())
        generation = Generation.objects.create(session=owner, scope=wording.scope, question={})
        lifecycle.observe(
            generation.pk,
            Witness.GRAY,
            Verdict.UNCLEAR,
            wording,
            reasons=["alike to 0.9"],
            fresh="Paris it is.",
        )
        waiting = review.waiting().get()
        assert (waiting.pk, waiting.state) == (wording.pk, State.SUSPECT)
        seen = waiting.observations.get()
        assert (seen.reasons, seen.fresh) == (["alike to 0.9"], "Paris it is.")

    def test_a_fresh_answer_that_a_doubt_makes_necessary_is_evidence_too(self, ask: Ask) -> None:
        first = ask(CAPITAL)
        said(first.wording, "gray", Verdict.DISAGREE)
        Entry.objects.update(answer="Paris is the capital of France.", answer_vector=None)
        Entry.objects.update(answer_vector=learning.answer_of("Paris is the capital of France.").vector)
        again = ask(CAPITAL)
        seen = Observation.objects.get(generation=again)
        assert (seen.source, seen.wording_id) == ("near", first.wording_id)


class TestServingSuspects:
    def decided(self, proved: bool, outcome: Outcome = Outcome.HIT) -> Decided:
        found = Found(uuid.uuid4(), uuid.uuid4(), "An answer.", "fact", proved)
        return Decided(outcome, "semantic", "alike", found)

    @pytest.mark.parametrize("way", ["serve", "withhold", "rewrite"])
    def test_what_is_proved_is_served_in_every_class(self, settings, way: str) -> None:
        settings.SUSPECTS = {"fact": way}
        decided = self.decided(True)
        assert reuse.withheld(decided) == decided and not reuse.is_rewritten(decided)

    @pytest.mark.parametrize(("proved", "outcome"), [(False, Outcome.HIT), (True, Outcome.GRAY)])
    def test_by_class(self, settings, proved: bool, outcome: Outcome) -> None:
        decided = self.decided(proved, outcome)
        assert reuse.withheld(decided).served
        settings.SUSPECTS = {"fact": "rewrite"}
        assert reuse.is_rewritten(decided) and reuse.withheld(decided).served
        settings.SUSPECTS = {"": "withhold", "code": "serve"}
        withheld = reuse.withheld(decided)
        assert withheld.outcome == Outcome.NEAR and withheld.near == (decided.found,)
        assert not withheld.served and "withheld" in withheld.reason
        settings.SUSPECTS = {"": "withhold", "fact": "serve"}
        assert reuse.withheld(decided) == decided

    def test_what_is_withheld_is_proved_by_the_answers_that_people_get_instead(
        self, ask: Ask, settings
    ) -> None:
        settings.SUSPECTS = {"fact": "withhold"}
        assert classify(turns(CAPITAL)).content_class == "fact"
        first = ask(CAPITAL)
        got = [ask(CAPITAL).served_by for _ in range(4)]
        assert got == [ServedBy.MODEL] * 3 + [ServedBy.EXACT]
        entry = Entry.objects.get(pk=first.entry_id)
        assert (entry.state, Entry.objects.count()) == (State.ACTIVE, 1)

    def test_one_to_be_rewritten_is_the_model_s_to_word(self, ask: Ask, settings) -> None:
        first = ask(CAPITAL)
        paired(first, OTHERWISE, State.ACTIVE)
        settings.SUSPECTS = {"fact": "rewrite"}
        done = ask(OTHERWISE)
        assert (done.served_by, done.reuse, done.entry_id) == (ServedBy.MODEL, "rewrite", first.entry_id)
        assert ask(CAPITAL).served_by == ServedBy.EXACT, "in its own words it fits as it is"


class TestBehaviour:
    def sources(self) -> list[tuple[str, str]]:
        return list(Observation.objects.order_by("pk").values_list("source", "verdict"))

    def test_an_untroubled_continuation_speaks_for_the_answer(self, ask: Ask) -> None:
        ask(CAPITAL)
        talk = Talk()
        hit = talk.say(CAPITAL)
        talk.say("And how long is the river Nile?")
        seen = Observation.objects.get()
        assert (seen.source, seen.verdict, seen.generation_id) == ("continued", Verdict.AGREE, hit.pk)

    def test_a_rephrased_repeat_within_two_turns_speaks_against_it(self, ask: Ask) -> None:
        ask(CAPITAL)
        talk = Talk()
        hit = talk.say(CAPITAL)
        talk.say("How long is the river Nile?")
        talk.say("what is the capital city of France please?")
        seen = Observation.objects.get(source="repeat")
        assert (seen.verdict, seen.generation_id) == (Verdict.DISAGREE, hit.pk)

    def test_the_same_words_again_say_nothing(self, ask: Ask) -> None:
        ask(CAPITAL)
        talk = Talk()
        talk.say(CAPITAL)
        talk.say(CAPITAL)
        assert not HINTS & {source for source, _ in self.sources()}

    def test_a_correction_is_no_continuation(self, ask: Ask) -> None:
        ask(PLAN)
        talk = Talk()
        talk.say(PLAN)
        talk.say(NO)
        assert self.sources() == [("correction", "disagree")]

    def test_an_edit_counts_only_at_once(self, ask: Ask) -> None:
        ask(PLAN)
        for age, expected in ((0, [("edit", "disagree")]), (3600, [])):
            Observation.objects.all().delete()
            talk = Talk()
            hit = talk.say(PLAN)
            Generation.objects.filter(pk=hit.pk).update(finished_at=timezone.now() - timedelta(seconds=age))
            assert behaviour.was_at_once(hit.pk) == (age == 0)
            service.ask(talk.id, turns("Name the capital of Spain in one word."), instead_of=[hit.pk])
            assert self.sources() == expected

    def test_a_hint_is_no_doubt_but_two_are(self, ask: Ask) -> None:
        wording = ask(CAPITAL).wording
        assert said(wording, "regenerate", Verdict.DISAGREE) == State.ACTIVE
        assert said(wording, "edit", Verdict.DISAGREE) == State.SUSPECT

    def test_one_person_is_heard_once(self) -> None:
        mine, other = uuid.uuid4(), uuid.uuid4()
        given = [
            standing.Given("user", "disagree", mine),
            standing.Given("regenerate", "disagree", mine),
            standing.Given("continued", "agree", mine),
            standing.Given("user", "agree", other),
            standing.Given("gray", "agree", mine),
        ]
        assert standing.tally(given) == standing.Tally(2.0, 1.0, 3)

    def test_every_source_has_a_weight_and_every_hint_weighs_less_than_a_verdict(self) -> None:
        assert set(standing.WEIGHTS) == set(Witness)
        assert all(max(standing.WEIGHTS[one]) < 1 for one in standing.HINTS)
