"""What `manage.py check` says about the settings that prompts are made of."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from inference.engines.base import EngineUnavailable
from inference.engines.weights import TEMPLATE

from . import knowledge
from .models import Reuse
from .understanding.changing import changing_in_template, changing_in_text

_RANGES = {"CONTEXT_TURNS": (3, 10), "SUMMARY_STEP": (1, 20)}
HINT = "It stands before every conversation, so nothing behind it is ever computed only once. Leave it out."


@register
def prompts_stay_the_same(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Warns of what changes per request in front of the turns."""
    found = [
        Warning(f"{name} seems to change with every request: {piece!r}.", hint=HINT, id="reprise.W001")
        for name in ("SYSTEM_PROMPT", "TASK_PROMPT")
        for piece in changing_in_text(getattr(settings, name))
    ]
    found += [
        Warning(
            f"The model's chat template seems to change with every request: {piece!r}.",
            hint=HINT,
            id="reprise.W002",
        )
        for piece in changing_in_template(_template())
    ]
    return list[CheckMessage](found)


@register
def prompt_settings_can_be_used(app_configs: Any = None, **_: Any) -> Sequence[CheckMessage]:
    """Errors for settings that no prompt could be built from."""
    found = [
        Error(f"{name} is {value!r}; it must be from {low} to {high}.", id="reprise.E001")
        for name, (low, high) in _RANGES.items()
        if not (isinstance(value := getattr(settings, name), int) and low <= value <= high)
    ]
    found += [
        Error(
            f"REUSE_GRADES says {value!r} for {name!r}; a grade is one of {', '.join(Reuse.values)}.",
            id="reprise.E002",
        )
        for name, value in settings.REUSE_GRADES.items()
        if value not in Reuse.values
    ]
    try:
        knowledge.read()
    except EngineUnavailable as problem:
        found.append(Error(str(problem), id="reprise.E003"))
    return found


def _template() -> str:
    """Of a model that is here; "" for one that is elsewhere, or not there yet."""
    if settings.ENGINE == "openai":
        return ""
    try:
        return (Path(settings.MODEL_DIR) / TEMPLATE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
