"""Every page of the console: who may see it, and what stands on it when there is something and when there is
nothing."""

import re
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from cacheadmin import audit, inventory, reading, thresholds
from cacheadmin.models import AuditRecord, SavedSearch
from cacheadmin.operators import create_operator
from inference.cache import policy
from inference.models import (
    Check,
    DataSource,
    Decision,
    Entry,
    EntrySource,
    Generation,
    Invalidation,
    Mode,
    Scope,
    Version,
)

from .conftest import ANSWER, FRESH, QUESTION, SUSPECT, doubted, generated, operator, signed_in, stored

pytestmark = pytest.mark.django_db

# The permission that each address asks for, by its name; the methods it answers.
NEEDS = {
    "console": ("view", "get"),
    "console_entries": ("view", "get"),
    "console_save_search": ("view", "post"),
    "console_forget_search": ("view", "post"),
    "console_entry": ("view", "get"),
    "console_review": ("view", "get"),
    "console_next": ("review", "post"),
    "console_bulk": ("review", "post"),
    "console_decide_bulk": ("review", "post"),
    "console_pairing": ("view", "get"),
    "console_take": ("review", "post"),
    "console_keep": ("review", "post"),
    "console_release": ("review", "post"),
    "console_decide": ("review", "post"),
    "console_thresholds": ("view", "get"),
    "console_tune": ("tune", "post"),
    "console_versions": ("view", "get"),
    "console_preview_bump": ("flush", "post"),
    "console_bump": ("flush", "post"),
    "console_flush": ("view", "get"),
    "console_begin_flush": ("flush", "post"),
    "console_resume_flush": ("flush", "post"),
    "console_stop_flush": ("flush", "post"),
    "console_sources": ("view", "get"),
    "console_source": ("view", "get"),
    "console_source_changed": ("flush", "post"),
    "console_sessions": ("view", "get"),
    "console_session": ("view", "get"),
    "console_ledger": ("view", "get"),
    "console_audit": ("view", "get"),
    "console_action": ("view", "get"),
    "console_undo": ("review", "post"),
    "console_health": ("view", "get"),
}
PERMISSIONS = ("view", "review", "tune", "flush")


def console_addresses(patterns: Iterable[Any], route: str = "") -> Iterator[tuple[str, URLPattern]]:
    """Every address of the site that begins with console/, as the site resolves it."""
    for one in patterns:
        whole = route + str(one.pattern)
        if isinstance(one, URLResolver):
            yield from console_addresses(one.url_patterns, whole)
        elif whole.startswith("console/"):
            yield whole, one


class Addresses:
    """Every address, with what is there to be asked for."""

    def __init__(self, scope: Scope) -> None:
        known = stored(scope)
        self.entry = known.entry
        self.wording = doubted(known.entry)
        self.source = DataSource.objects.create(key="prices", changes=2)
        EntrySource.objects.create(entry=known.entry, source_key="prices", version="7")
        self.batch = audit.record("a test", "skip", [audit.Change(audit.WORDING, self.wording.pk)])

    def of(self, name: str) -> str:
        whole, pattern = next(
            (whole, one) for whole, one in console_addresses(get_resolver().url_patterns) if one.name == name
        )
        if "batch" in pattern.pattern.converters:
            return reverse(name, args=[self.batch])
        if "pk" not in pattern.pattern.converters:
            return reverse(name)
        kinds = {"entries/<uuid": self.entry, "review/": self.wording, "sources/": self.source}
        kinds |= {"sessions/": self.wording.session, "entries/searches/": SavedSearch(pk=1)}
        row = next(row for start, row in kinds.items() if whole.removeprefix("console/").startswith(start))
        return reverse(name, args=[row.pk])


@pytest.fixture
def addresses(scope: Scope) -> Addresses:
    return Addresses(scope)


def test_every_address_is_in_the_matrix() -> None:
    """A page that nobody has said the permission of fails here."""
    found = [str(one.name) for _whole, one in console_addresses(get_resolver().url_patterns)]
    assert sorted(found) == sorted(NEEDS)


@pytest.mark.parametrize("htmx", [False, True], ids=["page", "part"])
@pytest.mark.parametrize("name", NEEDS)
def test_who_is_not_signed_in_is_asked_to(addresses: Addresses, name: str, htmx: bool) -> None:
    address = addresses.of(name)
    response = getattr(Client(), NEEDS[name][1])(address, headers={"HX-Request": "true"} if htmx else {})
    if htmx:
        assert response.headers["HX-Redirect"].startswith(reverse("account_login"))
    else:
        assert response.status_code == 302
        assert response.headers["Location"].startswith(reverse("account_login"))


def people(permission: str) -> list[tuple[User, bool]]:
    """Those that a page which needs `permission` has to do with, and whether it opens for them."""
    every = [operator(f"only {one}", one) for one in PERMISSIONS]
    with_view = [operator(f"view and {one}", "view", one) for one in PERMISSIONS]
    return [
        (User.objects.create_user("plain"), False),
        (User.objects.create_user("staff", is_staff=True), False),
        (operator("not staff", staff=False), False),
        *((user, one == permission == "view") for user, one in zip(every, PERMISSIONS, strict=True)),
        *((user, permission in ("view", one)) for user, one in zip(with_view, PERMISSIONS, strict=True)),
        (User.objects.create_superuser("root"), True),
    ]


@pytest.mark.parametrize("name", NEEDS)
def test_each_permission_opens_what_it_is_for_and_nothing_else(addresses: Addresses, name: str) -> None:
    permission, method = NEEDS[name]
    for user, opens in people(permission):
        response = getattr(signed_in(user), method)(addresses.of(name))
        if opens:
            assert response.status_code in (200, 302, 400, 404, 409), (user, name)
        else:
            assert response.status_code == 403, (user, name)


@pytest.mark.parametrize("name", NEEDS)
def test_the_other_method_is_refused(addresses: Addresses, name: str) -> None:
    client = signed_in(operator())
    other = client.post if NEEDS[name][1] == "get" else client.get
    assert other(addresses.of(name)).status_code == 405


@pytest.mark.parametrize("name", [name for name, (_needed, method) in NEEDS.items() if method == "post"])
def test_nothing_is_done_without_the_page_s_own_token(addresses: Addresses, name: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator())
    assert client.post(addresses.of(name), {"action": "approve"}).status_code == 403


def test_create_operator_opens_all_of_it(addresses: Addresses) -> None:
    create_operator("olaf")
    client = signed_in(User.objects.get(username="olaf"))
    for name, (_permission, method) in NEEDS.items():
        assert getattr(client, method)(addresses.of(name)).status_code != 403, name


PAGES = [name for name, (_needed, method) in NEEDS.items() if method == "get"]


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("name", PAGES)
def test_pages_and_parts(addresses: Addresses, name: str, language: str) -> None:
    client = signed_in(operator())
    client.cookies["django_language"] = language
    page = client.get(addresses.of(name))
    assert page.status_code == 200
    text = page.content.decode()
    assert text.count("<h1") == 1 and text.count("<main") == 1
    assert "no-cache" in page.headers["Cache-Control"]
    assert ("概览" in text) == (language == "zh-hans")
    assert "<script>" not in text and " style=" not in text and " onclick=" not in text
    part = client.get(addresses.of(name), headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part and "<main" not in part and part.strip()


@pytest.mark.parametrize("name", ["console_entry", "console_pairing", "console_action", "console_session"])
def test_what_is_not_there_is_not_found(name: str) -> None:
    assert signed_in(operator()).get(reverse(name, args=[uuid.uuid4()])).status_code == 404


@pytest.mark.usefixtures("no_workers")
@pytest.mark.parametrize(
    ("name", "explained"),
    [
        ("console", "No lookups in this time"),
        ("console_entries", "Nothing is stored yet"),
        ("console_review", "Nothing waits for a decision"),
        ("console_audit", "Nothing is on record"),
        ("console_sources", "No source was ever named"),
        ("console_sessions", "No conversation is like that"),
        ("console_versions", "Nobody has asked anything yet"),
        ("console_ledger", "No worker with an engine is there"),
    ],
)
def test_empty_pages_explain_themselves(name: str, explained: str) -> None:
    assert explained in signed_in(operator()).get(reverse(name)).content.decode()


def test_an_entry_s_page_tells_its_story(addresses: Addresses) -> None:
    text = signed_in(operator()).get(addresses.of("console_entry")).content.decode()
    for told in (QUESTION, ANSWER, SUSPECT, "alike (0.962), but entity: x200 / x300", "0.962", "skipped"):
        assert told in text, told
    assert '<mark class="number">36</mark>' in text and '<mark class="number">24</mark>' in text


def test_a_list_that_is_cut_says_so(
    addresses: Addresses, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is shown of many: the last so many, never as if these were all."""
    client = signed_in(operator())
    served = {"outcome": "hit", "layer": "exact", "reason": "the same", "milliseconds": 0.4}
    Decision.objects.create(generation=generated(scope, QUESTION, ANSWER), entry=addresses.entry, **served)
    session = addresses.wording.session
    Entry.objects.filter(pk=addresses.entry.pk).update(session=session)
    session.blocked.add(addresses.entry)
    Invalidation.objects.create(
        session=session, generation=Generation.objects.filter(session=session).get(), cause="correction"
    )
    Version.objects.create(app=settings.APP_NAME, knowledge="1")
    policy.write(None, "", policy.BUILT_IN, Mode.LIVE, seen=0)
    cut: dict[str, tuple[Any, tuple[str, ...], int]] = {
        "console_entry": (reading.Story, ("wordings", "verdicts", "decisions", "readers", "lookups"), 3),
        "console_pairing": (reading.Pairing, ("wordings", "verdicts"), 1),
        "console_session": (inventory.Conversation, ("",), 4),
        "console_versions": (inventory.App, ("scopes",), 1),
        "console_thresholds": (thresholds.Picture, ("history",), 1),
    }
    for name, (owner, limits, times) in cut.items():
        text = client.get(addresses.of(name)).content.decode()
        assert "there may be more" not in text and "lookups tell" not in text, name
        for limit in limits:
            monkeypatch.setattr(owner, f"most_{limit}".strip("_"), 1)
        text = client.get(addresses.of(name)).content.decode()
        assert text.count("; there may be more") == times, name
        assert ("As far as the last 1 lookups tell" in text) == (name == "console_entry")
        assert ("Not every wording, verdict and action" in text) == (name == "console_entry")


def test_a_pairing_s_page_shows_both_answers_and_what_differs(addresses: Addresses) -> None:
    client = signed_in(operator())
    client.post(reverse("console_take", args=[addresses.wording.pk]))
    text = client.get(addresses.of("console_pairing")).content.decode()
    assert "Yours until" in text and 'value="approve"' in text
    assert '<mark class="number">24</mark>' in text and '<mark class="number">36</mark>' in text
    assert '<mark class="number">X300</mark>' in text or '<mark class="name">X300</mark>' in text
    assert FRESH.split()[-1] in text


def test_who_may_only_look_can_decide_nothing(addresses: Addresses) -> None:
    text = signed_in(operator("vera", "view")).get(addresses.of("console_pairing")).content.decode()
    assert "Take it" not in text
    assert 'value="approve"' not in text
    assert "X200</mark>?" in text


def test_a_flush_is_on_record_beside_what_people_decide(addresses: Addresses) -> None:
    flush = AuditRecord.objects.create(
        action="flush",
        actor="manage.py flush_cache",
        selection={"content_class": "live"},
        before={"entries": 2_000},
        entries=1_234,
        status="interrupted",
    )
    client = signed_in(operator())
    text = client.get(addresses.of("console_audit")).content.decode()
    assert "1,234 entries" in text and "interrupted" in text and "manage.py flush_cache" in text
    one = client.get(reverse("console_action", args=[flush.batch])).content.decode()
    assert "live" in one and ">Undo<" not in one
    assert "1,234 of 2,000 deleted" in one and ">Go on<" in one and ">End it<" not in one
    undo = client.post(reverse("console_undo", args=[flush.batch]))
    assert undo.status_code == 400 and "can&#x27;t be undone" in undo.content.decode()


def test_checks_that_wait_are_shown(addresses: Addresses, scope: Scope) -> None:
    pairings = [addresses.wording, stored(scope, "What is asked besides?"), stored(scope, "And what else?")]
    for one in pairings:
        Check.objects.create(generation=generated(scope, one.question, ANSWER), wording=one)
    Check.objects.filter(wording=pairings[0]).update(claimed_by="a worker", claimed_at=timezone.now())
    client = signed_in(operator())
    for name, told in (("console", "<dd>2</dd>"), ("console_health", '<td class="number">2 </td>')):
        text = client.get(reverse(name)).content.decode()
        assert told in text.partition("Checks in the background that wait")[2][:120], name


@pytest.mark.parametrize("query", ["before=x", "before=-1", "action=x", "before=99999999999999999999"])
def test_audit_answers_nonsense_with_all_of_it(addresses: Addresses, query: str) -> None:
    response = signed_in(operator()).get(f"{addresses.of('console_audit')}?{query}")
    assert response.status_code == 200 and "a test" in response.content.decode()


def test_audit_is_filtered_and_paged(addresses: Addresses) -> None:
    for number in range(60):
        audit.record("somebody", "reject", [audit.Change(audit.ENTRY, uuid.uuid4())], f"Reason {number}.")
    client = signed_in(operator())
    address = addresses.of("console_audit")
    first = client.get(address).content.decode()
    assert "Reason 59." in first and "Reason 9." not in first
    older = re.search(r'rel="next"\s+href="([^"]*)"', first)
    second = client.get(address + older.group(1)).content.decode()
    assert "Reason 9." in second and "Reason 59." not in second and "a test" in second
    assert "Reason" not in client.get(f"{address}?actor=a+test").content.decode().partition("<tbody>")[2]
    about = client.get(f"{address}?about={addresses.wording.pk}&action=skip").content.decode()
    assert "a test" in about and "somebody" not in about.partition("<tbody>")[2]
