"""The engine of this process, loaded once, on first need: only workers of the generate queue hold one."""

import os
import threading
from pathlib import Path
from typing import Any

from django.conf import settings

from inference.engines import create_engine
from inference.engines.base import Engine, EngineUnavailable

_lock = threading.Lock()
_engine: Engine | None = None


def options() -> dict[str, Any]:
    """What the settings say to the engine they name; enough for its identity too."""
    window = settings.ENGINE_WINDOW or None
    if settings.ENGINE == "openai":
        return {
            "base_url": settings.OPENAI_BASE_URL,
            "model": settings.OPENAI_MODEL,
            "api_key": settings.OPENAI_API_KEY,
            "window": window,
            "silence": settings.ENGINE_SILENCE_SECONDS,
            "max_tokens_name": settings.OPENAI_MAX_TOKENS_NAME,
        }
    if settings.ENGINE == "vllm":
        return {
            "model_dir": Path(settings.MODEL_DIR),
            "url": settings.VLLM_URL,
            "api_key": settings.VLLM_API_KEY,
            "window": window,
            "options": settings.VLLM_OPTIONS,
            "silence": settings.ENGINE_SILENCE_SECONDS,
        }
    return {
        "model_dir": Path(settings.MODEL_DIR),
        "threads": settings.ENGINE_THREADS or None,
        "window": window,
        "kv_budget": settings.KV_BUDGET_MIB * 2**20,
        "kv_limit": settings.KV_LIMIT_MIB * 2**20 or _half_of_the_memory(),
        "kv_cold_int8": settings.KV_COLD_INT8,
        "session_seconds": settings.SESSION_IDLE_SECONDS,
        "recall": {
            "min_tokens": settings.RECALL_MIN_TOKENS,
            "budget": settings.RECALL_BUDGET,
            "ratio": settings.RECALL_RATIO,
            "scopes": settings.RECALL_SCOPES,
        },
    }


def _half_of_the_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def engine() -> Engine:
    """The running engine. Loads it (seconds) when it isn't there; raises EngineUnavailable."""
    global _engine
    if _engine is None:
        with _lock:
            if _engine is None:
                _engine = _create()
    return _engine


def close() -> None:
    """Let go of the engine of this process, if there is one: vLLM has processes of its own, which would keep
    this one from ending."""
    global _engine
    with _lock:
        held, _engine = _engine, None
    shut = getattr(held, "close", None)
    if shut is not None:
        shut()


def _create() -> Engine:
    try:
        return create_engine(settings.ENGINE, **options())
    except ValueError as problem:  # a setting that is none: nobody can answer until it is mended
        raise EngineUnavailable(f"ENGINE={settings.ENGINE}: {problem}") from problem
