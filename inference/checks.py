"""What `manage.py check` says about the settings of prompts, and about those that decide what is served."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from inference.engines.base import EngineUnavailable
from inference.engines.weights import TEMPLATE

from . import knowledge
from .models import Reuse
from .understanding.cacheability import ContentClass
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
    try:
        knowledge.read()
    except EngineUnavailable as problem:
        found.append(Error(str(problem), id="reprise.E003"))
    return found


@register
def settings_by_class_can_be_used(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Errors for classes that no question is of, and for what can't be said of one: it would be passed over,
    or found out with the first question."""
    from .cache.reuse import Suspects  # loads all that decides, which only this needs here

    return [
        *_by_class("REUSE_GRADES", "E002", {*Reuse.values}.__contains__, f"one of {', '.join(Reuse.values)}"),
        *_by_class(
            "SUSPECTS", "E004", {*Suspects}.__contains__, f"one of {', '.join(Suspects)}", others=True
        ),
        *_by_class("AGREEMENT_TARGETS", "E005", _is_share, "a number between 0 and 1", others=True),
    ]


def _by_class(
    name: str, code: str, fits: Callable[[Any], bool], wanted: str, *, others: bool = False
) -> Iterator[CheckMessage]:
    """`others`: whether "" may stand for all classes that aren't named."""
    value = getattr(settings, name)
    if not isinstance(value, Mapping):
        yield Error(f"{name} is {value!r}; it must be a JSON object by content class.", id=f"reprise.{code}")
        return
    known = (*get_args(ContentClass), *([""] if others else []))
    for content_class, said in value.items():
        if content_class not in known:
            yield Error(
                f"{name} names {content_class!r}, which is no content class.",
                hint=f"Classes: {', '.join(get_args(ContentClass))}" + (', and "" for the others.' * others),
                id=f"reprise.{code}",
            )
        if not (isinstance(said, str | int | float) and fits(said)):
            yield Error(
                f"{name} says {said!r} for {content_class!r}; it must be {wanted}.", id=f"reprise.{code}"
            )


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1


_NUMBERS: dict[str, tuple[Callable[[float], bool], str]] = {
    "OBSERVATIONS_LEAST": (lambda n: n >= 1, "at least 1"),
    "OBSERVE_PER_MINUTE": (lambda n: n >= 0, "at least 0"),
    "OBSERVE_SHARE": (lambda n: 0 <= n <= 1, "from 0 to 1"),
    "OBSERVE_BESIDE": (lambda n: n >= 0, "at least 0"),
    "CALIBRATION_TARGET": (lambda n: 0 < n < 1, "between 0 and 1"),
    "CALIBRATION_CONFIDENCE": (lambda n: 0.5 <= n < 1, "at least 0.5 and below 1"),
    "CALIBRATE_EVERY_SECONDS": (lambda n: n >= 1, "at least 1"),
    "SHADOW_LOOKUPS": (lambda n: n >= 1, "at least 1"),
    "JUDGE_SURE": (lambda n: 0.5 < n < 1, "above 0.5 and below 1"),
}
_JUDGE = ("auto", "on", "off")


@register
def figures_can_be_used(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Errors for figures with which nothing could be proved, fitted or observed."""
    found = [
        Error(f"{name} is {value!r}; it must be {wanted}.", id="reprise.E006")
        for name, (fits, wanted) in _NUMBERS.items()
        if not fits(value := getattr(settings, name))
    ]
    if settings.JUDGE not in _JUDGE:
        found.append(
            Error(f"JUDGE is {settings.JUDGE!r}; it must be one of {', '.join(_JUDGE)}.", id="reprise.E007")
        )
    return list[CheckMessage](found)


def _template() -> str:
    """Of a model that is here; "" for one that is elsewhere, or not there yet."""
    if settings.ENGINE == "openai":
        return ""
    try:
        return (Path(settings.MODEL_DIR) / TEMPLATE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
