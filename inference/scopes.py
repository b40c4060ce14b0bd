"""The scope of an answer, read from the parts that run and never typed by hand."""

import hashlib
import json
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from inference.engines import identity

from .models import Scope


def current() -> Scope:
    """The scope of a question asked now. Raises EngineUnavailable when there is no model to name."""
    engine = identity(settings.ENGINE, model_dir=Path(settings.MODEL_DIR))
    parts = {
        "app": settings.APP_NAME,
        "system_prompt": settings.SYSTEM_PROMPT,
        "prompt_template": engine.template,
        "knowledge_version": settings.KNOWLEDGE_VERSION,
        "model_version": f"{settings.ENGINE}:{engine.model}:{engine.dtype}",
        "tokenizer_version": engine.tokenizer,
        "sampling": {"temperature": settings.TEMPERATURE, "max_tokens": settings.MAX_TOKENS},
    }
    return _stored(json.dumps(parts, sort_keys=True))


@lru_cache(maxsize=64)  # a scope's row never changes and is never deleted
def _stored(parts: str) -> Scope:
    digest = hashlib.sha256(parts.encode()).hexdigest()
    scope, _ = Scope.objects.get_or_create(hash=digest, defaults=json.loads(parts))
    return scope
