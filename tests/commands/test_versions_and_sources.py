"""The commands for versions, sources and what has expired; and what other systems may tell."""

import io
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.utils import timezone

from cacheadmin.models import AuditRecord
from inference import versions
from inference.cache import provenance
from inference.models import Entry, Scope, State, Version

from .conftest import entry


def run(command: str, *arguments: object) -> str:
    out = io.StringIO()
    call_command(command, *map(str, arguments), stdout=out, stderr=io.StringIO())
    return out.getvalue()


# --- bump_version ---------------------------------------------------------------------------------------


def test_a_bump_by_command(tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Du bist knapp. 简短。\n", encoding="utf-8")
    said = run("bump_version", "--knowledge", "2026-12", "--system-prompt", prompt, "--why", "December")
    assert versions.active() == versions.Active("2026-12", "Du bist knapp. 简短。")
    assert "from knowledge 1 to 2026-12" in said and "flush_cache --version 1" in said
    record = AuditRecord.objects.get()
    assert (record.action, record.reason) == ("bump", "December")
    assert (record.before["knowledge"], record.after["knowledge"]) == ("1", "2026-12")


@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_a_prompt_that_changes_with_every_request_is_warned_of_first(tmp_path: Path, dry: list[str]) -> None:
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("You help. The current time is {now}.", encoding="utf-8")
    said = io.StringIO()
    call_command(
        "bump_version", "--knowledge", "2", "--system-prompt", str(prompt), *dry, stdout=said, stderr=said
    )
    warned, done = said.getvalue().index("'{now}'"), said.getvalue().index("from knowledge 1 to 2")
    assert warned < done and "seems to change with every request" in said.getvalue()
    assert Version.objects.exists() is not bool(dry), "a warning is no refusal"


def test_a_dry_bump_switches_nothing() -> None:
    assert "Would switch from knowledge 1 to 2" in run("bump_version", "--knowledge", "2", "--dry-run")
    assert not Version.objects.exists() and not AuditRecord.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--knowledge", "a b"], "is no version"),
        (["--knowledge", "1"], "already"),
        (["--knowledge", "2", "--system-prompt", "/nowhere/prompt"], "can't be read"),
        ([], "--knowledge"),
    ],
)
@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_a_bump_that_makes_no_sense_is_refused(arguments: list[str], why: str, dry: list[str]) -> None:
    with pytest.raises(CommandError, match=why):
        run("bump_version", *arguments, *dry)
    assert not Version.objects.exists() and not AuditRecord.objects.exists()


@pytest.mark.parametrize("content", [b"", b" \n", b"\xff\xfe", b"a\x00b"])
def test_a_prompt_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    prompt = tmp_path / "prompt.txt"
    prompt.write_bytes(content)
    with pytest.raises(CommandError, match=r"empty|can't be read|NUL"):
        run("bump_version", "--knowledge", "2", "--system-prompt", prompt)
    assert not Version.objects.exists()


def test_back_to_an_earlier_version_only_on_purpose() -> None:
    run("bump_version", "--knowledge", "2")
    run("bump_version", "--knowledge", "3")
    with pytest.raises(CommandError, match="was in use before"):
        run("bump_version", "--knowledge", "2")
    run("bump_version", "--knowledge", "2", "--back")
    assert versions.active().knowledge == "2"


# --- expire_entries -------------------------------------------------------------------------------------


def test_expired_entries_by_command(scope: Scope) -> None:
    past = timezone.now() - timedelta(minutes=1)
    entry(scope, "What is frozen?", state=State.FROZEN)
    entry(scope, "What is expired?", expires_at=past)
    alive = entry(scope, "What is alive?")
    assert "1 frozen and 1 expired" in run("expire_entries", "--dry-run")
    assert Entry.objects.count() == 3
    assert "1 frozen and 1 expired" in run("expire_entries")
    assert Entry.objects.get() == alive


# --- sources --------------------------------------------------------------------------------------------


@pytest.fixture
def made(scope: Scope) -> dict[str, Entry]:
    """One entry from each version of the handbook, and one from nothing."""
    found = {name: entry(scope, f"What does {name} say?") for name in ("v1", "v2", "nothing")}
    for name in ("v1", "v2"):
        provenance.note(found[name], provenance.read_now([("handbook", name)]))
    return found


def test_a_source_by_command(made: dict[str, Entry]) -> None:
    assert "Would freeze 2" in run("invalidate_source", "handbook", "--dry-run")
    assert not Entry.objects.filter(state=State.FROZEN).exists()
    assert "Froze 2" in run("invalidate_source", "handbook", "--why", "new edition")
    assert Entry.objects.get() == made["nothing"]
    record = AuditRecord.objects.get()
    assert (record.action, record.entries, record.reason) == ("invalidate", 2, "new edition")


def test_a_source_by_command_with_its_version(made: dict[str, Entry]) -> None:
    run("invalidate_source", "handbook", "--version", "v2")
    assert set(Entry.objects.all()) == {made["v2"], made["nothing"]}


@pytest.mark.parametrize(("key", "why"), [("nobody", "No answer was ever made"), ("a b", "no key")])
def test_a_source_that_is_none_is_refused(made: dict[str, Entry], key: str, why: str) -> None:
    with pytest.raises(CommandError, match=why):
        run("invalidate_source", key)
    assert Entry.objects.count() == 3 and not AuditRecord.objects.exists()


URL = "/api/sources/changed/"
Tell = Callable[..., Any]


@pytest.fixture
def tell(settings: Any) -> Tell:
    """As another system would, whose requests come without cookies."""
    settings.SOURCES_TOKEN = "s3cret"

    def act(body: object, authorization: str | None = "Bearer s3cret", method: str = "post") -> Any:
        headers = {} if authorization is None else {"Authorization": authorization}
        client = Client(enforce_csrf_checks=True, headers=headers)
        return getattr(client, method)(URL, body, content_type="application/json")

    return act


def test_told_that_a_source_has_changed(made: dict[str, Entry], tell: Tell) -> None:
    answer = tell({"key": "handbook", "version": "v2"})
    assert (answer.status_code, answer.json()) == (200, {"key": "handbook", "version": "v2", "entries": 1})
    assert Entry.objects.get(pk=made["v1"].pk).state == State.FROZEN
    assert Entry.objects.filter(state=State.ACTIVE).count() == 2
    assert AuditRecord.objects.get().actor.startswith("http ")
    assert tell({"key": "handbook", "version": "v2"}).json()["entries"] == 0


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (None, 401),
        ("", 401),
        ("Basic s3cret", 401),
        ("s3cret", 401),
        ("Bearer ", 403),
        ("Bearer s3cre", 403),
        ("Bearer s3cret2", 403),
        ("Bearer \u0161", 403),
    ],
)
def test_whoever_lacks_the_token_changes_nothing(
    made: dict[str, Entry], tell: Tell, authorization: str | None, status: int
) -> None:
    answer = tell({"key": "handbook"}, authorization)
    assert answer.status_code == status and answer.json()["error"]
    assert ("WWW-Authenticate" in answer.headers) is (status == 401)
    assert not Entry.objects.filter(state=State.FROZEN).exists() and not AuditRecord.objects.exists()


def test_without_a_token_in_the_settings_nobody_may_tell(
    made: dict[str, Entry], tell: Tell, settings
) -> None:
    settings.SOURCES_TOKEN = ""
    for authorization in (None, "Bearer ", "Bearer s3cret"):
        assert tell({"key": "handbook"}, authorization).status_code == 404
    assert not Entry.objects.filter(state=State.FROZEN).exists()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("not json", 400),
        ("[" * 100_000, 400),
        (b"\xff", 400),
        ([], 400),
        ({}, 400),
        ({"version": "v2"}, 400),
        ({"key": "handbook", "more": 1}, 400),
        ({"key": 7}, 400),
        ({"key": "handbook", "version": None}, 400),
        ({"key": ""}, 400),
        ({"key": "a\u0000b"}, 400),
        ({"key": "handbook", "version": "x" * 201}, 400),
        ({"key": "nobody"}, 404),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_can_not_be_meant_is_refused(
    made: dict[str, Entry], tell: Tell, body: object, status: int
) -> None:
    answer = tell(body)
    assert answer.status_code == status and answer.json()["error"]
    assert not Entry.objects.filter(state=State.FROZEN).exists()


def test_only_a_post_tells(made: dict[str, Entry], tell: Tell) -> None:
    assert tell({"key": "handbook"}, method="get").status_code == 405
    assert tell({"key": "handbook"}, method="put").status_code == 405
