"""Threads to compute in. Importing this loads no torch; their first task does."""

import os
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

# As in inference.engines.torch: whoever loads torch first decides for the process whether its threads spin.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def one_core_each(threads: int, name: str) -> ThreadPoolExecutor:
    """So many threads, each on one core; how many torch gives to others stays as it is."""
    return ThreadPoolExecutor(threads, thread_name_prefix=name, initializer=_keep_to_one_core)


def _keep_to_one_core() -> None:
    if find_spec("torch") is None:
        return
    from inference.engines.threads import only_here

    only_here(1)
