"""How long the console's pages take the server in a large cache: every page that is read, with every filter.

`python -m benchmarks.console --json [--quick] [--entries N --decisions N]`. It fills the database of
DATABASE_URL (or an embedded one in a folder of its own, which is deleted); it does not empty it again.
"""

import argparse
import json
import time
from typing import Any

from benchmarks.database import migrated
from benchmarks.report import percentile, report, show, target

GOAL_MS = 300


def main() -> None:
    options = _options()
    with migrated("console", settings="config.settings.test"):
        found = measure(options.entries, options.decisions, options.runs)
    show(report("console", found, _targets(found)), options.json, _lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="small tables, under a minute")
    parser.add_argument("--entries", type=int, default=200_000)
    parser.add_argument("--decisions", type=int, default=2_000_000, help="over the last 30 days")
    parser.add_argument("--runs", type=int, default=40, help="of each page")
    options = parser.parse_args()
    if options.quick:
        options.entries, options.decisions, options.runs = 2_000, 20_000, 10
    return options


def measure(entries: int, decisions: int, runs: int) -> dict[str, Any]:
    from django.contrib.auth.models import User
    from django.test import Client

    from benchmarks.console_rows import fill
    from config.garbage import settle

    started = time.perf_counter()
    filled = fill(entries, decisions)
    seconds = time.perf_counter() - started
    settle()  # as the web process does
    client = Client()
    client.force_login(User.objects.create_superuser("benchmark"))
    pages = {name: _times(client, addresses, runs) for name, addresses in filled.pages().items()}
    everything = [one for times in pages.values() for one in times]
    return {
        "rows": {"entries": entries, "decisions": decisions, "fill_seconds": round(seconds, 1)},
        "pages_ms": {name: _spread(times) for name, times in pages.items()},
        "all_ms": _spread(everything),
        # Against the page that asks least of the database.
        "ratio": round(percentile(everything, 0.5) / percentile(pages["audit"], 0.5), 2),
    }


def _spread(times: list[float]) -> dict[str, float]:
    return {
        "n": len(times),
        "p50": round(percentile(times, 0.5), 1),
        "p95": round(percentile(times, 0.95), 1),
        "max": round(max(times), 1),
    }


def _times(client: Any, addresses: list[str], runs: int) -> list[float]:
    from cacheadmin import thresholds

    times = []
    for at in range(runs + 2):
        address = addresses[at % len(addresses)]
        thresholds.forget()  # what was found out is remembered for a slider's sake
        started = time.perf_counter()
        response = client.get(address, headers={"Host": "localhost"})
        took = (time.perf_counter() - started) * 1000
        assert response.status_code == 200, (address, response.status_code)
        if at >= 2:  # templates are compiled, and the tables' first pages read
            times.append(took)
    return times


def _targets(found: dict[str, Any]) -> list[dict[str, Any]]:
    goal = f"<= {GOAL_MS} ms"
    pages = [
        target(f"{name}, p95", times["p95"], goal, times["p95"] <= GOAL_MS)
        for name, times in found["pages_ms"].items()
    ]
    total = found["all_ms"]["p95"]
    return [target("every page, p95", total, goal, total <= GOAL_MS), *pages]


def _lines(found: dict[str, Any]) -> list[str]:
    return [f"{name}: {json.dumps(value)}" for name, value in found.items()]


if __name__ == "__main__":
    main()
