"""What workers tell of their ledgers: who is believed, for how long, and how the command says it."""

import json
import uuid
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any, cast

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from inference import dispatch, live_ledger, workers
from inference.engines.base import Engine, EngineUnavailable
from inference.kv.ledger import Ledger
from inference.kv.shape import Shape
from inference.kv.snapshot import Snapshot, snapshot
from inference.redis import client
from tests.engines.conftest import model_dir  # noqa: F401  (a fixture)

SHAPE = Shape(layers=2, kv_heads=2, head_dim=4, item_bytes=4)


# A queue of these tests' own: the suite's stack may be serving the real one.
QUEUE = "ledger-test"


@pytest.fixture
def seat(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """This process has it, and has not announced itself yet."""
    monkeypatch.setattr(workers, "_seat", "")
    monkeypatch.setattr(dispatch, "SHARED", QUEUE)
    seat = workers.take_seat(f"{uuid.uuid4()}@here")
    yield seat
    client().delete(f"workers:{QUEUE}", f"workers:{QUEUE}:since", f"workers:ledger:{seat}")


def held() -> Snapshot:
    ledger = Ledger(SHAPE, limit=2**30)
    ledger.store("scope-a", 3 * 2**20)
    ledger.open("q#1", "scope-a", "session-1", 8192)
    ledger.open("q#2", "scope-a", "session-2", 8)
    return snapshot(ledger, more={"hit_ratio": 0.25})


def said(*arguments: Any) -> str:
    out = StringIO()
    call_command("kv_ledger", *arguments, stdout=out)
    return out.getvalue()


def test_only_live_workers_are_listed(seat: str) -> None:
    live_ledger.publish(held())
    assert live_ledger.found(QUEUE) == []
    workers.announce(QUEUE)
    (told,) = live_ledger.found(QUEUE)
    assert told.seat == seat and told.figures and told.age < 5
    assert told.figures["totals"]["stored_bytes"] == 3 * 2**20
    workers.withdraw(QUEUE)
    assert live_ledger.found(QUEUE) == []


def test_a_worker_does_not_inherit_the_figures_of_the_one_before(seat: str) -> None:
    live_ledger.publish(held())
    client().zadd(f"workers:{QUEUE}", {f"another:1:abc {seat}": workers.now()})
    (told,) = live_ledger.found(QUEUE)
    assert told.seat == seat and told.figures is None


def test_it_is_gone_when_the_worker_is(seat: str, settings: Settings) -> None:
    live_ledger.publish(held())
    assert 0 < client().pttl(f"workers:ledger:{seat}") <= settings.WORKER_ALIVE_SECONDS * 1000


def test_what_cannot_be_told_now_is_told_next_time(seat: str, monkeypatch: pytest.MonkeyPatch) -> None:
    workers.announce(QUEUE)
    monkeypatch.setattr(live_ledger, "LEAST_SECONDS", 0.01)
    monkeypatch.setattr(workers, "announce_seconds", lambda: 0.01)
    problems = [EngineUnavailable("far away"), RuntimeError("on purpose")]

    class Far:
        def kv_snapshot(self) -> Snapshot:
            if problems:
                raise problems.pop()
            return held()

        def kv_report(self) -> dict[str, int]:
            workers.leaving.set()
            return {"prefix_hits": 3}

    try:
        live_ledger.keep_publishing(cast(Engine, Far()))
    finally:
        workers.leaving.clear()
    (told,) = live_ledger.found(QUEUE)
    assert told.figures and not problems
    assert told.figures["report"] == {"prefix_hits": 3}


def test_the_command_says_what_they_told(seat: str, model_dir: Path) -> None:  # noqa: F811
    workers.announce(QUEUE)
    live_ledger.publish(held())
    found = json.loads(said("--model-dir", str(model_dir), "--live", "--json"))
    (worker,) = found["workers"]
    assert (worker["seat"], worker["engine"]) == (seat, "torch")
    assert worker["requests"][0] == {
        "request": "q#1",
        "session": "session-1",
        "scope": "scope-a",
        "tokens": 8192,
        "bytes": 2**20,
        "running": True,
        "killer": True,
    }
    lines = [line.split() for line in said("--model-dir", str(model_dir)).splitlines()]
    assert ["stored", "MiB", "3.0"] in lines
    assert ["hit", "ratio", "25.0%"] in lines
    assert ["scope-a", "3.0", "1.0", "0"] in lines
    assert ["q#1", "1.0", "8,192", "killer"] in lines


def test_an_engine_that_tells_nothing(seat: str, model_dir: Path) -> None:  # noqa: F811
    workers.announce(QUEUE)
    live_ledger.publish(Snapshot())
    assert "this engine doesn't tell what it holds" in said("--model-dir", str(model_dir), "--live")


def test_no_worker_is_an_error_only_where_one_is_asked_for(seat: str, model_dir: Path) -> None:  # noqa: F811
    model = ("--model-dir", str(model_dir))
    assert json.loads(said(*model, "--json"))["workers"] == []
    with pytest.raises(CommandError, match="No live worker: none runs"):
        said(*model, "--live")
    workers.announce(QUEUE)
    with pytest.raises(CommandError, match=r"1 worker\(s\) run, and none has told"):
        said(*model, "--live")
