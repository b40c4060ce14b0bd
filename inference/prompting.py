"""The prompt of a generation, from what most requests share to what is its own: system prompt, knowledge,
task, summary of older turns, turns, question."""

from dataclasses import dataclass

from django.conf import settings

from inference.engines.prompt import compose

from . import knowledge, summaries
from .history import born_wordings, may_read, model_view
from .models import Generation, Reuse, Scope
from .understanding.turns import Turn
from .understanding.window import arrange

REPHRASE = (
    "The same was asked in other words below. Answer it with what you said above and nothing else, in words "
    "that fit it.\n\n{}"
)


@dataclass(frozen=True)
class Prompt:
    """`turns` for the engine. `in_scope`: they hold the knowledge that the generation's scope names; the file
    may have changed since the question was understood."""

    turns: list[Turn]
    in_scope: bool


def build(generation: Generation) -> Prompt:
    """What the engine reads for `generation`. Raises EngineUnavailable when there is no knowledge to read."""
    known, scope = knowledge.read(), generation.scope
    shared = {**_instructions(scope), "knowledge": known.text}
    in_scope = scope is not None and scope.prompt.get("knowledge", "") == known.version
    if generation.reuse == Reuse.REWRITE and generation.entry_id is not None:
        question = REPHRASE.format(generation.question["turns"][-1]["content"])
        return Prompt(compose(**shared, turns=_stored(generation), question=question), in_scope)
    *past, asked = model_view(generation)
    least, step = _window(scope)
    window = arrange(past, least, step)
    summary = "\n".join(summaries.texts(generation.session_id, window.parts))
    turns = compose(**shared, summary=summary, turns=window.shown, question=asked["content"])
    return Prompt(turns, in_scope)


def _instructions(scope: Scope | None) -> dict[str, str]:
    """As the scope has them: since the question was understood, the version may have been bumped, or another
    release's worker may have taken it up."""
    if scope is None:
        return {"system": settings.SYSTEM_PROMPT, "task": settings.TASK_PROMPT}
    return {"system": scope.system_prompt, "task": scope.prompt.get("task", settings.TASK_PROMPT)}


def _window(scope: Scope | None) -> tuple[int, int]:
    """Exchanges shown word for word, and exchanges summarised at a time."""
    if scope is None:
        return settings.CONTEXT_TURNS, settings.SUMMARY_STEP
    return scope.context_turns, scope.summary_step


def _stored(generation: Generation) -> list[Turn]:
    """The question and answer that this generation rewrites, without this conversation's history: all who
    rewrite this answer share them."""
    assert generation.entry is not None
    born = born_wordings([generation.entry.pk]).get(generation.entry.pk)
    asked = generation.question["turns"][-1]["content"]
    question = born.question if born and may_read(born, generation.session_id) else asked
    return [
        {"role": "user", "content": question},
        {"role": "assistant", "content": generation.entry.answer},
    ]
