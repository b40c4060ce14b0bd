"""The scope of an answer, read from the parts that run and never typed by hand."""

import hashlib
import json
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
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    # Asked each time: a row remembered by a process may have been flushed, or restored otherwise.
    for scope in Scope.objects.raw("SELECT * FROM inference_scope WHERE hash = %s", [digest]):
        return scope
    return Scope.objects.get_or_create(hash=digest, defaults=parts)[0]
