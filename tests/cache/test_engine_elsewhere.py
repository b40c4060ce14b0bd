"""Answers of an engine behind a network: kept like any other when they are whole, never when they are not."""

from collections.abc import Iterator
from typing import Any

import pytest

from inference import engine, scopes
from inference.models import Entry, Generation, ServedBy, Status
from tests.engines.faulty_server import Exchange, Faulty, faulty_server

from .conftest import Ask

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Faulty]:
    """What ENGINE=openai asks."""
    with faulty_server() as running:
        settings.ENGINE = "openai"
        settings.OPENAI_BASE_URL = f"{running.url}/v1"
        settings.OPENAI_MODEL = "a-model"
        settings.ENGINE_WINDOW = 2048
        monkeypatch.setattr(engine, "_engine", None)
        yield running


def breaks(exchange: Exchange) -> None:
    exchange.begin()
    exchange.text("Half an ")
    exchange.break_off()


def busy(exchange: Exchange) -> None:
    exchange.refuse(503)


def refuses(exchange: Exchange) -> None:
    exchange.refuse(400, '{"error": {"message": "no"}}')


def test_a_whole_answer_is_kept(server: Faulty, ask: Ask) -> None:
    first, second = ask("What is a cache?"), ask("What is a cache?")
    assert (first.text, first.served_by, first.cached_tokens) == ("Hello there", ServedBy.MODEL, 5)
    assert (second.text, second.served_by) == ("Hello there", ServedBy.EXACT)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("faults", "error", "text"),
    [
        ([busy] * 3, "engine_unavailable", ""),
        ([breaks], "engine_unavailable", "Half an "),
        ([refuses], "engine_failed", ""),
    ],
)
def test_an_error_is_no_answer_and_is_not_kept(
    server: Faulty, ask: Ask, faults: list[Any], error: str, text: str
) -> None:
    server.faults = list(faults)
    failed = ask("What is a cache?")
    assert (failed.status, failed.error_code, failed.text) == (Status.FAILED, error, text)
    assert not Entry.objects.exists()
    again = ask("What is a cache?")
    assert (again.status, again.text, again.served_by) == (Status.COMPLETE, "Hello there", ServedBy.MODEL)


def test_another_endpoint_is_another_scope(server: Faulty, settings: Any) -> None:
    first = scopes.current()
    settings.OPENAI_MODEL = "another " + "long name" * 40
    second = scopes.current()
    settings.OPENAI_MODEL += "!"  # beyond what the column shows
    assert len({first.hash, second.hash, scopes.current().hash}) == 3


def test_settings_that_are_none_are_said(server: Faulty, settings: Any, ask: Ask) -> None:
    settings.OPENAI_MODEL = ""
    failed = ask("What is a cache?")
    assert (failed.status, failed.error_code) == (Status.FAILED, "engine_unavailable")
    assert Generation.objects.get().text == ""


def test_a_worker_lets_go_of_its_engine(server: Faulty, ask: Ask) -> None:
    ask("What is a cache?")
    held = engine.engine()
    engine.close()
    assert engine.engine() is not held
    assert ask("What is a cache?", fresh=True).text == "Hello there"
    engine.close()
    engine.close()
