"""Prompts as they reach the engine: knowledge of the scope, a window moving in steps, stable summaries."""

import itertools
import uuid
from pathlib import Path

import pytest

from config.celery import app
from inference import dispatch, knowledge, pipeline, prompting, service, summaries
from inference.cache import probe
from inference.cache.models import Source
from inference.engines.base import EngineUnavailable
from inference.models import Entry, Generation, Scope, ServedBy, Status, Summary
from inference.understanding.digest import extract

from .conftest import Ask, turns, work

OPENING = "When does the shop open?"


@pytest.fixture
def shop(tmp_path: Path, settings) -> Path:
    file = tmp_path / "knowledge.txt"
    file.write_text("The shop opens at 9.\n")
    settings.KNOWLEDGE_FILE = str(file)
    return file


def said(count: int) -> list[str]:
    """`count` exchanges and a question."""
    return [text for at in range(count) for text in (f"Question {at}?", f"Answer {at}.")] + ["And now?"]


# Two exchanges of which the model that comes along makes one sentence.
LIGHTHOUSES = (
    "How do lighthouses work?",
    "A lighthouse has a strong lamp at the top of a tower. A lens bends the light of the lamp into a narrow "
    "beam, and the beam turns around slowly, so that ships far out at sea see it as a flash. Each lighthouse "
    "has a rhythm of its own, so that sailors can tell where they are.",
    "Who looks after the lamp?",
    "In the past a keeper lived in the lighthouse and lit the lamp every evening. The keeper also cleaned "
    "the lens, wound up the clockwork and wrote down the weather. Today nearly all lighthouses are "
    "automatic, and somebody comes by only now and then to check them.",
)


def run_sent(name: str) -> int:
    """Do what the tasks of this name ask for that wait for an engine, as a worker would; returns how many."""
    done = 0
    app.loader.import_default_modules()  # as a worker does when it starts
    with app.connection_for_read() as connection, connection.SimpleQueue("generate") as waiting:
        while True:
            try:
                task = waiting.get(timeout=1)
            except waiting.Empty:
                return done
            task.ack()
            if task.headers["task"].endswith(f".{name}"):
                arguments, *_ = task.payload
                app.tasks[task.headers["task"]].apply(args=arguments, throw=True)
                done += 1


class TestKnowledge:
    def test_stands_behind_the_system_prompt(self, queue: Ask, shop: Path, settings) -> None:
        settings.TASK_PROMPT = "Answer in one sentence."
        told = prompting.build(queue(OPENING)).turns[0]
        expected = f"{settings.SYSTEM_PROMPT}\n\nThe shop opens at 9.\n\nAnswer in one sentence."
        assert told == {"role": "system", "content": expected}

    def test_other_knowledge_is_another_scope(self, ask: Ask, shop: Path) -> None:
        first, again = ask(OPENING), ask(OPENING)
        assert again.served_by == ServedBy.EXACT
        shop.write_text("The shop opens at 10.\n")
        changed = ask(OPENING)
        assert changed.served_by == ServedBy.MODEL
        assert changed.scope_id != first.scope_id
        shop.write_text("The shop opens at 9.\n\n")
        assert ask(OPENING).served_by == ServedBy.EXACT

    def test_what_changed_in_between_is_answered_and_not_kept(self, queue: Ask, shop: Path) -> None:
        generation = queue(OPENING)
        pipeline.answer(str(generation.pk))
        shop.write_text("The shop opens at 10.\n")
        pipeline.generate(str(generation.pk))
        generation.refresh_from_db()
        assert (generation.status, generation.finish_reason) == (Status.COMPLETE, "stop")
        assert not Entry.objects.exists()

    @pytest.mark.parametrize("content", [None, b"\xff\xfe broken"])
    def test_unreadable_it_is_said_and_may_be_tried_again(
        self, ask: Ask, shop: Path, content: bytes | None
    ) -> None:
        shop.unlink()
        if content is not None:
            shop.write_bytes(content)
        with pytest.raises(EngineUnavailable, match="KNOWLEDGE_FILE"):
            knowledge.read()
        failed = ask(OPENING)
        assert (failed.status, failed.error_code) == (Status.FAILED, "engine_unavailable")


class TestWindow:
    def test_is_part_of_the_scope(self, ask: Ask, settings) -> None:
        first = ask("What is rain?")
        settings.CONTEXT_TURNS = 3
        second = ask("What is rain?")
        assert second.served_by == ServedBy.MODEL and second.scope_id != first.scope_id

    def test_a_question_keeps_the_window_of_its_scope(self, queue: Ask, settings) -> None:
        settings.CONTEXT_TURNS, settings.SUMMARY_STEP = 3, 2
        generation = queue(*said(7))
        pipeline.answer(str(generation.pk))
        settings.CONTEXT_TURNS, settings.SUMMARY_STEP = 10, 5
        generation.refresh_from_db()
        told, *shown = prompting.build(generation).turns
        assert [turn["content"] for turn in shown] == said(7)[8:]
        assert "Question 3?" in told["content"] and "Question 4?" not in told["content"]

    def test_a_lookup_reads_the_window_of_its_scope(self, scope: Scope, settings) -> None:
        scope.prompt = {"context_turns": 3}
        settings.CONTEXT_TURNS = 10
        window = probe.read(scope, uuid.uuid4(), turns(*said(7))).context.window
        assert [turn["content"] for turn in window] == said(7)[8:-1]


class TestSummaries:
    def test_between_two_steps_a_prompt_begins_with_the_one_before(self, queue: Ask) -> None:
        session = uuid.uuid4()
        prompts = [prompting.build(queue(*said(at), session=session)).turns for at in range(26)]
        steps = [
            at
            for at, (before, after) in enumerate(itertools.pairwise(prompts), 1)
            if after[: len(before) - 1] != before[:-1]
        ]
        assert steps == [9, 13, 17, 21, 25]

    def test_they_are_prepared_before_they_are_needed(self, queue: Ask, settings) -> None:
        settings.SUMMARY_STEP = 2
        session = uuid.uuid4()
        for at in range(3):
            work(queue(*said(at), session=session))
        summary = Summary.objects.get()
        assert (summary.source, summary.used) == (Source.EXTRACT, False)
        assert [turn["content"] for turn in summary.turns] == said(2)[:-1]

    def test_the_engine_writes_what_prompts_then_hold(self, queue: Ask, settings, no_workers: None) -> None:
        """By the task that was sent: the worker's whole way, from the queue to the prompt."""
        settings.SUMMARY_STEP, settings.CONTEXT_TURNS = 2, 3
        session = uuid.uuid4()
        work(queue(*LIGHTHOUSES, "And now?", session=session))
        summary = Summary.objects.get()
        assert (summary.source, summary.text) == (Source.EXTRACT, extract(summary.turns))
        assert run_sent("summarise") == 1
        summary.refresh_from_db()
        assert summary.source == Source.ENGINE and not summary.used
        assert 0 < len(summary.text) < len("".join(LIGHTHOUSES)) and summary.text != extract(summary.turns)
        later = queue(*LIGHTHOUSES, *said(3), session=session)
        told, *shown = prompting.build(later).turns
        assert told["content"].endswith(f"Earlier in this conversation: {summary.text}")
        assert [turn["content"] for turn in shown] == said(3)
        assert Summary.objects.get().used and not summaries.write(summary.pk)

    def test_a_summary_that_a_prompt_has_held_stays(self, queue: Ask) -> None:
        session = uuid.uuid4()
        before = prompting.build(queue(*said(9), session=session)).turns
        summary = Summary.objects.get()
        assert summary.used and summary.text == extract(summary.turns)
        assert not summaries.write(summary.pk)
        assert prompting.build(queue(*said(9), session=session)).turns == before

    def test_one_written_in_time_is_what_prompts_hold(self, queue: Ask) -> None:
        session = uuid.uuid4()
        work(queue(*said(4), session=session))
        Summary.objects.update(text="They asked four things.", source=Source.ENGINE)
        told = prompting.build(queue(*said(9), session=session)).turns[0]["content"]
        assert told.endswith("Earlier in this conversation: They asked four things.")

    def test_the_same_turns_are_summarised_once(self, queue: Ask) -> None:
        work(queue(*said(4)))
        Summary.objects.update(text="They asked four things.", source=Source.ENGINE)
        other = work(queue(*said(4)))
        summary = Summary.objects.get(session=other.session_id)
        assert (summary.text, summary.source) == ("They asked four things.", Source.ENGINE)

    @pytest.mark.parametrize(
        ("text", "taken"),
        [
            ("The tower is 330 m high.", True),
            ("The tower is 300 m high.", False),
            ("", False),
            ("The tower " * 40, False),
        ],
    )
    def test_one_that_invents_figures_or_saves_nothing_is_not_taken(self, text: str, taken: bool) -> None:
        covered = turns("How high is the tower?", "It is 330 m high, and was built for a fair.")
        assert summaries._is_of(text, covered) is taken

    def test_they_wait_for_all_questions(self, no_workers: None) -> None:
        dispatch.summarise(1)
        dispatch.generate(uuid.uuid4())
        with app.connection_for_read() as connection, connection.SimpleQueue("generate") as tasks:
            taken = [tasks.get(timeout=5) for _ in range(2)]
        assert [task.headers["task"].rpartition(".")[2] for task in taken] == ["generate", "summarise"]

    def test_they_go_with_their_session(self, queue: Ask) -> None:
        session = uuid.uuid4()
        prompting.build(queue(*said(9), session=session))
        service.forget_session(session)
        assert not Summary.objects.exists() and not Generation.objects.exists()
