"""What every benchmark reports the same way: the machine, the versions, percentiles, targets."""

import json
import os
import platform
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

PACKAGES = ("celery", "channels", "django", "psycopg", "redis", "torch", "transformers", "uvicorn")


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of the values lie, by nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered)) - 1))]


def spread(values: Sequence[float]) -> dict[str, float]:
    """Count, p50 and p99 of milliseconds."""
    return {
        "n": len(values),
        "p50": round(percentile(values, 0.5), 2),
        "p99": round(percentile(values, 0.99), 2),
    }


def target(name: str, value: float, goal: str, holds: bool) -> dict[str, Any]:
    return {"name": name, "value": round(value, 2), "goal": goal, "holds": holds}


def unmeasured(name: str, goal: str, why: str) -> dict[str, Any]:
    """A target of which this run can't say whether it holds."""
    return {"name": name, "value": None, "goal": goal, "holds": None, "why": why}


def machine() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(memory, 1),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def report(name: str, measured: dict[str, Any], targets: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "benchmark": name,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "versions": {package: version(package) for package in PACKAGES},
        **more,
        "measured": measured,
        "targets": targets,
    }


def show(result: dict[str, Any], as_json: bool, lines: Callable[[dict[str, Any]], list[str]]) -> None:
    """One JSON object, or the same for people."""
    if as_json:
        print(json.dumps(result, ensure_ascii=False, indent=2))
        return
    for line in lines(result["measured"]):
        print(line)
    for one in result["targets"]:
        print(f"{_verdict(one):14}{one['name']}: {one.get('why') or one['value']} ({one['goal']})")


def _verdict(target: dict[str, Any]) -> str:
    return {None: "not measured", True: "holds", False: "FALLS SHORT"}[target["holds"]]
