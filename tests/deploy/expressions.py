"""What stands in deploy/, read by the parsers of those it is for."""

import json
import re
from collections.abc import Iterator
from typing import Any

import promql_parser
import yaml
from grafana_foundation_sdk.models.dashboard import Dashboard

from launch.options import REPOSITORY

DEPLOY = REPOSITORY / "deploy"
RULES = DEPLOY / "prometheus" / "reprise.rules.yml"
DASHBOARD = DEPLOY / "grafana" / "reprise.json"


def rules() -> list[dict[str, Any]]:
    read = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    return [rule for group in read["groups"] for rule in group["rules"]]


def dashboard() -> Dashboard:
    return Dashboard.from_json(json.loads(DASHBOARD.read_text(encoding="utf-8")))


def targets() -> Iterator[tuple[str, str]]:
    """Title of the panel and expression, with Grafana's own variables filled in as it would."""
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"].replace("$__rate_interval", "1m")


def expressions() -> list[str]:
    annotations = json.loads(DASHBOARD.read_text(encoding="utf-8"))["annotations"]["list"]
    return [
        *(rule["expr"] for rule in rules()),
        *(expression for _, expression in targets()),
        *(one["expr"] for one in annotations),
    ]


def series(expression: str) -> set[str]:
    """The names of the series that an expression selects. Raises ValueError for one that is none."""
    found: set[str] = set()

    def see(node: promql_parser.Expr) -> bool:
        if isinstance(node, promql_parser.VectorSelector):
            found.add(node.name)
        return True

    promql_parser.walk(promql_parser.parse(expression), see)
    return found


def recorded() -> set[str]:
    return {rule["record"] for rule in rules() if "record" in rule}


def scraped_for(names: set[str]) -> set[str]:
    """The names that must be in a scrape for these series."""
    return {name for name in names - recorded() if not re.fullmatch(r"ALERTS.*", name)}
