"""The console's websocket: who is told, of what, and that nothing is told that a page would not show."""

import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.models import User

from cacheadmin import audit, live, pulse
from cacheadmin.models import AuditRecord
from config.asgi import application
from inference.scopes import for_measuring

from .conftest import doubted, operator, signed_in, stored
from .test_pages import people

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "EVERY_SECONDS", 0.05)
    monkeypatch.setattr(pulse, "_FRESH_SECONDS", 0.0)
    monkeypatch.setattr(pulse, "_last", None)


def page_of(user: User | None, origin: str = "http://testserver") -> Any:
    """A page that has asked for the socket."""
    headers = [(b"host", b"testserver"), (b"origin", origin.encode())]
    if user is not None:
        headers.append((b"cookie", f"sessionid={signed_in(user).cookies['sessionid'].value}".encode()))
    scope = {"type": "websocket", "path": "/ws/console/", "query_string": b"", "headers": headers}
    return ApplicationCommunicator(application, scope)  # type: ignore[no-untyped-call]


async def open_page(user: User | None, origin: str = "http://testserver") -> Any:
    page = await sync_to_async(page_of)(user, origin)
    await page.send_input({"type": "websocket.connect"})
    return page


async def said(page: Any) -> dict[str, Any]:
    found: dict[str, Any] = await page.receive_output(timeout=10)
    return found


async def told(page: Any) -> Any:
    frame = await said(page)
    assert frame["type"] == "websocket.send", frame
    return json.loads(frame["text"])


async def leave(page: Any) -> None:
    await page.send_input({"type": "websocket.disconnect", "code": 1000})
    await page.wait(timeout=10)


async def test_only_who_may_look_is_told_anything() -> None:
    everyone = await sync_to_async(people)("view")
    for user, opens in [*everyone, (None, False)]:
        page = await open_page(user)
        assert (await said(page))["type"] == "websocket.accept"
        if opens:
            assert await told(page) == {"changed": [], "suspects": 0}, user
            await page.send_input({"type": "websocket.receive", "text": '{"type": "anything"}'})
        else:
            closed = await said(page)
            assert (closed["type"], closed["code"]) == ("websocket.close", 4403 if user else 4401), user
        await leave(page)


async def test_a_page_of_another_origin_gets_no_socket() -> None:
    user = await sync_to_async(operator)()
    page = await open_page(user, "http://evil.example")
    assert (await said(page))["type"] == "websocket.close"
    await leave(page)


async def test_it_says_what_has_changed_and_no_more() -> None:
    user = await sync_to_async(operator)()
    page = await open_page(user)
    await said(page)
    assert (await told(page))["suspects"] == 0

    def doubt() -> None:
        doubted(stored(for_measuring("console tests")).entry)

    await sync_to_async(doubt)()
    found: set[str] = set()
    suspects = 0
    while found != {"lookups", "queue"}:
        news = await told(page)
        assert set(news) == {"changed", "suspects"}
        found, suspects = found | set(news["changed"]), news["suspects"]
    assert suspects == 1
    await sync_to_async(audit.record)(user, "skip", [audit.Change(audit.WORDING, 1)])
    assert (await told(page))["changed"] == ["audit", "flush"]
    await leave(page)


async def test_who_may_no_longer_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_CHECKED_EVERY", 2)
    user = await sync_to_async(operator)()
    page = await open_page(user)
    await said(page)
    await told(page)
    await sync_to_async(user.user_permissions.clear)()
    closed = await said(page)
    assert (closed["type"], closed["code"]) == ("websocket.close", 4403)
    await leave(page)


def test_a_flush_that_was_quick_has_happened_all_the_same() -> None:
    """Who looked before it began and after it was done has seen it."""
    before = pulse.now()
    record = AuditRecord.objects.create(action="flush", actor="olga", status="running")
    AuditRecord.objects.filter(pk=record.pk).update(status="done", entries=12)
    assert "flush" in pulse.now().beside(before)
