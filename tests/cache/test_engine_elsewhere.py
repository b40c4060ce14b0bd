"""Answers of an engine behind a network: kept like any other when they are whole, never when they are not."""

import uuid
from typing import Any

import pytest
from prometheus_client import REGISTRY

from inference import engine, scopes, summaries
from inference.cache import gray
from inference.metrics import COMPUTED, REUSED, WRITTEN
from inference.models import Check, Entry, Generation, ServedBy, Session, Status, Summary
from tests.engines.faulty_server import Exchange, Faulty

from .conftest import Ask

pytestmark = pytest.mark.django_db(transaction=True)


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


def counted(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def tokens() -> list[float]:
    return [counted("reprise_tokens_total", kind=kind) for kind in (COMPUTED, REUSED, WRITTEN)]


@pytest.fixture
def check(server: Faulty, ask: Ask, settings: Any) -> Check:
    """One that waits to be taken up."""
    settings.OBSERVE_PER_MINUTE, settings.OBSERVE_SHARE = 1_000, 0.0
    ask("What is a cache?"), ask("What is a cache?")
    return Check.objects.get()


def summary() -> Summary:
    turns = [{"role": "user", "content": f"Question {at}, which is longer than hello?"} for at in range(4)]
    return Summary.objects.create(
        session=Session.objects.create(pk=uuid.uuid4()), covered="x", turns=turns, text="Extracted."
    )


def test_what_is_computed_for_nobody_in_particular_is_counted_too(check: Check) -> None:
    asked = Generation.objects.get(served_by=ServedBy.MODEL)
    one = [asked.prompt_tokens - asked.cached_tokens, asked.cached_tokens, asked.completion_tokens]
    assert all(one)
    before = tokens()
    assert gray.observe(check.pk) is not None
    assert tokens() == [was + more for was, more in zip(before, one, strict=True)]
    before = tokens()
    assert summaries.write(summary().pk)
    assert tokens() == [was + more for was, more in zip(before, one, strict=True)]


def test_an_engine_that_fails_at_it_is_counted_and_it_is_done_another_time(
    server: Faulty, check: Check
) -> None:
    said = summary()
    for stage, act in (
        ("check", lambda: gray.observe(check.pk)),
        ("summary", lambda: summaries.write(said.pk)),
    ):
        before = counted("reprise_stage_errors_total", stage=stage)
        server.faults = [refuses]
        assert not act()
        assert counted("reprise_stage_errors_total", stage=stage) == before + 1
    check.refresh_from_db()
    assert check.claimed_by == "" and gray.observe(check.pk) is not None


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
