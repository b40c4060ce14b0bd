"""What follows when a person takes something back, checked against the rule, not against what was
reported."""

import uuid
from functools import partial

import pytest

from inference import pipeline, service
from inference.cache import lifecycle, probe
from inference.models import (
    Cause,
    Entry,
    Generation,
    Invalidation,
    Observation,
    Origin,
    ServedBy,
    Session,
    State,
    Status,
    Verdict,
    Visibility,
    Wording,
)
from inference.understanding.turns import Turn

from .conftest import Ask, at_once, turns, work

PLAN = "Name the capital of France in one word."
NO = "No, that's wrong, I meant Spain."
# Nothing like the others, so that it stands alone after them.
ELSEWHERE = "How many legs does a spider have?"
MINE = "My name is Zoe. Is a cat an animal? Say yes or no."


class Talk:
    """One conversation, with the generations that the chat would name."""

    def __init__(self, id: uuid.UUID | None = None) -> None:
        self.id = id or uuid.uuid4()
        self.turns: list[Turn] = []
        self.generations: list[uuid.UUID | None] = []

    def queue(self, text: str, **options: object) -> Generation:
        said: list[Turn] = [*self.turns, {"role": "user", "content": text}]
        return service.ask(self.id, said, generations=[*self.generations, None], **options)

    def note(self, text: str, generation: Generation) -> Generation:
        self.turns += [
            {"role": "user", "content": text},
            {"role": "assistant", "content": generation.text},
        ]
        self.generations += [None, generation.pk]
        return generation

    def say(self, text: str, **options: object) -> Generation:
        return self.note(text, work(self.queue(text, **options)))

    def aside(self, text: str) -> Generation:
        """Asked in the same conversation, on a branch of its own."""
        return work(service.ask(self.id, turns(text)))

    @property
    def session(self) -> Session:
        return Session.objects.get(pk=self.id)

    def read(self, text: str) -> probe.Probe:
        generation = Generation.objects.filter(session=self.id).exclude(scope=None).first()
        assert generation is not None and generation.scope is not None
        return probe.read(generation.scope, self.id, [*self.turns, {"role": "user", "content": text}])


def blocked(talk: Talk) -> set[uuid.UUID]:
    return set(talk.session.blocked.values_list("pk", flat=True))


class TestACorrection:
    def test_private_entries_are_frozen_and_the_epoch_rises(self, ask: Ask) -> None:
        talk = Talk()
        kept = talk.aside(MINE).entry
        assert kept is not None and kept.visibility == Visibility.SESSION
        talk.say(PLAN)
        after = talk.say(NO)
        kept.refresh_from_db()
        assert (kept.state, talk.session.epoch, after.epoch) == (State.FROZEN, 1, 1)
        assert ask(MINE, session=talk.id).served_by == ServedBy.MODEL

    def test_it_happens_before_the_lookup_of_the_same_message(self) -> None:
        talk = Talk()
        talk.aside(MINE)
        talk.say(PLAN)
        generation = talk.queue(NO)
        pipeline._heed(generation)
        assert talk.session.epoch == generation.epoch == 1
        assert (
            not Wording.objects.servable(generation.scope_id or 0, talk.id).filter(session=talk.id).exists()
        )

    def test_shared_entries_of_the_taken_back_turns_serve_others_but_grow_no_more(self, ask: Ask) -> None:
        talk = Talk()
        born = talk.say(PLAN).entry
        talk.say(NO)
        born.refresh_from_db()
        assert (born.visibility, born.read_only, born.state) == (Visibility.SHARED, True, State.SUSPECT)
        until = born.expires_at
        other = ask(PLAN)
        assert (other.served_by, other.entry_id) == (ServedBy.EXACT, born.pk)
        born.refresh_from_db()
        assert born.expires_at == until
        elsewhere = Talk()
        generation = elsewhere.queue("Which city is the capital of France?")
        pipeline._understand(generation)
        taken = lifecycle.learn(
            elsewhere_read(generation), generation, born.pk, State.ACTIVE, Origin.NEAR, shared=True
        )
        assert taken is None and born.wordings.count() == 1
        assert ask(PLAN, session=talk.id).served_by == ServedBy.MODEL, "this conversation has moved on"

    def test_what_was_born_in_another_topic_is_left_alone(self) -> None:
        talk = Talk()
        other = talk.say("What is the boiling point of water in degrees Celsius?").entry
        talk.say(PLAN)
        talk.say(NO)
        other.refresh_from_db()
        assert not other.read_only and other.pk not in blocked(talk)

    def test_the_pairing_that_served_it_is_doubted_and_its_entry_blocked_here(self, ask: Ask) -> None:
        first = ask(PLAN)
        talk = Talk()
        hit = talk.say(PLAN)
        assert hit.served_by == ServedBy.EXACT
        talk.say(NO)
        pairing = Wording.objects.get(pk=first.wording_id)
        assert (pairing.state, pairing.disagreed) == (State.SUSPECT, 1)
        observed = Observation.objects.get(wording=pairing)
        assert (observed.source, observed.verdict, observed.generation_id) == (
            "correction", Verdict.DISAGREE, hit.pk,
        )  # fmt: skip
        assert first.entry_id in blocked(talk)
        assert ask(PLAN).served_by == ServedBy.MODEL, "a doubted pairing serves nobody"

    def test_a_second_session_that_corrects_the_same_pairing_rejects_it(self, ask: Ask) -> None:
        pairing = ask(PLAN).wording
        talks = [Talk(), Talk()]
        assert [talk.say(PLAN).served_by for talk in talks] == [ServedBy.EXACT] * 2
        for talk in talks:
            talk.say(NO)
        pairing.refresh_from_db()
        assert (pairing.state, pairing.disagreed) == (State.REJECTED, 2)
        fresh = ask(PLAN)
        assert (fresh.served_by, fresh.entry_id) == (ServedBy.MODEL, None), "it is not admitted again"

    def test_the_same_session_twice_does_not_reject_it(self, ask: Ask) -> None:
        pairing = ask(PLAN).wording
        talk = Talk()
        for _ in range(2):
            hit = talk.say(PLAN)
            Generation.objects.filter(pk=hit.pk).update(
                wording=pairing, entry=pairing.entry, served_by=ServedBy.EXACT
            )
            talk.say(NO)
        pairing.refresh_from_db()
        assert pairing.state == State.SUSPECT

    def test_corrections_through_several_wordings_doubt_the_entry(self, ask: Ask) -> None:
        entry = ask(PLAN).entry
        Entry.objects.update(state=State.ACTIVE)
        other = "Which city is the capital of France, in one word?"
        second = Talk()
        asked = second.queue(other)
        question = pipeline._understand(asked)
        assert lifecycle.learn(question.probe, asked, entry.pk, State.ACTIVE, Origin.NEAR, shared=True)
        for text in (PLAN, other):
            talk = Talk()
            assert talk.say(text).entry_id == entry.pk
            entry.refresh_from_db()
            assert entry.state == State.ACTIVE
            done = talk.say(NO)
        entry.refresh_from_db()
        assert entry.state == State.SUSPECT
        assert service.undo_correction(Invalidation.objects.get(generation=done).pk)
        entry.refresh_from_db()
        assert entry.state == State.ACTIVE

    def test_a_message_that_takes_nothing_back_changes_nothing(self) -> None:
        talk = Talk()
        kept = talk.aside(MINE).entry
        talk.say(PLAN)
        talk.say("Thanks! And what is the capital of Italy?")
        kept.refresh_from_db()
        assert (kept.state, talk.session.epoch) == (State.SUSPECT, 0)
        assert not Invalidation.objects.exists()

    def test_traditional_characters_are_read_like_simplified_ones(self) -> None:
        talk = Talk()
        talk.say("法國的首都是哪裡？請用一個詞回答。")
        talk.say("不對，我說的是西班牙。")
        assert Invalidation.objects.get().cause == Cause.CORRECTION

    def test_a_task_that_runs_twice_takes_back_once(self) -> None:
        talk = Talk()
        talk.say(PLAN)
        generation = talk.queue(NO)
        pipeline._heed(generation)
        pipeline._heed(Generation.objects.get(pk=generation.pk))
        assert (talk.session.epoch, Invalidation.objects.count()) == (1, 1)

    def test_a_message_is_heeded_before_those_that_came_after_it_are_looked_up(self, ask: Ask) -> None:
        """Two workers: the later message's may be the faster one."""
        talk = Talk()
        talk.aside(MINE)
        talk.say(PLAN)
        slow = talk.queue(NO)
        after = ask(MINE, session=talk.id)
        assert after.served_by == ServedBy.MODEL
        assert Invalidation.objects.get().generation_id == slow.pk

    def test_without_a_place_to_note_it_nothing_stored_is_served(
        self, ask: Ask, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from django.db import DatabaseError

        def fail(*_: object, **__: object) -> None:
            raise DatabaseError("gone")

        ask(PLAN)
        monkeypatch.setattr(Session.objects, "select_for_update", fail)
        talk = Talk()
        generation = talk.queue(PLAN)
        assert pipeline._heed(generation), "nothing to note"
        talk.note(PLAN, work(generation))
        assert not pipeline._heed(talk.queue(NO))
        question = pipeline._understand(generation, heeded=False)
        assert pipeline._look_up(generation, question).served is None


def elsewhere_read(generation: Generation) -> probe.Probe:
    return probe.read(generation.scope, generation.session_id, generation.question["turns"])


class TestUndo:
    def test_all_of_it_is_taken_back(self, ask: Ask) -> None:
        first = ask(ELSEWHERE)
        talk = Talk()
        kept = talk.aside(MINE)
        born = talk.say(PLAN).entry
        hit = talk.say(ELSEWHERE)
        assert hit.entry_id == first.entry_id
        said = talk.say(NO)
        done = Invalidation.objects.get()
        assert service.undo_correction(done.pk)
        assert Entry.objects.get(pk=kept.entry_id).state == State.SUSPECT
        assert Entry.objects.filter(read_only=True).count() == 0
        assert blocked(talk) == set()
        assert Wording.objects.get(pk=first.wording_id).state == State.ACTIVE
        assert ask(MINE, session=talk.id).served_by == ServedBy.EXACT
        assert ask(PLAN, session=talk.id).entry_id == born.pk
        assert Observation.objects.filter(source="undo", generation=said).count() == 1
        assert not Observation.objects.filter(source="correction", verdict=Verdict.DISAGREE).exists()

    def test_twice_is_once(self) -> None:
        talk = Talk()
        talk.say(PLAN)
        talk.say(NO)
        done = Invalidation.objects.get()
        assert service.undo_correction(done.pk)
        assert not service.undo_correction(done.pk)

    def test_what_a_later_correction_stands_for_stays_frozen(self) -> None:
        talk = Talk()
        kept = talk.aside(MINE).entry
        talk.say(PLAN)
        talk.say(NO)
        talk.say("Sorry, that is wrong too. I meant Portugal.")
        earlier, later = Invalidation.objects.order_by("pk")
        service.undo_correction(earlier.pk)
        kept.refresh_from_db()
        assert kept.state == State.FROZEN
        service.undo_correction(later.pk)
        kept.refresh_from_db()
        assert (kept.state, kept.epoch) == (State.SUSPECT, 2)

    def test_a_rejection_by_two_is_none_any_longer(self, ask: Ask) -> None:
        pairing = ask(PLAN).wording
        talks = [Talk(), Talk()]
        for talk in talks:
            talk.say(PLAN)
        for talk in talks:
            talk.say(NO)
        done = Invalidation.objects.filter(session=talks[0].id).get()
        service.undo_correction(done.pk)
        pairing.refresh_from_db()
        assert (pairing.state, pairing.disagreed) == (State.SUSPECT, 1)

    def test_a_pairing_that_a_fresh_answer_refuted_stays_rejected(self, ask: Ask) -> None:
        pairing = ask(PLAN).wording
        talks = [Talk(), Talk()]
        hits = [talk.say(PLAN) for talk in talks]
        for talk in talks:
            talk.say(NO)
        Observation.objects.create(
            generation=hits[0], source="near", verdict=Verdict.DISAGREE, wording=pairing
        )
        for done in Invalidation.objects.all():
            service.undo_correction(done.pk)
        pairing.refresh_from_db()
        assert pairing.state == State.REJECTED

    def test_the_message_is_no_correction_for_what_is_asked_later(self) -> None:
        talk = Talk()
        talk.say("How do we carry out plan A?")
        talk.say("Plan A is off, we go with plan B.")
        asked = talk.queue("Then carry out the plan.")
        pipeline._heed(asked)
        before = pipeline._understand(asked).probe
        assert before.context.corrections and before.prints.corrected
        service.undo_correction(Invalidation.objects.get().pk)
        after = pipeline._understand(asked).probe
        assert not after.context.corrections and after.exact_key != before.exact_key


class TestOtherCauses:
    def test_editing_a_question(self) -> None:
        talk = Talk()
        kept = talk.aside(MINE)
        born = talk.say(PLAN)
        edited = service.ask(
            talk.id,
            turns("Name the capital of Spain in one word."),
            instead_of=[born.pk],
        )
        done = Invalidation.objects.get()
        assert (done.cause, done.generation_id) == (Cause.EDIT, edited.pk)
        assert Entry.objects.get(pk=kept.entry_id).state == State.FROZEN
        assert Entry.objects.get(pk=born.entry_id).read_only
        assert blocked(talk) == {born.entry_id}
        assert talk.session.epoch == edited.epoch == 1
        assert not Observation.objects.exists(), "nobody said that the answer was wrong"
        assert work(edited).entry is not None, "the new one is stored"

    def test_answering_anew(self, ask: Ask) -> None:
        first = ask(PLAN)
        talk = Talk()
        hit = talk.say(PLAN)
        again = service.ask(talk.id, turns(PLAN), fresh=True, instead_of=[hit.pk])
        assert blocked(talk) == {first.entry_id} and talk.session.epoch == 0
        assert work(again).served_by == ServedBy.MODEL
        observed = Observation.objects.get()
        assert (observed.source, observed.verdict) == ("regenerate", Verdict.DISAGREE)
        assert ask(PLAN, session=talk.id).served_by == ServedBy.MODEL
        assert ask(PLAN).served_by == ServedBy.EXACT, "nobody else is concerned"

    def test_a_thumb_down_and_taking_it_back(self, ask: Ask) -> None:
        first = ask(PLAN)
        talk = Talk()
        hit = talk.say(PLAN)
        for _ in range(2):
            service.feedback(hit.pk, Verdict.DISAGREE)
        assert Wording.objects.get(pk=first.wording_id).state == State.SUSPECT
        assert blocked(talk) == {first.entry_id}
        service.feedback(hit.pk, Verdict.AGREE)
        assert Wording.objects.get(pk=first.wording_id).state == State.ACTIVE
        assert blocked(talk) == set()
        service.feedback(hit.pk, Verdict.DISAGREE)
        service.feedback(hit.pk, None)
        assert blocked(talk) == set() and not Observation.objects.exists()
        assert talk.session.epoch == 0


class TestInFlight:
    def test_an_answer_whose_premise_was_corrected_is_read_but_not_stored(self) -> None:
        talk = Talk()
        talk.aside(MINE)
        slow = talk.queue(PLAN)
        pipeline.answer(str(slow.pk))
        talk.turns += [{"role": "user", "content": PLAN}, {"role": "assistant", "content": "Paris."}]
        talk.generations += [None, None]
        after = talk.say(NO)
        pipeline.generate(str(slow.pk))
        slow.refresh_from_db()
        assert (slow.status, bool(slow.text), slow.entry) == (Status.COMPLETE, True, None)
        assert not Wording.objects.filter(question=PLAN).exists()
        assert Wording.objects.filter(question=NO).exists() == (after.finish_reason == "stop")

    @pytest.mark.django_db(transaction=True)
    def test_a_correction_while_the_same_session_is_being_looked_up(self, ask: Ask) -> None:
        """Whichever comes first: afterwards nothing of the old epoch is served, proved or stored here."""
        for _ in range(4):
            talk = Talk()
            kept = talk.aside(MINE).entry
            talk.say(PLAN)
            looked_up = service.ask(talk.id, turns(MINE))
            correction = talk.queue(NO)
            at_once([partial(work, looked_up), partial(work, correction)])
            kept.refresh_from_db()
            assert (kept.state, talk.session.epoch) == (State.FROZEN, 1)
            looked_up.refresh_from_db()
            assert looked_up.status == Status.COMPLETE
            read = talk.read(MINE)
            served = Wording.objects.servable(read.scope.pk, talk.id)
            assert (
                not served.filter(entry__session=talk.id, visibility=Visibility.SESSION)
                .filter(created_at__lt=Invalidation.objects.get(session=talk.id).created_at)
                .exists()
            )

    @pytest.mark.django_db(transaction=True)
    def test_two_corrections_at_once(self) -> None:
        talk = Talk()
        kept = talk.aside(MINE).entry
        born = talk.say(PLAN).entry
        both = [talk.queue(NO), talk.queue("That's wrong, I meant Portugal.")]
        at_once([partial(pipeline._heed, generation) for generation in both])
        kept.refresh_from_db()
        born.refresh_from_db()
        assert (kept.state, born.read_only, talk.session.epoch) == (State.FROZEN, True, 2)
        epochs = sorted(
            Generation.objects.filter(pk__in=[one.pk for one in both]).values_list("epoch", flat=True)
        )
        assert epochs == [1, 2], "only the later one's answer may be stored"
        done = list(Invalidation.objects.order_by("epoch"))
        assert [str(kept.pk) in one.frozen for one in done] == [True, False]
        for one in done:
            service.undo_correction(one.pk)
        kept.refresh_from_db()
        born.refresh_from_db()
        assert (kept.state, born.read_only, blocked(talk)) == (State.SUSPECT, False, set())
