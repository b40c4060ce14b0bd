"""What a version covers, and what happens when it is switched while everything runs."""

import shutil
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from django.conf import settings as configured
from django.db import connection

from inference import embedding, pipeline, prompting, rules, scopes, versions, workers
from inference.engine import engine
from inference.models import Entry, Generation, Scope, ServedBy, Status, Version
from inference.understanding import fingerprint, signals

from .conftest import Ask, at_once

CAPITAL = "What is the capital of France?"


def looked_up(generation: Generation) -> Generation:
    """As the answer worker leaves it: for the engine."""
    pipeline.answer(str(generation.pk))
    generation.refresh_from_db()
    assert generation.looked_up and generation.status == Status.PENDING
    return generation


def answered(generation: Generation) -> Generation:
    pipeline.generate(str(generation.pk))
    generation.refresh_from_db()
    return generation


# --- what the scope holds -------------------------------------------------------------------------------


def test_the_scope_says_what_runs(db: None) -> None:
    scope, loaded = scopes.current(), engine().identity()
    assert scope.model_version == f"torch:{loaded.model}:{loaded.dtype}"
    assert (scope.tokenizer_version, scope.prompt_template) == (loaded.tokenizer, loaded.template)
    assert scope.embedder == embedding.identity()
    assert f"fingerprint-{fingerprint.VERSION} signals-{signals.VERSION} " in scope.understanding
    assert scope.system_prompt == configured.SYSTEM_PROMPT


@pytest.mark.parametrize("module", [fingerprint, signals])
def test_a_raised_version_of_the_rules_is_another_scope(db: None, monkeypatch, module) -> None:
    before = scopes.current()
    monkeypatch.setattr(module, "VERSION", "next")
    rules.version.cache_clear()
    try:
        assert scopes.current() != before
    finally:
        rules.version.cache_clear()


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        (lambda text: "# A remark.\n" + text, True),
        (lambda text: text.replace("\n\n\n", "\n\n\n\n"), True),
        (lambda text: text + "\nMORE = 1\n", False),
    ],
)
def test_changed_rules_are_another_version_and_remarks_on_them_are_not(
    tmp_path: Path, changed: Callable[[str], str], same: bool
) -> None:
    room = tmp_path / "inference"
    shutil.copytree(Path(rules.__file__).parent / "understanding", room / "understanding")
    before, file = rules.digest(room), room / "understanding" / "signals.py"
    file.write_text(changed(file.read_text()))
    assert (rules.digest(room) == before) is same


def test_changed_weights_are_another_version(tmp_path: Path) -> None:
    room = tmp_path / "inference"
    shutil.copytree(Path(rules.__file__).parent / "understanding", room / "understanding")
    before, file = rules.digest(room), room / "understanding" / "signal_weights.json"
    file.write_text(file.read_text().replace("1", "2", 1))
    assert rules.digest(room) != before


# --- who may write --------------------------------------------------------------------------------------


def test_an_engine_that_is_another_than_its_scope_says_stores_nothing(
    queue: Ask, settings, tmp_path: Path
) -> None:
    """The model's folder was replaced under a worker that has the old one loaded."""
    assert answered(looked_up(queue("What is the capital of Spain?"))).entry is not None
    other = tmp_path / "model"
    other.mkdir()
    for file in Path(settings.MODEL_DIR).iterdir():
        if file.stat().st_size > 2**22:
            (other / file.name).symlink_to(file)
        else:
            shutil.copy(file, other)
    template = other / "chat_template.jinja"
    template.write_text(template.read_text() + "{# changed #}")
    settings.MODEL_DIR = other
    generation = answered(looked_up(queue(CAPITAL)))
    assert generation.scope.prompt_template != engine().identity().template
    assert (generation.status, generation.finish_reason) == (Status.COMPLETE, "stop") and generation.text
    assert generation.entry is None and Entry.objects.count() == 1


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("SYSTEM_PROMPT", "You help.", "You help people."),
        ("KNOWLEDGE_VERSION", "1", "2"),
        ("TASK_PROMPT", "", "Answer in one sentence."),
        ("MAX_TOKENS", 48, 40),
    ],
)
def test_in_a_rolling_deploy_neither_release_stores_or_serves_for_the_other(
    queue: Ask, settings, name: str, old: object, new: object
) -> None:
    setattr(settings, name, new)
    theirs = looked_up(queue(CAPITAL))
    setattr(settings, name, old)
    done = answered(theirs)  # by a worker of the old release
    assert (done.status, done.entry) == (Status.COMPLETE, None) and done.text
    ours = answered(looked_up(queue(CAPITAL)))
    assert ours.entry is not None and ours.scope != done.scope
    setattr(settings, name, new)
    assert looked_up(queue(CAPITAL)).scope == done.scope


def test_what_a_question_was_understood_with_is_what_it_is_asked_with(queue: Ask, settings) -> None:
    settings.SYSTEM_PROMPT, settings.TASK_PROMPT = "You are terse.", "Say it in French."
    generation = looked_up(queue(CAPITAL))
    settings.SYSTEM_PROMPT, settings.TASK_PROMPT = "You are wordy.", ""
    system = prompting.build(Generation.objects.get(pk=generation.pk)).turns[0]
    assert system == {"role": "system", "content": "You are terse.\n\nSay it in French."}


# --- the switch -----------------------------------------------------------------------------------------


def test_after_a_bump_nothing_from_before_is_served(queue: Ask) -> None:
    before = answered(looked_up(queue(CAPITAL)))
    made = versions.bump("2026-12", "You are a guide.")
    assert (made.before.knowledge, made.after.knowledge, made.entries) == ("1", "2026-12", 1)
    after = looked_up(queue(CAPITAL))
    assert (after.scope.knowledge_version, after.scope.system_prompt) == ("2026-12", "You are a guide.")
    assert answered(after).served_by == ServedBy.MODEL and after.entry != before.entry


def test_without_a_prompt_the_prompt_stays(db: None, settings) -> None:
    versions.bump("a")
    assert versions.active() == versions.Active("a", settings.SYSTEM_PROMPT)
    settings.SYSTEM_PROMPT = "Another one."
    assert versions.active().system_prompt == "Another one."
    versions.bump("b", "Mine.")
    versions.bump("c")
    assert versions.active() == versions.Active("c", "Mine.")


def test_settings_that_a_deploy_changes_are_another_scope_also_after_a_bump(db: None, settings) -> None:
    versions.bump("a", "Mine.")
    before = scopes.current()
    settings.KNOWLEDGE_VERSION = "9"
    assert scopes.current() != before


def test_another_app_has_a_version_of_its_own(db: None, settings) -> None:
    versions.bump("a")
    settings.APP_NAME = "another"
    assert versions.active().knowledge == settings.KNOWLEDGE_VERSION


@pytest.mark.parametrize("name", ["", " ", "2026 12", "-1", "a\x00", "x" * 101, "版本", "a\n"])
def test_a_wrong_version_is_refused_and_changes_nothing(db: None, name: str) -> None:
    with pytest.raises(versions.WrongVersion, match="is no version"):
        versions.bump(name)
    assert not Version.objects.exists()


def test_a_version_in_use_now_or_before_is_refused(queue: Ask) -> None:
    stored = answered(looked_up(queue(CAPITAL)))
    with pytest.raises(versions.WrongVersion, match="already"):
        versions.bump("1")
    versions.bump("2")
    with pytest.raises(versions.WrongVersion, match="was in use before"):
        versions.bump("1")
    assert versions.active().knowledge == "2"
    versions.bump("1", back=True)
    again = queue(CAPITAL)
    pipeline.answer(str(again.pk))
    again.refresh_from_db()
    assert (again.served_by, again.entry) == (ServedBy.EXACT, stored.entry)


def test_a_plan_switches_nothing(db: None) -> None:
    assert versions.plan("2").after.knowledge == "2"
    assert versions.active().knowledge == "1" and not Version.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_bumps_to_the_same_version_at_once_one_is_refused() -> None:
    def act() -> str:
        try:
            versions.bump("2")
            return "switched"
        except versions.WrongVersion:
            return "refused"

    assert sorted(map(str, at_once([act] * 4))) == ["refused"] * 3 + ["switched"]
    assert Version.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_bump_during_fifty_open_generations(queue: Ask, settings) -> None:
    """Some wait to be looked up, some for the engine, some are being written. Everyone gets an answer; what
    was looked up before the bump is stored nowhere from then on, and what wasn't is of the new version."""
    settings.QUEUE_LIMIT = 1_000
    asked = [queue(f"What is {a} plus {b}?") for a in range(1, 6) for b in range(1, 11)]
    old = scopes.current()
    ready, waiting = asked[:30], asked[30:]
    for generation in ready:
        pipeline.answer(str(generation.pk))
    begun, bumped = threading.Event(), threading.Event()

    def write(mine: list[Generation]) -> None:
        try:
            for at, generation in enumerate(mine):
                pipeline.generate(str(generation.pk))
                begun.set()
                if at == 0:
                    bumped.wait(60)
        finally:
            connection.close()

    threads = [threading.Thread(target=write, args=(ready[at::3],)) for at in range(3)]
    for thread in threads:
        thread.start()
    assert begun.wait(120)
    versions.bump("2")
    stored_before = Entry.objects.filter(scope=old).count()
    finished_before = Generation.objects.filter(status=Status.COMPLETE).count()
    bumped.set()
    for thread in threads:
        thread.join()
    workers.announce("generate")
    at_once([partial(_answer_all, waiting[at::4]) for at in range(4)])
    rows = Generation.objects.in_bulk([generation.pk for generation in asked])
    assert {row.status for row in rows.values()} == {Status.COMPLETE}
    assert all(row.text for row in rows.values())
    late = Entry.objects.filter(scope=old).count() - stored_before
    assert 0 < finished_before < 30 and late == 0
    assert all(rows[generation.pk].scope == old for generation in ready)
    new = scopes.current()
    assert new != old and all(rows[generation.pk].scope == new for generation in waiting)
    assert Entry.objects.filter(scope=new).exists()
    assert not Entry.objects.exclude(scope__in=[old, new]).exists()
    assert Scope.objects.get(pk=new.pk).knowledge_version == "2"


def _answer_all(generations: list[Generation]) -> None:
    for generation in generations:
        pipeline.answer(str(generation.pk))
        pipeline.generate(str(generation.pk))
