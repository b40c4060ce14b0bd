"""What is asked of the database and of Valkey at each scrape: how much waits, who is alive, what is held.
Every web process finds the same, so of several the largest counts, and never their sum.
"""

from collections.abc import Iterable, Iterator

import redis
import structlog
from django.db import DatabaseError, InterfaceError, connection
from django.db.models import Count, Q
from django.utils import timezone
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from inference import dispatch, live_ledger, workers
from inference.cache import gray
from inference.models import Generation, Status, Verdict

from . import figures
from .remembering import Memory

log = structlog.get_logger(__name__)

# The two that read many rows change over hours: once a minute is enough.
MEMORY = Memory(seconds=60.0)
# Verdicts of so long ago say something of the hits of now.
_LATELY = "7d"
# A longer queue of checks is not told from this one: they are dropped after an hour.
_MANY = 10_000
_KV = ("held", "stored", "live", "idle", "budget")

Family = GaugeMetricFamily


class Gauges(Collector):
    """Each family is asked for on its own: one that can't be had is left out, and said in reprise_part_up."""

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        up = Family("reprise_part_up", "Could it be asked?", labels=["part"])
        for part, ask in (("database", _of_the_database), ("valkey", _of_valkey)):
            try:
                families = list(ask())
            except (DatabaseError, InterfaceError, redis.RedisError) as error:
                log.warning("gauges_missing", part=part, error=str(error).strip())
                families = []
            up.add_metric([part], float(bool(families)))
            yield from families
        yield up


def _of_the_database() -> list[Family]:
    return [*_queues(), *MEMORY.get("review", _review), *MEMORY.get("hits", _false_hits)]


def _of_valkey() -> list[Family]:
    return [_workers(), *_kv()]


def _queues() -> Iterator[Family]:
    waiting = Generation.objects.filter(status=Status.PENDING)
    running = Q(status=Status.RUNNING, leader=None)
    open_now = Generation.objects.filter(Q(status=Status.PENDING) | running).aggregate(
        answer=Count("pk", filter=Q(status=Status.PENDING, looked_up=False)),
        generate=Count("pk", filter=Q(status=Status.PENDING, looked_up=True)),
        written=Count("pk", filter=running),
    )
    waits = "Questions, and checks in the background, that wait for a worker."
    depth = Family("reprise_queue_depth", waits, labels=["queue"])
    for queue in ("answer", "generate"):
        depth.add_metric([queue], open_now[queue])
    depth.add_metric(["check"], gray.waiting(_MANY))
    yield depth
    yield Family("reprise_open_answers", "Answers being looked up or written.", value=open_now["written"])
    oldest = waiting.order_by("heartbeat_at").values_list("created_at", flat=True).first()
    waited = (timezone.now() - oldest).total_seconds() if oldest else 0.0
    yield Family("reprise_longest_wait_seconds", "Of the question that waits longest.", value=waited)


# Since when a pairing waits: since the last verdict on it, or since it is there.
_WAITING = """
    SELECT count(*), extract(epoch FROM now() - min(GREATEST(w.created_at, coalesce(
        (SELECT max(o.updated_at) FROM inference_observation o WHERE o.wording_id = w.id), w.created_at))))
    FROM inference_wording w JOIN inference_entry e ON e.id = w.entry_id
    WHERE w.state = 'suspect' AND e.state IN ('suspect', 'active') AND e.expires_at > now()
"""


def _review() -> list[Family]:
    with connection.cursor() as cursor:
        cursor.execute(_WAITING)
        waiting, oldest = cursor.fetchone()
    return [
        Family("reprise_review_waiting", "Suspect pairings in review.", value=waiting),
        Family("reprise_review_oldest_seconds", "How long the oldest waits.", value=float(oldest or 0)),
    ]


def _false_hits() -> list[Family]:
    """The share of wrong hits lately, as the console estimates it, and between which ends it lies with 95%
    confidence."""
    judged, found = figures.false_hits(_LATELY)
    share = Family("reprise_false_hit_share", "Of the hits of a week.", labels=["bound"])
    if found:
        for bound, value in (("low", found.low), ("estimate", found.share), ("high", found.high)):
            share.add_metric([bound], value)
    total, wrong = (sum(counts) for counts in zip((0, 0), *judged.by_gray.values(), strict=True))
    verdicts = Family("reprise_judged_hits", "Verdicts on hits of a week.", labels=["verdict"])
    verdicts.add_metric([Verdict.AGREE], total - wrong)
    verdicts.add_metric([Verdict.DISAGREE], wrong)
    return [share, verdicts]


def _workers() -> Family:
    alive = Family("reprise_workers", "Workers that were heard of lately.", labels=["queue"])
    for queue in ("answer", "generate"):
        alive.add_metric([queue], workers.alive(queue))
    return alive


def _kv() -> list[Family]:
    """What each worker with an engine told last of its keys and values: bytes in the same words for every
    engine, and all that its engine has to say."""
    held = Family("reprise_kv_bytes", "Keys and values, by worker.", labels=["seat", "what"])
    report = Family("reprise_engine_kv", "The engine's own figures, by worker.", labels=["seat", "what"])
    for told in live_ledger.found(dispatch.SHARED):
        figures = told.figures or {}
        totals = figures.get("totals", {})
        for what in _KV:
            if (value := totals.get(f"{what}_bytes")) is not None:
                held.add_metric([told.seat, what], value)
        for what, value in figures.get("report", {}).items():
            report.add_metric([told.seat, what], value)
    return [held, report]
