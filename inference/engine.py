"""The engine of this process, loaded once, on first need: only workers of the generate queue hold one."""

import threading
from pathlib import Path

from django.conf import settings

from inference.engines import create_engine
from inference.engines.base import Engine

_lock = threading.Lock()
_engine: Engine | None = None


def engine() -> Engine:
    """The running engine. Loads it (seconds) when it isn't there; raises EngineUnavailable."""
    global _engine
    if _engine is None:
        with _lock:
            if _engine is None:
                _engine = create_engine(
                    settings.ENGINE,
                    model_dir=Path(settings.MODEL_DIR),
                    threads=settings.ENGINE_THREADS or None,
                )
    return _engine
