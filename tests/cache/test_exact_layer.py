"""The same question in the same context is answered from what was stored; nothing else is."""

import uuid
from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from inference import claims, compute, pipeline, service, stream
from inference.cache import lifecycle, probe
from inference.engines.base import Finished
from inference.models import (
    Decision,
    Entry,
    Generation,
    Outcome,
    ServedBy,
    Session,
    State,
    Status,
    Verdict,
    Wording,
)
from inference.understanding.cacheability import classify

from .conftest import Ask, at_once, turns, work

CAPITAL = "What is the capital of France?"


def test_asked_again_by_someone_else_it_comes_from_the_cache(ask: Ask) -> None:
    first, second = ask(CAPITAL), ask("what is the  capital of france")
    assert (first.status, first.served_by) == (Status.COMPLETE, ServedBy.MODEL)
    assert (second.status, second.served_by) == (Status.COMPLETE, ServedBy.EXACT)
    assert second.text == first.text != ""
    assert second.entry_id == first.entry_id is not None
    entry = Entry.objects.get()
    assert (entry.hits, entry.state, entry.visibility) == (1, State.SUSPECT, "shared")
    wording = Wording.objects.get()
    assert (wording.state, wording.question, wording.hits) == (State.ACTIVE, CAPITAL, 1)
    hit = Decision.objects.get(generation=second)
    assert (hit.layer, hit.outcome, hit.wording) == ("exact", Outcome.HIT, wording) and hit.reason


def test_the_same_words_after_another_history_are_another_question(ask: Ask) -> None:
    ask("Name a colour.", "Red.", "Why that one?")
    assert ask("Name a colour.", "Blue.", "Why that one?").served_by == ServedBy.MODEL
    assert ask("Why that one?").served_by == ServedBy.MODEL
    assert ask("Name a colour.", "Red.", "Why that one?").served_by == ServedBy.EXACT


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SYSTEM_PROMPT", "Answer like a pirate."),
        ("KNOWLEDGE_VERSION", "2"),
        ("APP_NAME", "another"),
        ("TEMPERATURE", 0.1),
        ("MAX_TOKENS", 40),
    ],
)
def test_another_scope_is_another_world(ask: Ask, settings, name: str, value: object) -> None:
    first = ask(CAPITAL)
    setattr(settings, name, value)
    second = ask(CAPITAL)
    assert second.served_by == ServedBy.MODEL
    assert second.scope_id != first.scope_id


def test_personal_answers_stay_in_their_session(ask: Ask) -> None:
    mine = uuid.uuid4()
    question = "My name is Zoe. What is the capital of France?"
    assert ask(question, session=mine).entry.visibility == "session"
    assert ask(question).served_by == ServedBy.MODEL
    assert ask(question, session=mine).served_by == ServedBy.EXACT


def test_a_personal_wording_is_not_reached_through_a_shared_entry(ask: Ask) -> None:
    """Visibility counts on the wording and on the entry, each on its own."""
    ask(CAPITAL)
    Wording.objects.update(visibility="session")
    assert ask(CAPITAL).served_by == ServedBy.MODEL
    Entry.objects.all().delete()
    ask(CAPITAL)
    Entry.objects.update(visibility="session")
    assert ask(CAPITAL).served_by == ServedBy.MODEL


def test_live_and_creative_questions_bypass(ask: Ask) -> None:
    for question in ("What is the weather in Paris?", "Tell me a joke"):
        assert ask(question).entry is None
        again = ask(question)
        assert again.served_by == ServedBy.MODEL
        assert Decision.objects.get(generation=again).outcome == Outcome.BYPASS


def test_a_cut_answer_is_not_stored(ask: Ask, settings) -> None:
    settings.MAX_TOKENS = 4
    cut = ask("Explain in detail how rain forms.")
    assert (cut.status, cut.finish_reason, cut.entry) == (Status.COMPLETE, "length", None)
    assert not Entry.objects.exists()


def test_an_answer_to_a_question_that_lost_its_middle_is_not_stored(queue: Ask) -> None:
    generation = queue(CAPITAL)
    pipeline.answer(str(generation.pk))
    claimed = claims.for_engine(generation.pk)
    assert claimed is not None
    run = compute.Run(stream.Writer(claimed.pk))
    run.writer.append(["Paris."])
    run.finished = Finished("stop", 8192, 0, 2, prompt_cut=True, history_cut=False, output_token_ids=(1, 2))
    pipeline._conclude(claimed, run)
    generation.refresh_from_db()
    assert (generation.status, generation.text) == (Status.COMPLETE, "Paris.")
    assert not Entry.objects.exists()


def test_a_stopped_answer_is_not_stored(queue: Ask) -> None:
    generation = queue(CAPITAL)
    pipeline.answer(str(generation.pk))
    stream.request_stop(generation.pk, 0)
    pipeline.generate(str(generation.pk))
    generation.refresh_from_db()
    assert (generation.status, generation.text) == (Status.STOPPED, "")
    assert not Entry.objects.exists()


def test_a_failed_answer_is_not_stored(queue: Ask, settings) -> None:
    """The engine refuses a conversation that ends in no words it could read."""
    generation = queue(CAPITAL)
    Generation.objects.filter(pk=generation.pk).update(
        question={"turns": [{"role": "user", "content": CAPITAL}, {"role": "assistant", "content": "x"}]}
    )
    failed = work(generation)
    assert failed.status == Status.FAILED and failed.error_code
    assert not Entry.objects.exists()


def test_fresh_asks_nobody_but_the_model(ask: Ask) -> None:
    ask(CAPITAL)
    again = ask(CAPITAL, fresh=True)
    assert again.served_by == ServedBy.MODEL
    assert Entry.objects.filter(state__in=[State.SUSPECT, State.ACTIVE]).count() == 1


def test_switched_off(ask: Ask, settings) -> None:
    settings.CACHE_ENABLED = False
    ask(CAPITAL)
    assert ask(CAPITAL).served_by == ServedBy.MODEL
    assert not Entry.objects.exists()


class TestTime:
    def test_a_hit_slides_the_expiry_but_never_past_death(self, ask: Ask) -> None:
        ask(CAPITAL)
        now = timezone.now()
        soon, death = now + timedelta(minutes=1), now + timedelta(minutes=5)
        Entry.objects.update(expires_at=soon, dies_at=death)
        for _ in range(3):
            assert ask(CAPITAL).served_by == ServedBy.EXACT
            assert Entry.objects.get().expires_at == death

    def test_a_popular_answer_dies_all_the_same(self, ask: Ask) -> None:
        ask(CAPITAL)
        past = timezone.now() - timedelta(seconds=1)
        Entry.objects.update(expires_at=past, dies_at=past, hits=10_000)
        after = ask(CAPITAL)
        assert after.served_by == ServedBy.MODEL
        assert after.entry_id is not None, "the new answer takes the place of the dead one"
        assert ask(CAPITAL).entry_id == after.entry_id

    def test_a_read_only_entry_is_served_but_lives_no_longer_for_it(self, ask: Ask) -> None:
        ask(CAPITAL)
        until = timezone.now() + timedelta(minutes=1)
        Entry.objects.update(read_only=True, expires_at=until)
        assert ask(CAPITAL).served_by == ServedBy.EXACT
        assert Entry.objects.get().expires_at == until

    def test_lifetimes_are_jittered(self, ask: Ask) -> None:
        for at in range(4):
            ask(f"What is {at} + 1? Answer with one number.")
        lives = {round((e.dies_at - e.created_at).total_seconds()) for e in Entry.objects.all()}
        week = 7 * 24 * 3600
        assert len(lives) > 1
        assert all(0.89 * week < life < 1.11 * week for life in lives)


class TestDoubt:
    def test_a_blocked_entry_is_not_served_in_that_session_only(self, ask: Ask) -> None:
        ask(CAPITAL)
        session = Session.objects.create(pk=uuid.uuid4())
        session.blocked.add(Entry.objects.get())
        assert ask(CAPITAL, session=session.pk).served_by == ServedBy.MODEL
        assert ask(CAPITAL).served_by == ServedBy.EXACT

    def test_a_raised_epoch_hides_what_is_private(self, ask: Ask) -> None:
        mine = uuid.uuid4()
        ask("My name is Zoe. Is a cat an animal? Say yes or no.", session=mine)
        Session.objects.filter(pk=mine).update(epoch=1)
        assert (
            ask("My name is Zoe. Is a cat an animal? Say yes or no.", session=mine).served_by
            == ServedBy.MODEL
        )

    def test_an_answer_from_before_the_epoch_rose_is_not_stored(self, queue: Ask) -> None:
        generation = queue(CAPITAL)
        Session.objects.update(epoch=1)
        assert work(generation).status == Status.COMPLETE
        assert not Entry.objects.exists()

    @pytest.mark.parametrize("state", [State.FROZEN, State.REJECTED, State.SUSPECT])
    def test_only_a_proved_wording_is_served(self, ask: Ask, state: State) -> None:
        ask(CAPITAL)
        Wording.objects.update(state=state)
        assert ask(CAPITAL).served_by == ServedBy.MODEL

    @pytest.mark.parametrize("state", [State.FROZEN, State.REJECTED])
    def test_no_wording_reaches_a_frozen_or_rejected_entry(self, ask: Ask, state: State) -> None:
        ask(CAPITAL)
        Entry.objects.update(state=state)
        assert ask(CAPITAL).served_by == ServedBy.MODEL

    def test_thumbs_down_stops_serving_until_it_is_taken_back(self, ask: Ask) -> None:
        ask(CAPITAL)
        hit = ask(CAPITAL)
        service.feedback(hit.pk, Verdict.DISAGREE)
        wording = Wording.objects.get()
        assert (wording.state, wording.disagreed) == (State.SUSPECT, 1)
        assert ask(CAPITAL).served_by == ServedBy.MODEL
        service.feedback(hit.pk, None)
        assert Wording.objects.get().state == State.ACTIVE
        assert ask(CAPITAL).served_by == ServedBy.EXACT

    def test_the_same_answer_again_does_not_clear_a_doubt(self, ask: Ask) -> None:
        first = ask(CAPITAL)
        service.feedback(first.pk, Verdict.DISAGREE)
        assert ask(CAPITAL).served_by == ServedBy.MODEL
        assert Entry.objects.count() == 1

    def test_a_rejected_pairing_is_not_admitted_again(self, ask: Ask) -> None:
        ask(CAPITAL)
        Wording.objects.update(state=State.REJECTED)
        assert ask(CAPITAL).entry is None
        assert ask(CAPITAL).served_by == ServedBy.MODEL

    def test_a_better_answer_supersedes_a_doubted_one(self, ask: Ask) -> None:
        first = ask(CAPITAL)
        service.feedback(first.pk, Verdict.DISAGREE)
        Entry.objects.update(answer="It is Rome.", answer_vector=None)
        ask(CAPITAL)
        served = ask(CAPITAL)
        assert (served.served_by, served.text) == (ServedBy.EXACT, first.text)
        assert Entry.objects.get(answer="It is Rome.").state == State.FROZEN
        service.feedback(first.pk, None)
        assert ask(CAPITAL).text == first.text, "a doubt taken back later does not push it out again"


def test_an_ended_session_takes_its_private_entries_along(ask: Ask) -> None:
    mine = uuid.uuid4()
    ask("My name is Zoe. Is a dog an animal? Say yes or no.", session=mine)
    ask(CAPITAL, session=mine)
    assert service.end_session(mine) == 1
    assert ask("My name is Zoe. Is a dog an animal? Say yes or no.", session=mine).served_by == ServedBy.MODEL
    assert ask(CAPITAL).served_by == ServedBy.EXACT
    assert service.end_session(uuid.uuid4()) == 0


def test_a_forgotten_session_leaves_nothing_behind(ask: Ask) -> None:
    mine = uuid.uuid4()
    ask(CAPITAL, session=mine)
    other = ask(CAPITAL)
    service.forget_session(mine)
    assert not Entry.objects.exists() and not Wording.objects.exists()
    other.refresh_from_db()
    assert other.text and other.entry is None
    assert ask(CAPITAL).served_by == ServedBy.MODEL


@pytest.mark.django_db(transaction=True)
def test_what_disappears_between_lookup_and_serving_is_still_an_answer(queue: Ask, ask: Ask) -> None:
    """The row that was found is what is served; its books are then kept for nobody, without an error."""
    ask(CAPITAL)
    generation = claims.for_lookup(queue(CAPITAL).pk)
    assert generation is not None
    question = pipeline._understand(generation)
    decided = pipeline._look_up(generation, question)
    assert decided.served is not None
    Entry.objects.all().delete()
    pipeline._serve(generation, question, decided, decided.served)
    generation = Generation.objects.get(pk=generation.pk)
    assert (generation.status, generation.text != "") == (Status.COMPLETE, True)


@pytest.mark.django_db(transaction=True)
def test_two_workers_that_finish_at_once_store_it_once(ask: Ask) -> None:
    template = ask(CAPITAL)
    Entry.objects.all().delete()
    rivals = []
    for _ in range(6):
        session = Session.objects.create(pk=uuid.uuid4())
        rivals.append(
            Generation.objects.create(
                session=session,
                scope=template.scope,
                question=template.question,
                exact_key=template.exact_key,
                text=template.text,
                status=Status.COMPLETE,
            )
        )
    assert template.scope is not None
    kept = classify(turns(CAPITAL))
    reads = [probe.read(template.scope, rival.session_id, turns(CAPITAL)) for rival in rivals]
    acts = [
        partial(lifecycle.admit, read, rival, kept, None) for read, rival in zip(reads, rivals, strict=True)
    ]
    stored = at_once(acts)
    assert len([wording for wording in stored if wording]) == 1
    assert Entry.objects.count() == Wording.objects.count() == 1
