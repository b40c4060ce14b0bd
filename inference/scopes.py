"""The scope of an answer, read from the parts that run and never typed by hand."""

import hashlib
import json
import uuid

from django.conf import settings

from inference.engines import identity
from inference.understanding import fingerprint

from . import embedding, knowledge
from .engine import options
from .models import Scope

# What a column of Scope takes; the hash is over the whole.
_COLUMN = 200


def for_measuring(app: str) -> Scope:
    """A new scope that nobody's question has, with the vectors of the embedder that runs."""
    return Scope.objects.create(
        hash=f"{app}-{uuid.uuid4().hex}",
        app=app,
        system_prompt="",
        prompt_template="",
        knowledge_version="",
        model_version="",
        tokenizer_version="",
        embedder=embedding.identity()[:_COLUMN],
    )


def current() -> Scope:
    """The scope of a question asked now. Raises EngineUnavailable when there is no model to name, or no
    knowledge to read."""
    engine = identity(settings.ENGINE, **options())
    parts = {
        "app": settings.APP_NAME,
        "system_prompt": settings.SYSTEM_PROMPT,
        "prompt_template": engine.template,
        "knowledge_version": settings.KNOWLEDGE_VERSION,
        "model_version": f"{settings.ENGINE}:{engine.model}:{engine.dtype}",
        "tokenizer_version": engine.tokenizer,
        "embedder": embedding.identity(),
        "understanding": f"fingerprint-{fingerprint.VERSION}",
        "prompt": {
            "knowledge": knowledge.read().version,
            "task": settings.TASK_PROMPT,
            "context_turns": settings.CONTEXT_TURNS,
            "summary_step": settings.SUMMARY_STEP,
        },
        "sampling": {"temperature": settings.TEMPERATURE, "max_tokens": settings.MAX_TOKENS},
    }
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    # Asked each time: a row remembered by a process may have been flushed, or restored otherwise.
    for scope in Scope.objects.raw("SELECT * FROM inference_scope WHERE hash = %s", [digest]):
        return scope
    for name in ("prompt_template", "model_version", "tokenizer_version", "embedder"):
        parts[name] = str(parts[name])[:_COLUMN]
    return Scope.objects.get_or_create(hash=digest, defaults=parts)[0]
