"""The scope of an answer, read from the parts that run and never typed by hand."""

import hashlib
import json
import uuid
from collections.abc import Sequence
from typing import Any

from django.conf import settings

from inference.engines import identity
from inference.engines.base import EngineUnavailable, Identity

from . import embedding, knowledge, rules, versions
from .cache.provenance import named
from .engine import options
from .models import Scope
from .premises import Premises

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


_last: Scope | None = None  # never used unless its row was found there, under its id, for this very question


def last() -> str:
    """The hash of the scope that this process asked in last; "" before the first."""
    return _last.hash if _last else ""


def current(sources: Sequence[dict[str, Any]] = (), found: Premises | None = None) -> Scope:
    """The scope of a question asked now that names these `sources` (as Generation keeps them); `found` are
    its premises, where they were read already. Raises EngineUnavailable when there is no model to name, or no
    knowledge to read."""
    global _last
    parts = _parts(sources, versions.active() if found is None else versions.by(found.version))
    known = _last
    if known and found and found.scope == known.pk and known.hash == _digest(parts):
        return known
    _last = _stored(parts)
    return _last


def _stored(parts: dict[str, Any]) -> Scope:
    digest = _digest(parts)
    # Asked each time: a row remembered by a process may have been flushed, or restored otherwise.
    for scope in Scope.objects.raw("SELECT * FROM inference_scope WHERE hash = %s", [digest]):
        return scope
    del parts["settings"]
    for name in ("prompt_template", "model_version", "tokenizer_version", "embedder"):
        parts[name] = str(parts[name])[:_COLUMN]
    return Scope.objects.get_or_create(hash=digest, defaults=parts)[0]


def is_current(scope: Scope | None, sources: Sequence[dict[str, Any]] = ()) -> bool:
    """Would this process ask in `scope` now? Not after the version was bumped, and not where another release
    or another configuration of ours understood the question."""
    try:
        return scope is not None and _digest(_parts(sources, versions.active())) == scope.hash
    except EngineUnavailable:
        return False


def is_answered_by(scope: Scope | None, engine: Identity) -> bool:
    """Is `engine`, as it is loaded, the one that `scope` names? Its files may have changed under it."""
    if scope is None:
        return False
    named = (scope.model_version, scope.tokenizer_version, scope.prompt_template)
    loaded = (_model_version(engine), engine.tokenizer, engine.template)
    return named == tuple(part[:_COLUMN] for part in loaded)


def _parts(sources: Sequence[dict[str, Any]], asked_with: versions.Active) -> dict[str, Any]:
    engine = identity(settings.ENGINE, **options())
    return {
        "app": settings.APP_NAME,
        "system_prompt": asked_with.system_prompt,
        "prompt_template": engine.template,
        "knowledge_version": asked_with.knowledge,
        "model_version": _model_version(engine),
        "tokenizer_version": engine.tokenizer,
        "embedder": embedding.identity(),
        "understanding": rules.version(),
        "prompt": {
            "knowledge": knowledge.read().version,
            "task": settings.TASK_PROMPT,
            "context_turns": settings.CONTEXT_TURNS,
            "summary_step": settings.SUMMARY_STEP,
            "sources": sorted([source["key"], source["version"]] for source in named(sources)),
        },
        "sampling": {"temperature": settings.TEMPERATURE, "max_tokens": settings.MAX_TOKENS},
        # Besides what a bump has put in their place: two deploys that differ here are never one scope.
        "settings": {"system_prompt": settings.SYSTEM_PROMPT, "knowledge": settings.KNOWLEDGE_VERSION},
    }


def _model_version(engine: Identity) -> str:
    return f"{settings.ENGINE}:{engine.model}:{engine.dtype}"


def _digest(parts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
