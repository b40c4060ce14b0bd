"""How long a decision takes in a large cache: exact, and by meaning; what an entry weighs; how fast entries
are stored; and the same questions through GPTCache (sqlite + faiss, the same embedder).

A million entries take a while to load: `--folder F --fill` does that and ends; without `--fill` the same
command measures what F holds. Without a folder both happen in one that is deleted.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import lookup_gptcache
from benchmarks.database import migrated
from benchmarks.lookup_questions import question, reworded
from benchmarks.report import report, show, spread, target
from launch.options import REPOSITORY

if TYPE_CHECKING:
    from benchmarks.lookup_rows import Filled

_INSERTED = 200
# Asked before anything is counted: a database that was just started reads its index from files.
_WARMING = 1_000
_EXACTLY_SEARCHED = 100


def main() -> None:
    options = _options()
    numbers = _numbers(options)
    with migrated("lookup", options.folder, own=True):
        from benchmarks.lookup_rows import Filled

        filled = Filled()
        filling = None
        if not filled.rows:
            filling = filled.fill(options.scope_rows, options.rows, set(numbers), _say)
        if options.fill:
            print(json.dumps(filling))
            return
        found: dict[str, Any] = {
            "entries": {"scope": filled.scope_rows, "table": filled.rows},
            "filling": filling,
        }
        found |= measure(filled, numbers)
    found["gptcache"] = theirs = _gptcache(options, numbers)
    if "other_words_ms" in theirs:
        found["ratio"] = {
            "exact": round(theirs["same_words_ms"]["p50"] / found["exact_ms"]["p50"], 2),
            "semantic": round(theirs["other_words_ms"]["p50"] / found["semantic_ms"]["p50"], 2),
        }
    show(report("lookup", found, _targets(found), quick=options.quick), options.json, _lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lookup", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="small tables, under a minute, without GPTCache")
    parser.add_argument("--scope-rows", type=int, default=100_000, help="entries in the scope that is asked")
    parser.add_argument("--rows", type=int, default=1_000_000, help="entries in the table, all scopes")
    parser.add_argument("--asked", type=int, default=500, help="questions of each kind")
    parser.add_argument("--folder", type=Path, help="keep the database here")
    parser.add_argument("--fill", action="store_true", help="fill the folder's database and end")
    parser.add_argument(
        "--gptcache", type=int, default=10_000, help="entries to give GPTCache; 0: without it"
    )
    parser.add_argument("--gptcache-python", help="of an environment that has it, instead of making one")
    options = parser.parse_args()
    if options.quick:
        options.scope_rows, options.rows, options.asked, options.gptcache = 500, 1_000, 50, 0
    return options


def _numbers(options: argparse.Namespace) -> list[int]:
    """Of the questions asked; GPTCache holds them too, since it is given the first ones."""
    among = min(options.scope_rows, options.gptcache or options.scope_rows)
    return random.Random(7).sample(range(among), min(options.asked, among))


def _say(done: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{done:60}", end="", file=sys.stderr, flush=True)


# --- measuring ------------------------------------------------------------------------------------------


def measure(filled: "Filled", numbers: list[int]) -> dict[str, Any]:
    outcomes: Counter[str] = Counter()

    def semantic(at: int) -> None:
        outcomes[filled.semantic(reworded(at)).outcome] += 1

    exact = spread(_times(lambda at: filled.exact(question(at)), numbers))
    others = sorted({*range(min(filled.scope_rows, 10 * _WARMING))} - {*numbers})
    others = random.Random(8).sample(others, min(_WARMING, len(others)))
    cold = spread(_times(lambda at: filled.semantic(reworded(at)), others))
    return {
        "exact_ms": exact,
        "semantic_after_a_start_ms": cold,
        "semantic_ms": spread(_times(semantic, numbers)),
        "semantic_outcomes": dict(outcomes),
        "index_recall": filled.recall([reworded(at) for at in numbers[:_EXACTLY_SEARCHED]]),
        "inserts_per_second": filled.inserts_per_second(min(_INSERTED, len(numbers))),
        "bytes_per_entry": filled.bytes_of(),
    }


def _times(act: Callable[[int], object], numbers: list[int]) -> list[float]:
    """Milliseconds of each, after a few that aren't counted."""
    for at in numbers[:20]:
        act(at)
    times = []
    for at in numbers:
        started = time.perf_counter()
        act(at)
        times.append((time.perf_counter() - started) * 1000)
    return times


def _gptcache(options: argparse.Namespace, numbers: list[int]) -> dict[str, Any]:
    """The same through GPTCache, in an environment of its own; or why there is nothing to tell."""
    if not options.gptcache:
        return {"not_measured": "left out"}
    entries = min(options.gptcache, options.scope_rows)
    with tempfile.TemporaryDirectory(prefix="reprise-gptcache-") as folder:
        try:
            python = options.gptcache_python or _environment(Path(folder))
            command = [python, "-m", "benchmarks.lookup_gptcache", str(entries), *map(str, numbers)]
            one_thread = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
            ended = subprocess.run(
                command,
                cwd=REPOSITORY,
                env=os.environ | one_thread,
                capture_output=True,
                text=True,
                check=True,
            )
        except (OSError, subprocess.CalledProcessError) as problem:
            return {"not_measured": f"{problem}: {(getattr(problem, 'stderr', '') or '')[-500:]}"}
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    for name in ("same_words_ms", "other_words_ms"):
        found[name] = spread(found[name])
    return found


def _environment(folder: Path) -> str:
    """The Python of a new virtual environment with GPTCache."""
    venv.create(folder / "venv", with_pip=True)
    python = str(folder / "venv" / "bin" / "python")
    packages = lookup_gptcache.PACKAGES
    subprocess.run(
        [python, "-m", "pip", "install", "-q", *packages], check=True, capture_output=True, text=True
    )
    return python


def _targets(found: dict[str, Any]) -> list[dict[str, Any]]:
    exact, semantic, recall = found["exact_ms"], found["semantic_ms"], found["index_recall"]
    return [
        target("exact decision, p50", exact["p50"], "<= 2 ms", exact["p50"] <= 2),
        target("exact decision, p99", exact["p99"], "<= 5 ms", exact["p99"] <= 5),
        target("semantic decision, p50", semantic["p50"], "<= 20 ms", semantic["p50"] <= 20),
        target("semantic decision, p99", semantic["p99"], "<= 50 ms", semantic["p99"] <= 50),
        target("recall of the index against exact search", recall, ">= 0.98", recall >= 0.98),
    ]


def _lines(found: dict[str, Any]) -> list[str]:
    return [f"{name}: {json.dumps(value)}" for name, value in found.items()]


if __name__ == "__main__":
    main()
