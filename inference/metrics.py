"""Counters of this process, in Prometheus' terms."""

from prometheus_client import Counter, Histogram

LOOKUPS = Counter("reprise_lookups", "Lookups by layer and outcome.", ["layer", "outcome"])
ANSWERS = Counter("reprise_answers", "Finished answers.", ["served_by", "status"])
STAGE_ERRORS = Counter("reprise_stage_errors", "Stages that failed and were skipped.", ["stage"])
FIRST_TOKEN = Histogram(
    "reprise_first_token_seconds",
    "From the question's acceptance to its first delta.",
    ["served_by"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
