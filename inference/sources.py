"""What answers are made from: documents, tables, whatever somebody else may change.

Who asks names the sources that the question's text was drawn from; the knowledge file names itself. Named
sources are part of the question's scope, so that an answer made from another version is never served for it;
and when one is said to have changed, exactly the entries made from it are frozen, at once and together.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from . import knowledge, metrics
from .cache import lifecycle, provenance
from .models import DataSource, Entry, EntrySource

_KEY = re.compile(r"[^\x00-\x20\x7f]{1,200}")
_VERSION = re.compile(r"[^\x00-\x1f\x7f]{0,200}")


class UnknownSource(LookupError):
    """No answer was ever made from a source of this key."""


@dataclass(frozen=True)
class Source:
    """`key` names it for good (1 to 200 characters without spaces), `version` what it says now (up to 200; ""
    where it has none). Raises ValueError for what can't be one."""

    key: str
    version: str = ""

    def __post_init__(self) -> None:
        check_key(self.key)
        check_version(self.version)


def check_key(key: str) -> None:
    """Raises ValueError."""
    if not _KEY.fullmatch(key):
        raise ValueError(f"{key!r:.60} is no key of a source: 1 to 200 characters without spaces.")


def check_version(version: str) -> None:
    """Raises ValueError."""
    if not _VERSION.fullmatch(version):
        raise ValueError(f"{version!r:.60} is no version of a source: at most 200 characters in one line.")


def as_read_now(named: Sequence[Source]) -> list[dict[str, Any]]:
    """These sources as a generation keeps them. Raises ValueError where one is named twice, or as the
    knowledge file."""
    keys = [source.key for source in named]
    if len(set(keys)) != len(keys):
        raise ValueError("A source is named twice.")
    if any(key.startswith(provenance.KNOWLEDGE) for key in keys):
        raise ValueError(f"Keys that begin with {provenance.KNOWLEDGE} are the knowledge file's.")
    return provenance.read_now((source.key, source.version) for source in named)


def knowledge_key() -> str:
    """The key of the knowledge file."""
    return f"{provenance.KNOWLEDGE}{Path(settings.KNOWLEDGE_FILE).name}"[:200]


def with_knowledge(made: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A generation's sources with the knowledge file, where every prompt holds one. Raises EngineUnavailable
    where that can't be read."""
    version = knowledge.read().version
    return provenance.named(made) + provenance.read_now([(knowledge_key(), version[:16])] if version else [])


@dataclass(frozen=True)
class Invalidated:
    """`entries`: how many were frozen now."""

    key: str
    version: str
    entries: int


def derived(key: str, version: str = "") -> Any:
    """The entries made from this source, but for those made from its `version` where one is given."""
    rows = EntrySource.objects.filter(source_key=key)
    if version:
        rows = rows.exclude(version=version)
    return Entry.objects.filter(pk__in=rows.values("entry"))


def invalidate(key: str, version: str = "") -> Invalidated:
    """This source has changed, to `version` where that is known: no entry made from it as it was is served
    from now on, and no answer stored that is being made from it. Raises UnknownSource, ValueError."""
    check_key(key)
    check_version(version)
    with transaction.atomic():
        changed = DataSource.objects.filter(key=key).update(
            changes=F("changes") + 1, version=version, changed_at=timezone.now()
        )
        if not changed:
            raise UnknownSource(key)
        frozen = lifecycle.freeze(derived(key, version))
    metrics.took_back("source", frozen)
    return Invalidated(key, version, frozen)
