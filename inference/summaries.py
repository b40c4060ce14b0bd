"""Older exchanges in short: by the engine in the background, else an extract, and never changed once a prompt
has held them."""

import hashlib
import json
import uuid
from collections.abc import Sequence

import structlog
from django.conf import settings

from inference.engines.base import Delta, EngineFailed, EngineUnavailable, Finished, Request, Sampling

from . import dispatch, metrics, scopes, workers
from .cache.models import Source
from .engine import engine
from .history import model_view
from .models import Generation, Summary
from .understanding.digest import extract, figures
from .understanding.turns import Turns
from .understanding.window import last_part

log = structlog.get_logger(__name__)

MAX_TOKENS = 120
_ASKED = (
    "Summarise this conversation in at most three short sentences. Keep every name and number. "
    "Add nothing.\n\n{}"
)


def texts(session: uuid.UUID, parts: Sequence[Turns]) -> list[str]:
    """The summary of each of `parts`, as it is from now on."""
    if not parts:
        return []
    covered = [_digest(part) for part in parts]
    Summary.objects.bulk_create(
        [_new(session, digest, part) for digest, part in zip(covered, parts, strict=True)],
        ignore_conflicts=True,
    )
    mine = Summary.objects.filter(session=session, covered__in=covered)
    mine.filter(used=False).update(used=True)
    by_digest = dict(mine.values_list("covered", "text"))
    return [by_digest[digest] for digest in covered]


def prepare(generation: Generation) -> None:
    """Have the engine summarise what later prompts of this session won't show, if that has just come to a
    whole part: long before it is needed."""
    step = _step(generation)
    past = generation.question["turns"][:-1]
    if not last_part(past, step):
        return
    part = last_part(model_view(generation)[:-1], step)
    covered = _digest(part)
    # The same turns elsewhere, word for word: sessions that were answered from the same entries.
    twin = Summary.objects.filter(covered=covered, source=Source.ENGINE).first()
    known = {"text": twin.text, "source": twin.source} if twin else {"text": extract(part)}
    summary, new = Summary.objects.get_or_create(
        session=generation.session, covered=covered, defaults={"turns": list(part), **known}
    )
    if new and twin is None:
        dispatch.summarise(summary.pk)


def write(summary_id: int) -> bool:
    """Let the engine write this summary, as long as no prompt has held the extract. True if it did."""
    summary = Summary.objects.filter(pk=summary_id, used=False, source=Source.EXTRACT).first()
    if summary is None:
        return False
    try:
        text = _written(summary)
    except (EngineUnavailable, EngineFailed) as error:
        log.warning("summary_not_written", summary=summary_id, error=str(error))
        metrics.STAGE_ERRORS.labels(stage="summary").inc()
        return False
    if not _is_of(text, summary.turns):
        log.info("summary_not_taken", summary=summary_id, text=text)
        return False
    unused = Summary.objects.filter(pk=summary_id, used=False)
    return bool(unused.update(text=text, source=Source.ENGINE))


def _written(summary: Summary) -> str:
    said = "\n".join(f"{turn['role'].capitalize()}: {turn['content']}" for turn in summary.turns)
    request = Request(
        id=f"summary-{summary.pk}",
        turns=[{"role": "user", "content": _ASKED.format(said)}],
        sampling=Sampling(max_tokens=MAX_TOKENS),
        cancelled=workers.leaving.is_set,
        cache_salt=scopes.current().hash,
    )
    text, whole = "", False
    for event in engine().stream(request):
        if isinstance(event, Delta):
            text += event.text
        elif isinstance(event, Finished):
            metrics.computed(event.prompt_tokens, event.cached_tokens, event.completion_tokens)
            whole = event.reason == "stop" and not event.prompt_cut
    return " ".join(text.replace("\x00", "").split()) if whole else ""


def _is_of(text: str, turns: Turns) -> bool:
    """Is `text` shorter than what it summarises, with no figure that isn't there?"""
    said = " ".join(turn["content"] for turn in turns)
    return 0 < len(text) < len(said) and figures(text) <= figures(said)


def _new(session: uuid.UUID, digest: str, part: Turns) -> Summary:
    return Summary(session_id=session, covered=digest, turns=list(part), text=extract(part), used=True)


def _digest(part: Turns) -> str:
    plain = [[turn["role"], turn["content"]] for turn in part]
    return hashlib.sha256(json.dumps(plain, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()


def _step(generation: Generation) -> int:
    return generation.scope.summary_step if generation.scope else settings.SUMMARY_STEP
