"""Counters of this process, in Prometheus' terms."""

from collections.abc import Callable, Iterable

from prometheus_client import REGISTRY, Counter, Histogram, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from inference.engines.base import EngineUnavailable

LOOKUPS = Counter("reprise_lookups", "Lookups by layer and outcome.", ["layer", "outcome"])
ANSWERS = Counter("reprise_answers", "Finished answers.", ["served_by", "status"])
STAGE_ERRORS = Counter("reprise_stage_errors", "Stages that failed and were skipped.", ["stage"])
EVICTED = Counter("reprise_evicted", "Entries that made room, by why they did.", ["cause"])
INVALIDATIONS = Counter("reprise_invalidations", "Messages read as taking something back.", ["cause"])
FIRST_TOKEN = Histogram(
    "reprise_first_token_seconds",
    "From the question's acceptance to its first delta.",
    ["served_by"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)


class EngineReport(Collector):
    """What the engine of this process says of its keys and values, asked at each scrape."""

    def __init__(self, report: Callable[[], dict[str, int]]) -> None:
        self._report = report

    def describe(self) -> Iterable[Metric]:
        """Registering must not ask an engine that is still starting, or far away."""
        return [self._family()]

    def collect(self) -> Iterable[Metric]:
        family = self._family()
        try:
            report = self._report()
        except EngineUnavailable:
            return  # no figures are better than old ones
        for what, value in report.items():
            family.add_metric([what], value)
        yield family

    def _family(self) -> GaugeMetricFamily:
        return GaugeMetricFamily(
            "reprise_engine_kv", "The engine's keys and values: kv_report.", labels=["what"]
        )


def watch_engine(report: Callable[[], dict[str, int]]) -> None:
    """Export `report` (an engine's kv_report) as reprise_engine_kv{what="..."}."""
    REGISTRY.register(EngineReport(report))
