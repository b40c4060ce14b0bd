"""The dashboard and the rules are what Grafana and Prometheus read, and ask for nothing that nobody tells."""

import re
import subprocess
from typing import Any

import pytest
import yaml

from launch.promtool import obtain

from .expressions import DEPLOY, RULES, dashboard, expressions, recorded, rules, series, targets

# What there must be an alert for, by the series that it must look at.
PROMISED = {
    "ReprisePenetrationRising": "reprise:penetration:ratio15m",
    "RepriseFalseHitBoundCrossed": "reprise_false_hit_share",
    "RepriseReviewQueueOld": "reprise_review_oldest_seconds",
    "RepriseWorkerSilent": "reprise_workers",
    "RepriseKvOverBudget": "reprise_kv_bytes",
}


def test_grafana_reads_the_dashboard() -> None:
    read = dashboard()
    assert (read.title, read.uid) == ("Reprise", "reprise")
    panels = read.panels or []
    assert len({panel.id_val for panel in panels}) == len(panels)
    drawn = [panel for panel in panels if panel.type_val == "timeseries"]
    assert len(drawn) >= 15 and all(panel.targets and panel.grid_pos for panel in drawn)
    places = {(panel.grid_pos.x, panel.grid_pos.y) for panel in panels if panel.grid_pos}
    assert len(places) == len(panels), "no panel lies on another"
    assert all(panel.grid_pos.x + panel.grid_pos.w <= 24 for panel in panels if panel.grid_pos)


@pytest.mark.parametrize("expression", expressions())
def test_prometheus_reads_the_expression(expression: str) -> None:
    assert series(expression) or expression.startswith("vector(")


def test_what_is_no_expression_is_refused() -> None:
    with pytest.raises(ValueError):
        series("sum by (layer) (rate(reprise_lookups_total[5m])")


def test_the_promised_alerts_are_there_and_say_something() -> None:
    alerts = {rule["alert"]: rule for rule in rules() if "alert" in rule}
    for name, watched in PROMISED.items():
        assert watched in series(alerts[name]["expr"])
    for rule in alerts.values():
        assert rule["annotations"]["summary"] and rule["labels"]["severity"] in ("warning", "critical")
        assert re.fullmatch(r"\d+[smh]", rule["for"])


def test_recorded_series_are_recorded() -> None:
    asked = set().union(*(series(one) for one in expressions()))
    assert {name for name in asked if ":" in name} <= recorded()


def test_counters_are_read_by_their_rise() -> None:
    """A counter by itself only grows: on a chart it says how long a process has run."""
    for _, expression in targets():
        for name in series(expression):
            if name.endswith(("_total", "_bucket")):
                assert re.search(rf"(rate|increase)\({name}\b", expression), expression


def test_gauges_that_every_web_process_tells_are_never_summed() -> None:
    shared = (
        *("reprise_queue_depth", "reprise_workers", "reprise_kv_bytes", "reprise_engine_kv"),
        *("reprise_review", "reprise_false"),
    )
    for expression in expressions():
        assert not re.search(rf"sum[^(]*\((?:{'|'.join(shared)})", expression), expression


@pytest.fixture(scope="module")
def promtool() -> str:
    """Fails where there is none, and none can be had."""
    return obtain()


@pytest.mark.parametrize(
    "command",
    [
        ("check", "rules", "reprise.rules.yml"),
        ("test", "rules", "reprise.rules.test.yml"),
        ("check", "config", "--syntax-only", "prometheus.yml"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_promtool_agrees(promtool: str, command: tuple[str, ...]) -> None:
    done = subprocess.run([promtool, *command], cwd=RULES.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_that_was_promised_has_a_test_of_its_own() -> None:
    tests: Any = yaml.safe_load((DEPLOY / "prometheus" / "reprise.rules.test.yml").read_text())
    tried = {
        one["alertname"]: bool(one["exp_alerts"])
        for test in tests["tests"]
        for one in test["alert_rule_test"]
        if one["exp_alerts"]
    }
    assert set(PROMISED) <= set(tried)
