"""Which knowledge and which system prompt questions are asked with from now on.

The settings say it until someone bumps the version; then the newest row of Version does. It is read for each
question, so every process asks with the new one from the moment its row is committed. The settings stay part
of the scope beside it (`inference.scopes`): a deploy that changes them is never mistaken for what was there
before.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.conf import settings
from django.db import connection, transaction

from . import announcements, metrics
from .models import ALIVE, OPEN, Entry, Generation, Scope, Version
from .understanding.changing import changing_in_text

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+@-]{0,99}")
_LOCK = 0x5265_7672  # of two bumps at once, the second finds what the first made


class WrongVersion(ValueError):
    """This is no version to switch to; the message says why, and in short the `code`: same, used, name,
    empty or nul."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Moved(Exception):
    """Another version is asked with by now than the one that was seen."""


@dataclass(frozen=True)
class Active:
    """What is asked with now."""

    knowledge: str
    system_prompt: str


@dataclass(frozen=True)
class Bump:
    """A switch that was made, or would be: from what to what, the entries that nobody reaches any more, the
    answers that are being made and won't be stored, and whether the open sockets could be told."""

    before: Active
    after: Active
    entries: int
    open: int
    told: bool = False

    @property
    def changing(self) -> list[str]:
        """The pieces of the new system prompt that look as if they changed with every request: nothing behind
        them would ever be computed only once."""
        return changing_in_text(self.after.system_prompt)


Row = tuple[str, str | None]
"""Of a version: knowledge, and system prompt (None: the one of the settings)."""


def active() -> Active:
    """What a question asked now is asked with."""
    return by(_newest())


def by(newest: Row | None) -> Active:
    """What a question is asked with while this is the newest version."""
    knowledge, system_prompt = newest or (settings.KNOWLEDGE_VERSION, None)
    return Active(knowledge, settings.SYSTEM_PROMPT if system_prompt is None else system_prompt)


def _newest() -> Row | None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT knowledge, system_prompt FROM inference_version WHERE app = %s ORDER BY id DESC LIMIT 1",
            [settings.APP_NAME],
        )
        row: Row | None = cursor.fetchone()
    return row


@contextmanager
def held() -> Iterator[None]:
    """A transaction during which the version stays what it is: what is found current in it is stored before
    the switch, or not at all."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock_shared(%s)", [_LOCK])
        yield


def bump(
    knowledge: str, system_prompt: str | None = None, *, back: bool = False, seen: Active | None = None
) -> Bump:
    """Switch to this version for every question that is asked from now on, and tell the open sockets. Without
    `system_prompt` that stays as it is. A version that was in use before is refused, since what was stored
    under it would be served again; `back` says that this is meant. `seen` is what was asked with when
    this was decided, where that matters. Raises WrongVersion, Moved."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        if seen is not None and active() != seen:
            raise Moved
        planned = plan(knowledge, system_prompt, back=back)
        standing = _newest()
        kept = standing[1] if standing else None
        Version.objects.create(
            app=settings.APP_NAME,
            knowledge=knowledge,
            system_prompt=kept if system_prompt is None else planned.after.system_prompt,
        )
    metrics.took_back("version", planned.entries)
    told = announcements.version_changed(planned.entries)
    return Bump(planned.before, planned.after, planned.entries, planned.open, told)


def plan(knowledge: str, system_prompt: str | None = None, *, back: bool = False) -> Bump:
    """What `bump` would do. Raises WrongVersion."""
    _check_name(knowledge)
    before = active()
    prompt = before.system_prompt if system_prompt is None else system_prompt.strip()
    _check_prompt(prompt)
    after = Active(knowledge, prompt)
    if after == before:
        raise WrongVersion("same", f"Version {knowledge} is what is asked with already.")
    if not back and knowledge != before.knowledge and _was_used(knowledge):
        raise WrongVersion(
            "used",
            f"Version {knowledge} was in use before: what was stored under it would be served again. "
            "Choose another name, or say that you are going back.",
        )
    left = Entry.objects.filter(scope__app=settings.APP_NAME, state__in=ALIVE)
    return Bump(
        before,
        after,
        left.exclude(scope__knowledge_version=after.knowledge, scope__system_prompt=prompt).count(),
        Generation.objects.filter(status__in=OPEN, scope__app=settings.APP_NAME).count(),
    )


def _check_name(knowledge: str) -> None:
    if not _NAME.fullmatch(knowledge):
        raise WrongVersion(
            "name",
            f"{knowledge!r:.120} is no version: 1 to 100 letters, digits and . _ - + : / @, "
            "a letter or digit first.",
        )


def _check_prompt(prompt: str) -> None:
    if not prompt:
        raise WrongVersion("empty", "The system prompt is empty.")
    if "\x00" in prompt:
        raise WrongVersion("nul", "The system prompt contains a NUL character.")


def _was_used(knowledge: str) -> bool:
    named = Version.objects.filter(app=settings.APP_NAME, knowledge=knowledge)
    stored = Scope.objects.filter(app=settings.APP_NAME, knowledge_version=knowledge)
    return named.exists() or stored.exists() or knowledge == settings.KNOWLEDGE_VERSION
