"""A real `vllm serve` for the tests, in the environment that runs them."""

import sys
from pathlib import Path
from typing import Any

from benchmarks.vllm_server import ENVIRONMENT, Server

__all__ = ["Server", "serve"]


def serve(model_dir: Path, window: int, options: dict[str, Any], log: Path) -> Server:
    """Started; `wait` for it."""
    return Server(model_dir, window, options, log, sys.executable, ENVIRONMENT)
