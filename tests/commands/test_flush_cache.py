"""`flush_cache` deletes what it was told to and nothing else, and says how it went."""

import io
import uuid
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import transaction
from django.utils import timezone

from cacheadmin import flushing
from cacheadmin.models import AuditRecord, Status
from inference.cache import flush
from inference.cache.flush import Selection
from inference.models import Entry, EntrySource, Scope, State, Wording
from inference.scopes import for_measuring
from tests.cache.conftest import at_once

from .conftest import entry


def run(*arguments: object) -> str:
    out = io.StringIO()
    call_command("flush_cache", *map(str, arguments), "--pause", "0", stdout=out, stderr=io.StringIO())
    return out.getvalue()


MINE = uuid.UUID(int=7)


@pytest.fixture
def six(scope: Scope) -> dict[str, Entry]:
    other = for_measuring("another")
    made = {
        "plain": entry(scope, "What is a plain question?"),
        "elsewhere": entry(other, "What is another scope?"),
        "business": entry(scope, "What are the opening hours?", content_class="business"),
        "frozen": entry(scope, "What is frozen?", state=State.FROZEN),
        "old": entry(scope, "What is old?", created_at=timezone.now() - timedelta(days=8)),
        "mine": entry(scope, "What is mine (100%)?", session=MINE),
    }
    EntrySource.objects.create(entry=made["plain"], source_key="handbook")
    return made


@pytest.mark.parametrize(
    ("options", "gone"),
    [
        (["--version", "2026-11"], {"plain", "business", "frozen", "old", "mine"}),
        (["--class", "business"], {"business"}),
        (["--source", "handbook"], {"plain"}),
        (["--age", "7d"], {"old"}),
        (["--state", "frozen"], {"frozen"}),
        (["--session", MINE], {"mine"}),
        (["--pattern", "*OPENING*"], {"business"}),
        (["--pattern", "what is ???zen?"], {"frozen"}),
        (["--pattern", "*(100%)*"], {"mine"}),
        (["--pattern", "*[a-z]*"], set()),
        (
            ["--version", "2026-11", "--state", "active", "--pattern", "*what*"],
            {"plain", "business", "old", "mine"},
        ),
        (["--version", "nothing"], set()),
        (["--all"], {"plain", "elsewhere", "business", "frozen", "old", "mine"}),
    ],
)
def test_exactly_what_all_options_hold_for_goes(
    six: dict[str, Entry], options: list[object], gone: set[str]
) -> None:
    assert f"{len(gone)} entries" in run(*options, "--dry-run")
    assert Entry.objects.count() == 6 and not AuditRecord.objects.exists()
    run(*options, "--yes")
    left = set(Entry.objects.values_list("pk", flat=True))
    assert {name for name, one in six.items() if one.pk not in left} == gone
    assert Wording.objects.count() == 6 - len(gone)


def test_by_the_beginning_of_the_scopes_hash(six: dict[str, Entry], scope: Scope) -> None:
    run("--scope", scope.hash[:20], "--yes")
    assert Entry.objects.get() == six["elsewhere"]


def test_the_counts_are_said(six: dict[str, Entry]) -> None:
    said = run("--version", "2026-11", "--dry-run")
    assert "5 entries" in said and "frozen" in said and "business" in said and "knowledge 2026-11" in said


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([], "which entries"),
        (["--all", "--state", "active"], "which entries"),
        (["--scope", "ab"], "6 characters"),
        (["--source", ""], "empty"),
        (["--age", "week"], "no age"),
        (["--state", "gone"], "invalid choice"),
        (["--session", "mine"], "invalid UUID"),
        (["--all", "--batch", "0"], "batch"),
        (["--all", "--pause", "-1"], "pause"),
        (["--resume", MINE], "No flush"),
    ],
)
def test_what_makes_no_sense_is_refused(six: dict[str, Entry], options: list[object], why: str) -> None:
    with pytest.raises(CommandError, match=why):
        call_command("flush_cache", *map(str, options), "--yes")
    assert Entry.objects.count() == 6


def test_without_a_terminal_it_wants_a_yes(six: dict[str, Entry], monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    with pytest.raises(CommandError, match="--yes"):
        run("--all")
    assert Entry.objects.count() == 6


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "left"), [("no\n", 6), ("\n", 6), ("yes\n", 0)])
def test_at_a_terminal_it_asks(six: dict[str, Entry], monkeypatch, answer: str, left: int) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    if left:
        with pytest.raises(CommandError, match="Nothing was done"):
            run("--all")
    else:
        run("--all")
    assert Entry.objects.count() == left


def test_it_is_written_down(six: dict[str, Entry]) -> None:
    run("--class", "business", "--yes", "--why", "new hours", "--batch", "1")
    record = AuditRecord.objects.get()
    assert (record.action, record.status, record.entries, record.reason) == ("flush", "done", 1, "new hours")
    assert record.selection["content_class"] == "business" and record.selection["before"]
    assert record.before["entries"] == 1 and record.after == {"entries": 0} and "@" in record.actor


def test_interrupted_it_says_so_and_goes_on_where_it_was(six: dict[str, Entry], scope: Scope) -> None:
    selection = Selection(version="2026-11")
    record = flushing.begin(selection, flush.count(selection), "me", "")

    def interrupt(deleted: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        flushing.run(record, 2, 0, interrupt)
    record.refresh_from_db()
    assert (record.status, record.entries) == (Status.INTERRUPTED, 2) and Entry.objects.count() == 4
    late = entry(scope, "What came later?")
    run("--resume", record.batch, "--yes")
    record.refresh_from_db()
    assert (record.status, record.entries) == (Status.DONE, 5)
    assert set(Entry.objects.all()) == {six["elsewhere"], late}
    with pytest.raises(CommandError, match="No flush"):
        run("--resume", record.batch, "--yes")


@pytest.mark.django_db(transaction=True)
def test_what_is_in_use_all_the_time_is_left_and_said(six: dict[str, Entry], monkeypatch) -> None:
    monkeypatch.setattr(flush, "_ATTEMPTS", 1)
    outcome: list[object] = []

    def act() -> None:
        try:
            run("--all", "--yes")
        except CommandError as error:
            outcome.append(error.returncode)

    with transaction.atomic():
        Entry.objects.select_for_update().get(pk=six["plain"].pk)
        at_once([act])
    assert outcome == [3]
    assert Entry.objects.get() == six["plain"]
    record = AuditRecord.objects.get()
    assert (record.status, record.entries) == (Status.INTERRUPTED, 5)
    run("--resume", record.batch, "--yes")
    assert not Entry.objects.exists()
