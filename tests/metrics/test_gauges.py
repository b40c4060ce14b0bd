"""What is asked at each scrape, against what is there."""

import re
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from cacheadmin import gauges
from inference import live_ledger, pipeline, service, workers
from inference.kv.snapshot import Snapshot
from inference.models import Check, Generation, Observation, Scope, ServedBy, State, Verdict, Wording
from inference.redis import client as valkey
from inference.scopes import for_measuring
from inference.understanding.turns import Turn
from launch.options import REPOSITORY
from tests.cache.conftest import stored

from . import test_scraping


def value(text: str, name: str, **labels: str) -> Any:
    """A number, or None where nothing is told."""
    return test_scraping.value(text, name, **labels)


@pytest.fixture(autouse=True)
def _afresh(db: None) -> None:
    valkey().flushdb()
    gauges.MEMORY.forget()


@pytest.fixture
def scope(db: None) -> Scope:
    return for_measuring("tests")


def scrape(client: Client) -> str:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    return answer.content.decode()


def asked(text: str) -> Generation:
    turns: list[Turn] = [{"role": "user", "content": text}]
    return service.ask(uuid.uuid4(), turns)


def test_queues_and_workers(client: Client) -> None:
    workers.announce("generate")
    for number in range(3):
        asked(f"What is {number}?")
    pipeline.answer(str(asked("What is four?").pk))
    told = scrape(client)
    assert value(told, "reprise_queue_depth", queue="answer") == 3
    assert value(told, "reprise_queue_depth", queue="generate") == 1
    assert value(told, "reprise_queue_depth", queue="check") == 0
    assert value(told, "reprise_workers", queue="generate") == 1
    assert value(told, "reprise_workers", queue="answer") == 0
    assert value(told, "reprise_longest_wait_seconds") >= 0
    assert {value(told, "reprise_part_up", part=part) for part in ("database", "valkey")} == {1}


def test_checks_that_wait(client: Client, scope: Scope) -> None:
    pairings = [stored(scope, f"What is {number}?") for number in range(3)]
    checks = [Check.objects.create(generation=asked("Any?"), wording=one) for one in pairings]
    Check.objects.filter(pk=checks[0].pk).update(claimed_by="a worker", claimed_at=timezone.now())
    assert value(scrape(client), "reprise_queue_depth", queue="check") == 2


def test_every_stage_that_is_counted_begins_at_zero(client: Client) -> None:
    """What first appears as 1 has not risen, as Prometheus sees it."""
    found = {
        stage
        for path in (REPOSITORY / "inference").rglob("*.py")
        for stage in re.findall(r'STAGE_ERRORS\.labels\(stage="(\w+)"\)', path.read_text())
    }
    assert {"behaviour", "shadow", "check", "summary"} <= found
    told = scrape(client)
    assert not [stage for stage in found if value(told, "reprise_stage_errors_total", stage=stage) is None]


def test_how_long_the_oldest_suspect_waits(client: Client, scope: Scope) -> None:
    assert value(scrape(client), "reprise_review_oldest_seconds") == 0
    gauges.MEMORY.forget()
    for hours in (30, 3):
        pairing = stored(scope, f"What is {hours}?")
        Wording.objects.filter(pk=pairing.pk).update(
            state=State.SUSPECT, created_at=timezone.now() - timedelta(hours=hours)
        )
    old = stored(scope, "What was proved long ago, and is doubted since this morning?")
    Wording.objects.filter(pk=old.pk).update(
        state=State.SUSPECT, created_at=timezone.now() - timedelta(days=90)
    )
    Observation.objects.create(generation=asked("Any?"), wording=old, verdict=Verdict.DISAGREE, source="user")
    told = scrape(client)
    assert value(told, "reprise_review_waiting") == 3
    assert value(told, "reprise_review_oldest_seconds") == pytest.approx(30 * 3600, abs=60)


def test_the_estimate_of_wrong_hits_and_its_bounds(client: Client, scope: Scope) -> None:
    told = scrape(client)
    assert value(told, "reprise_false_hit_share", bound="estimate") is None, "nothing is known yet"
    gauges.MEMORY.forget()
    pairing = stored(scope, "What is asked often?")
    for number in range(20):
        generation = asked(f"What is {number}?")
        served = ServedBy.EXACT if number < 18 else ServedBy.MODEL
        Generation.objects.filter(pk=generation.pk).update(served_by=served)
        verdict = Verdict.DISAGREE if number in (0, 19) else Verdict.AGREE
        Observation.objects.create(generation=generation, wording=pairing, verdict=verdict, source="user")
    told = scrape(client)
    assert value(told, "reprise_judged_hits", verdict="agree") == 17
    assert value(told, "reprise_judged_hits", verdict="disagree") == 1
    low, estimate, high = (
        value(told, "reprise_false_hit_share", bound=bound) for bound in ("low", "estimate", "high")
    )
    assert estimate == pytest.approx(1 / 18)
    assert 0 < low < estimate < high < 0.3


@pytest.mark.parametrize("shared", [False, True], ids=["own figures", "one folder for all processes"])
def test_what_engines_report_is_told_by_worker(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shared: bool
) -> None:
    """The engine is in another process: what that one counts is not what this one exposes."""
    if shared:
        monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    else:
        monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR", raising=False)
    monkeypatch.setattr(workers, "_seat", "")
    for seat, hits in (("one", 640), ("two", 32)):
        workers.take_seat(seat)
        workers.announce("generate")
        live_ledger.publish(
            Snapshot({"live_bytes": 2**20}), {"prefix_hits": hits, "prefix_queries": 900, "recall_hits": 0}
        )
    told = scrape(client)
    assert value(told, "reprise_engine_kv", seat="generate.one", what="prefix_hits") == 640
    assert value(told, "reprise_engine_kv", seat="generate.two", what="prefix_hits") == 32
    assert value(told, "reprise_engine_kv", what="prefix_queries") == 1800
    assert value(told, "reprise_engine_kv", what="recall_hits") == 0
    assert value(told, "reprise_kv_bytes", seat="generate.one", what="live") == 2**20
    workers.withdraw("generate")
    assert value(scrape(client), "reprise_engine_kv", seat="generate.two") is None, "gone with its worker"


def test_without_valkey_the_rest_is_told(client: Client, settings) -> None:
    before, settings.REDIS_URL = settings.REDIS_URL, "redis://127.0.0.1:1/0"
    valkey.cache_clear()
    try:
        told = scrape(client)
    finally:
        settings.REDIS_URL = before
        valkey.cache_clear()
    assert value(told, "reprise_part_up", part="valkey") == 0
    assert value(told, "reprise_part_up", part="database") == 1
    assert value(told, "reprise_queue_depth", queue="answer") == 0
    assert value(told, "reprise_workers") is None
