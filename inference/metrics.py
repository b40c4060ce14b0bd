"""What this process counts, in Prometheus' terms, and how it is told.

Where PROMETHEUS_MULTIPROC_DIR is set (as `make run` does), all processes of a machine count into one folder,
and any web process tells the sums of them all. Where it isn't, each process tells what it has counted itself:
web processes under /metrics, workers on METRICS_PORT. So nothing is told twice. An engine's figures are no
counts of a process: a worker tells them in Valkey (`live_ledger`), and any web process passes them on.
"""

import os
from collections.abc import Sequence

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

if folder := os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
    os.makedirs(folder, exist_ok=True)  # the first counter opens a file there

LOOKUPS = Counter("reprise_lookups", "Questions looked up, by layer and outcome.", ["layer", "outcome"])
LOOKUP_SECONDS = Histogram(
    "reprise_lookup_seconds",
    "What looking for a stored answer took.",
    ["outcome"],
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
)
ANSWERS = Counter("reprise_answers", "Finished answers.", ["served_by", "status"])
TOKENS = Counter("reprise_tokens", "Tokens of the engines: read anew, not read anew, written.", ["kind"])
STAGE_ERRORS = Counter("reprise_stage_errors", "Stages that failed and were skipped.", ["stage"])
EVICTED = Counter("reprise_evicted", "Entries that made room, by why they did.", ["cause"])
INVALIDATIONS = Counter("reprise_invalidations", "What was taken back, by what took it back.", ["cause"])
JUDGED = Counter("reprise_judged", "What a strong engine was asked for, and what it said.", ["use", "said"])
INVALIDATED = Counter("reprise_invalidated_entries", "Entries that this touched.", ["cause"])
OBSERVATIONS = Counter("reprise_observations", "Verdicts on stored answers.", ["source", "verdict"])
FIRST_TOKEN = Histogram(
    "reprise_first_token_seconds",
    "From the question's acceptance to its first delta.",
    ["served_by"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)

COMPUTED, REUSED, WRITTEN = "prompt_computed", "prompt_reused", "answer"
_STAGES = (
    *("signals", "exact", "fuzzy", "semantic", "embedding", "verifier", "books", "decision", "coalesce"),
    *("dispatch", "affinity", "stream", "database", "queue", "engine", "answer", "generate", "write_back"),
    *("summary", "announcement", "farewell", "behaviour", "shadow", "check", "judge"),
)


def declare(causes: Sequence[str], outcomes: Sequence[str]) -> None:
    """Begin at zero what may be counted for the first time much later: what first appears as 1 has not risen,
    as Prometheus sees it."""
    for stage in _STAGES:
        STAGE_ERRORS.labels(stage=stage)
    for cause in ("over", "expired", "worth"):
        EVICTED.labels(cause=cause)
    for kind in (COMPUTED, REUSED, WRITTEN):
        TOKENS.labels(kind=kind)
    for cause in causes:
        INVALIDATIONS.labels(cause=cause)
        INVALIDATED.labels(cause=cause)
    for outcome in outcomes:
        LOOKUP_SECONDS.labels(outcome=outcome)


def looked_up(layer: str, outcome: str, milliseconds: float) -> None:
    """Count a lookup that took so long."""
    LOOKUPS.labels(layer=layer, outcome=outcome).inc()
    LOOKUP_SECONDS.labels(outcome=outcome).observe(milliseconds / 1000)


def computed(prompt: int, cached: int, written: int) -> None:
    """Count the tokens of one run of an engine, whoever it was for; `cached` of those of its prompt were not
    read anew."""
    TOKENS.labels(kind=COMPUTED).inc(max(0, prompt - cached))
    TOKENS.labels(kind=REUSED).inc(cached)
    TOKENS.labels(kind=WRITTEN).inc(written)


def took_back(cause: str, entries: int) -> None:
    """Count that something was taken back, which touched so many entries."""
    INVALIDATIONS.labels(cause=cause).inc()
    INVALIDATED.labels(cause=cause).inc(entries)


# --- telling ----------------------------------------------------------------------------------------


def are_shared() -> bool:
    """Do the processes of this machine count into one folder?"""
    return bool(os.environ.get("PROMETHEUS_MULTIPROC_DIR"))


def exposition(*more: Collector) -> bytes:
    """What was counted, in Prometheus' text format: by all processes of this machine if they share a folder,
    else by this one; and what `more` finds out now."""
    asked = CollectorRegistry()
    for collector in more:
        asked.register(collector)
    if not are_shared():
        return generate_latest(REGISTRY) + generate_latest(asked)
    counted = CollectorRegistry()
    MultiProcessCollector(counted)  # type: ignore[no-untyped-call]
    return generate_latest(counted) + generate_latest(asked)
