"""What operators do to keep the cache: switch versions, flush, say that a source has changed; and what they
look at for it."""

import re
import uuid
from datetime import timedelta

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from cacheadmin import flushing, health, tasks
from cacheadmin.models import AuditRecord, SavedSearch, Status
from inference import versions, workers
from inference.cache import flush
from inference.cache.flush import Selection
from inference.live_ledger import Told
from inference.models import (
    Cause,
    DataSource,
    Decision,
    Entry,
    EntrySource,
    Invalidation,
    Scope,
    Session,
    State,
    Version,
)

from .conftest import ANSWER, QUESTION, generated, operator, signed_in, stored

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(db: None) -> Client:
    return signed_in(operator("olga"))


def hidden(text: str) -> dict[str, str]:
    """What the page's confirmation would send."""
    fields = re.findall(r'<input type="hidden"\s+name="([^"]+)"\s+value="([^"]*)"', text)
    return {name: value.replace("&#x27;", "'") for name, value in fields if name != "csrfmiddlewaretoken"}


# --- versions -----------------------------------------------------------------------------------------


def test_a_version_is_bumped_after_a_look(client: Client) -> None:
    page = client.get(reverse("console_versions")).content.decode()
    assert settings.SYSTEM_PROMPT in page and "still what the settings say" in page
    wanted = {"knowledge": "2026-12", "system_prompt": "Be brief.\r\nBe kind.", "reason": "New year"}
    looked = client.post(reverse("console_preview_bump"), wanted)
    text = looked.content.decode()
    assert looked.status_code == 200 and "to 2026-12?" in text and "Be kind." in text
    assert not Version.objects.exists(), "a look changes nothing"
    assert client.post(reverse("console_bump"), hidden(text)).status_code == 302
    assert versions.active() == versions.Active("2026-12", "Be brief.\nBe kind.")
    record = AuditRecord.objects.get()
    assert (record.action, record.actor, record.reason) == ("bump", "olga", "New year")
    assert (record.before["knowledge"], record.after["knowledge"]) == (settings.KNOWLEDGE_VERSION, "2026-12")
    page = client.get(reverse("console_versions")).content.decode()
    assert "Switched to 2026-12" in page and "Earlier switches" in page


@pytest.mark.parametrize(
    ("prompt", "warned"), [("You help. Session id: {session}", True), ("You help.", False)]
)
def test_a_prompt_that_changes_with_every_request_is_warned_of_first(
    client: Client, prompt: str, warned: bool
) -> None:
    sent = {"knowledge": "2026-12", "system_prompt": prompt}
    text = client.post(reverse("console_preview_bump"), sent).content.decode()
    assert ("changed with every request" in text) is warned
    assert ('<code dir="auto">{session}</code>' in text) is warned
    assert client.post(reverse("console_bump"), hidden(text)).status_code == 302


def test_of_two_who_switch_the_second_looks_again(client: Client) -> None:
    looked = client.post(reverse("console_preview_bump"), {"knowledge": "7", "system_prompt": "Mine."})
    versions.bump("6", "Theirs.")
    late = client.post(reverse("console_bump"), hidden(looked.content.decode()))
    assert late.status_code == 409 and "nothing was done" in late.content.decode()
    assert versions.active() == versions.Active("6", "Theirs.") and not AuditRecord.objects.exists()


@pytest.mark.parametrize(
    ("knowledge", "prompt", "why"),
    [
        ("", "P.", "required"),
        ("two words", "P.", "1 to 100 letters"),
        (settings.KNOWLEDGE_VERSION, settings.SYSTEM_PROMPT, "asked with already"),
        ("before", "P.", "was in use before"),
    ],
)
def test_what_is_no_version_is_refused(client: Client, knowledge: str, prompt: str, why: str) -> None:
    versions.bump("before")
    versions.bump(settings.KNOWLEDGE_VERSION, back=True)
    sent = {"knowledge": knowledge, "system_prompt": prompt}
    for name in ("console_preview_bump", "console_bump"):
        seen = {"seen_knowledge": settings.KNOWLEDGE_VERSION, "seen_prompt": settings.SYSTEM_PROMPT}
        response = client.post(reverse(name), sent | seen)
        assert response.status_code in (400, 409) and why in response.content.decode(), name
    assert Version.objects.count() == 2
    back = client.post(
        reverse("console_preview_bump"), {"knowledge": "before", "system_prompt": "P.", "back": "on"}
    )
    assert back.status_code == 200


# --- flush --------------------------------------------------------------------------------------------


@pytest.fixture
def six(scope: Scope) -> list[Entry]:
    entries = [stored(scope, f"What is number {n}?", f"It is {n}.").entry for n in range(6)]
    Entry.objects.filter(pk__in=[entry.pk for entry in entries[:4]]).update(content_class="business")
    return entries


@pytest.fixture
def sent_off(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was handed to the workers, who are not there."""
    found: list[str] = []
    monkeypatch.setattr(tasks.flush, "apply_async", lambda args, **_options: found.append(args[0]))
    return found


def test_a_flush_is_counted_first_and_then_runs(
    client: Client, six: list[Entry], sent_off: list[str]
) -> None:
    page = client.get(reverse("console_flush"), {"content_class": "business"}).content.decode()
    assert "4 entries would be deleted" in page and Entry.objects.count() == 6
    begun = client.post(reverse("console_begin_flush"), hidden(page) | {"reason": "New hours"})
    record = AuditRecord.objects.get()
    assert begun.headers["Location"] == reverse("console_action", args=[record.batch])
    assert (record.status, record.actor, record.reason) == (Status.RUNNING, "olga", "New hours")
    assert sent_off == [str(record.batch)]
    watched = client.get(begun.headers["Location"]).content.decode()
    assert "0 of 4 deleted" in watched and ">End it<" in watched
    tasks.flush(sent_off[0])
    record.refresh_from_db()
    assert (record.status, record.entries) == (Status.DONE, 4) and Entry.objects.count() == 2
    assert "4 of 4 deleted" in client.get(begun.headers["Location"]).content.decode()


def test_what_has_come_since_is_shown_before_it_goes(
    client: Client, six: list[Entry], sent_off: list[str]
) -> None:
    page = client.get(reverse("console_flush"), {"content_class": "business"}).content.decode()
    Entry.objects.filter(pk=six[5].pk).update(content_class="business")
    late = client.post(reverse("console_begin_flush"), hidden(page))
    assert late.status_code == 409 and "5 entries would be deleted" in late.content.decode()
    assert sent_off == [] and not AuditRecord.objects.exists()


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ({"everything": ""}, "Say which entries"),
        ({"everything": "on", "state": "active"}, "and then nothing else"),
        ({"session": "x"}, "UUID"),
        ({"scope": "x"}, "valid choice"),
        ({"state": "x"}, "valid choice"),
        ({"pattern": "a\x00"}, "Null characters"),
    ],
)
def test_what_selects_nothing_is_explained(
    client: Client, six: list[Entry], sent_off: list[str], query: dict[str, str], why: str
) -> None:
    looked = client.get(reverse("console_flush"), query)
    assert looked.status_code == 200 and why in looked.content.decode()
    assert "would be deleted" not in looked.content.decode()
    begun = client.post(reverse("console_begin_flush"), query | {"seen": "9"})
    assert begun.status_code == 400 and sent_off == []


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ({"everything": "on"}, 0),
        ({"state": "frozen"}, 5),
        ({"pattern": "*number ?*"}, 0),
        ({"pattern": "*number 3?"}, 5),
        ({"age": "1d"}, 5),
        ({"source": "prices"}, 5),
        ({"version": "no such"}, 6),
    ],
)
def test_each_way_to_say_which(
    client: Client, six: list[Entry], sent_off: list[str], query: dict[str, str], left: int
) -> None:
    Entry.objects.filter(pk=six[0].pk).update(
        state=State.FROZEN, created_at=timezone.now() - timedelta(days=2)
    )
    EntrySource.objects.create(entry=six[1], source_key="prices")
    page = client.get(reverse("console_flush"), query).content.decode()
    if left < 6:
        client.post(reverse("console_begin_flush"), hidden(page))
        tasks.flush(sent_off[0])
    else:
        assert "None of those that are stored is like that" in page
    assert Entry.objects.count() == left


def flush_of() -> AuditRecord:
    selection = Selection(content_class="business")
    return flushing.begin(selection, flush.count(selection), "olga", "")


def test_it_is_ended_from_the_page_and_gone_on_with(
    client: Client, six: list[Entry], sent_off: list[str]
) -> None:
    record = flush_of()

    def click_end(_deleted: int) -> None:
        assert client.post(reverse("console_stop_flush", args=[record.batch])).status_code == 302

    with pytest.raises(flushing.Ended):
        flushing.run(record, 1, 0, click_end)
    assert Entry.objects.count() == 4, "the batch after the click is the last"
    page = client.get(reverse("console_action", args=[record.batch])).content.decode()
    assert "2 of 4 deleted" in page and "ended before it was done" in page and ">Go on<" in page
    client.post(reverse("console_resume_flush", args=[record.batch]))
    assert sent_off == [str(record.batch)]
    tasks.flush(sent_off[0])
    record.refresh_from_db()
    assert (record.status, record.entries) == (Status.DONE, 4) and Entry.objects.count() == 2
    client.post(reverse("console_resume_flush", args=[record.batch]))
    assert len(sent_off) == 1, "there is nothing to go on with"


def test_a_worker_that_leaves_lets_go(six: list[Entry], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flush, "BATCH", 1)
    record = flush_of()
    workers.leaving.set()
    try:
        tasks.flush(str(record.batch))
    finally:
        workers.leaving.clear()
    record.refresh_from_db()
    assert (record.status, record.entries) == (Status.INTERRUPTED, 1)


def test_one_that_fell_silent_can_be_taken_over_by_one(six: list[Entry], client: Client) -> None:
    record = flush_of()
    assert not flushing.take(record.batch), "it was heard of just now"
    AuditRecord.objects.update(updated_at=timezone.now() - timedelta(minutes=2))
    page = client.get(reverse("console_action", args=[record.batch])).content.decode()
    assert "gone silent" in page and ">Go on<" in page
    assert flushing.take(record.batch) and not flushing.take(record.batch)


def test_without_a_broker_nothing_is_lost(
    client: Client, six: list[Entry], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object, **_options: object) -> None:
        raise ConnectionRefusedError("nobody listens")

    monkeypatch.setattr(tasks.flush, "apply_async", refuse)
    page = client.get(reverse("console_flush"), {"content_class": "business"}).content.decode()
    begun = client.post(reverse("console_begin_flush"), hidden(page), follow=True)
    assert "No worker can be reached now" in begun.content.decode()
    assert AuditRecord.objects.get().status == Status.INTERRUPTED and Entry.objects.count() == 6


# --- sources ------------------------------------------------------------------------------------------


@pytest.fixture
def prices(scope: Scope) -> DataSource:
    for number, version in enumerate(["1", "1", "2"]):
        made = stored(scope, f"What does {number} cost?", f"It costs {number} euros.").entry
        EntrySource.objects.create(entry=made, source_key="prices", version=version)
    stored(scope)
    return DataSource.objects.create(key="prices", version="1", changes=1)


def test_a_source_changes_after_a_look(client: Client, prices: DataSource) -> None:
    listed = client.get(reverse("console_sources")).content.decode()
    assert "prices" in listed and ">3<" in listed
    address = reverse("console_source", args=[prices.pk])
    looked = client.get(address, {"version": "2"}).content.decode()
    assert "2 entries would be served no more" in looked and "version 2 stay" in looked
    assert "3 entries would be served no more" in client.get(address, {"version": ""}).content.decode()
    assert not Entry.objects.filter(state=State.FROZEN).exists(), "a look changes nothing"
    sent = hidden(looked) | {"reason": "New list"}
    done = client.post(reverse("console_source_changed", args=[prices.pk]), sent, follow=True)
    assert "2 entries are served no more." in done.content.decode()
    assert Entry.objects.filter(state=State.FROZEN).count() == 2
    record = AuditRecord.objects.get()
    assert (record.action, record.actor, record.entries, record.reason) == (
        "invalidate",
        "olga",
        2,
        "New list",
    )
    late = client.post(reverse("console_source_changed", args=[prices.pk]), sent)
    assert late.status_code == 409 and "changed since you looked" in late.content.decode()
    assert AuditRecord.objects.count() == 1


def test_sources_are_searched_and_paged(client: Client, prices: DataSource) -> None:
    DataSource.objects.bulk_create(DataSource(key=f"doc-{n:03}") for n in range(60))
    first = client.get(reverse("console_sources")).content.decode()
    more = re.search(r'rel="next"\s+href="([^"]*)"', first).group(1)
    second = client.get(reverse("console_sources") + more).content.decode()
    assert "doc-049" in first and "doc-050" not in first
    assert "doc-050" in second and "prices" in second and "doc-049</a>" not in second
    assert "doc-01" not in client.get(reverse("console_sources"), {"q": "rice"}).content.decode()
    assert "called that" in client.get(reverse("console_sources"), {"q": "no such"}).content.decode()


# --- sessions, ledger ---------------------------------------------------------------------------------


def told(session: Session) -> list[Told]:
    row = {"session": str(session.pk), "scope": "ab" * 32, "tokens": 1_234, "bytes": 3 * 2**20}
    row |= {"shared_bytes": 2**20, "unique_bytes": 2 * 2**20}
    request = {"request": "r", "session": str(session.pk), "scope": "ab" * 32, "tokens": 9, "bytes": 2**20}
    totals = {"held_bytes": 5 * 2**20, "limit_bytes": 2**30, "hit_ratio": 0.5, "sessions": 1}
    figures = {
        "engine": "torch",
        "totals": totals,
        "scopes": [{"scope": "ab" * 32, "stored_bytes": 2**20, "live_bytes": 0, "sessions": 1}],
        "sessions": [row],
        "requests": [request | {"running": True, "killer": True}],
    }
    return [Told("generate.1@here", figures, 2.0), Told("generate.2@here")]


def test_a_session_is_what_the_person_reads_beside_what_the_model_reads(
    client: Client, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = stored(scope)
    first = generated(scope, "And what of the X200's warranty?", ANSWER, served_by="exact", entry=known.entry)
    first.rendered, first.model_question = True, QUESTION
    first.save()
    session = first.session
    session.epoch, session.topic = 2, "Warranties"
    session.save()
    turns = [
        {"role": "user", "content": "And what of the X200's warranty?"},
        {"role": "assistant", "content": ANSWER},
        {"role": "user", "content": "Is that long?"},
    ]
    last = generated(scope, "Is that long?", "It is.")
    last.session = session
    last.question = {"turns": turns, "generations": [None, str(first.pk), None], "fresh": False}
    last.save()
    session.blocked.add(known.entry)
    Invalidation.objects.create(
        session=session, generation=last, cause=Cause.CORRECTION, epoch=2, blocked=[known.entry.pk]
    )
    monkeypatch.setattr(health, "engines", lambda: told(session))
    text = client.get(reverse("console_session", args=[session.pk])).content.decode()
    for shown in ("Warranties", "And what of the X200", f"<mark>{QUESTION}</mark>", "Is that long?"):
        assert shown in text, shown
    for shown in (
        "corrected by the person",
        "3.0 MiB",
        "1,234",
        reverse("console_entry", args=[known.entry.pk]),
    ):
        assert shown in text, shown
    listed = client.get(reverse("console_sessions")).content.decode()
    assert "Warranties" in listed and "3.0 MiB" in listed


def test_sessions_are_found_and_paged(client: Client) -> None:
    made = [Session.objects.create(pk=uuid.uuid4(), topic=f"Topic {n:02}.") for n in range(55)]
    Session.objects.filter(pk=made[0].pk).update(ended_at=timezone.now())
    address = reverse("console_sessions")
    first = client.get(address).content.decode()
    assert "Topic 54." in first and "Topic 04." not in first
    more = re.search(r'rel="next"\s+href="([^"]*)"', first).group(1).replace("&amp;", "&")
    second = client.get(address + more).content.decode()
    assert "Topic 04." in second and "Topic 00." in second and "Topic 05." not in second
    assert "Topic 00." not in client.get(address, {"is": "open", "after": ""}).content.decode()
    ended = client.get(address, {"is": "ended"}).content.decode()
    assert "Topic 00." in ended and "Topic 01." not in ended
    found = client.get(address, {"q": str(made[3].pk)})
    assert found.headers["Location"] == reverse("console_session", args=[made[3].pk])
    assert "no id of a conversation" in client.get(address, {"q": "x"}).content.decode()
    assert "no conversation of this id" in client.get(address, {"q": str(uuid.uuid4())}).content.decode()
    assert client.get(address, {"after": "nonsense_x"}).status_code == 200


def test_the_ledger_tells_what_workers_tell(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session.objects.create(pk=uuid.uuid4())
    monkeypatch.setattr(health, "engines", lambda: told(session))
    text = client.get(reverse("console_ledger")).content.decode()
    for shown in (
        "generate.1@here",
        "5.0 MiB held of 1,024.0 MiB",
        "50.0%",
        "killer",
        "not told anything yet",
    ):
        assert shown in text, shown
    assert reverse("console_session", args=[session.pk]) in text


# --- searches that are kept ---------------------------------------------------------------------------


def test_a_search_is_kept_under_a_name_and_forgotten(client: Client, scope: Scope) -> None:
    stored(scope)
    save, address = reverse("console_save_search"), reverse("console_entries")
    query = "q=warranty&state=active&hits=&after=2026_x&col=state&col=hits"
    client.post(save, {"name": " Warranties ", "query": query})
    kept = SavedSearch.objects.get()
    assert (kept.name, kept.query) == ("Warranties", "q=warranty&state=active&col=state&col=hits")
    page = client.get(f"{address}?{kept.query}").content.decode()
    assert "Warranties</a>" in page and 'aria-current="true">Warranties' in page and QUESTION in page
    client.post(save, {"name": "Warranties", "query": "state=suspect"})
    assert SavedSearch.objects.get().query == "state=suspect"
    client.post(save, {"name": "", "query": "state=suspect"})
    assert SavedSearch.objects.count() == 1

    others = signed_in(operator("boris"))
    assert "Warranties" not in others.get(address).content.decode()
    forget = reverse("console_forget_search", args=[SavedSearch.objects.get().pk])
    others.post(forget)
    assert SavedSearch.objects.exists(), "nobody forgets for others"
    client.post(forget)
    assert not SavedSearch.objects.exists()


def test_an_entry_says_who_was_served(client: Client, scope: Scope) -> None:
    known = stored(scope)
    asked = [generated(scope, QUESTION, ANSWER, served_by="exact", entry=known.entry) for _ in range(2)]
    for generation in [*asked, asked[0]]:
        Decision.objects.create(
            generation=generation, layer="exact", outcome="hit", entry=known.entry, reason="", milliseconds=1
        )
    Decision.objects.create(
        generation=generated(scope, "Near?", "No."),
        layer="semantic",
        outcome="near",
        entry=known.entry,
        reason="",
        milliseconds=1,
    )
    text = client.get(reverse("console_entry", args=[known.entry.pk])).content.decode()
    part = text.partition("Who was served it")[2].partition("Lookups that came to it")[0]
    assert part.count("/console/sessions/") == 2 and '<td class="number">2</td>' in part
