"""Deleting entries on purpose: which, how many, and so slowly that the misses don't hit the model at once."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from inference import metrics
from inference.models import Entry, EntrySource, State, Wording

from . import eviction

BATCH = 20
PAUSE_SECONDS = 0.04


@dataclass(frozen=True)
class Selection:
    """Which entries; what is None doesn't matter, what is given must all hold. `scope` is the beginning of a
    scope's hash, `version` a knowledge version, `source` the key of something they were made from, `session`
    the one they were born in, `pattern` what a question of theirs is like (`*` any characters, `?` one; in
    any case). Only entries from before `before` are meant. Raises ValueError for what can't be meant."""

    scope: str | None = None
    version: str | None = None
    content_class: str | None = None
    source: str | None = None
    state: str | None = None
    session: UUID | None = None
    pattern: str | None = None
    before: datetime | None = None

    def __post_init__(self) -> None:
        if self.state is not None and self.state not in State.values:
            raise ValueError(f"{self.state!r} is no state; there are {', '.join(State.values)}.")
        if self.scope is not None and len(self.scope) < 6:
            raise ValueError("A scope is named by at least the first 6 characters of its hash.")
        if any(value == "" for value in asdict(self).values()):
            raise ValueError("An empty text selects nothing; leave the option out.")
        if any("\x00" in value for value in asdict(self).values() if isinstance(value, str)):
            raise ValueError("A NUL character selects nothing.")

    @property
    def is_everything(self) -> bool:
        return not any(value is not None for name, value in asdict(self).items() if name != "before")

    def of_now(self) -> "Selection":
        """The same, without what comes to be from now on."""
        now = timezone.now()
        return replace(self, before=now if self.before is None else min(self.before, now))

    def to_json(self) -> dict[str, str]:
        return {
            name: value.isoformat() if isinstance(value, datetime) else str(value)
            for name, value in asdict(self).items()
            if value is not None
        }

    @classmethod
    def from_json(cls, stored: dict[str, str]) -> "Selection":
        values: dict[str, Any] = dict(stored)
        if "session" in values:
            values["session"] = UUID(values["session"])
        if "before" in values:
            values["before"] = parse_datetime(values["before"])
        return cls(**values)

    def entries(self) -> QuerySet[Entry]:
        plain = {
            "scope__hash__startswith": self.scope,
            "scope__knowledge_version": self.version,
            "content_class": self.content_class,
            "state": self.state,
            "session": self.session,
            "created_at__lt": self.before,
        }
        wanted = Q(**{name: value for name, value in plain.items() if value is not None})
        if self.source is not None:
            wanted &= Q(Exists(EntrySource.objects.filter(entry=OuterRef("pk"), source_key=self.source)))
        if self.pattern is not None:
            alike = Wording.objects.filter(entry=OuterRef("pk"), question__iregex=_regex(self.pattern))
            wanted &= Q(Exists(alike))
        return Entry.objects.filter(wanted)


def _regex(pattern: str) -> str:
    """For Postgres. Only letters, digits and spaces mean themselves there for certain."""
    meant = {"*": ".*", "?": "."}
    plain = (meant.get(one) or (one if one.isalnum() or one.isspace() else f"\\{one}") for one in pattern)
    return f"^{''.join(plain)}$"


@dataclass(frozen=True)
class Preview:
    """How many entries, by state, by class and by scope (its name)."""

    entries: int
    by_state: dict[str, int]
    by_class: dict[str, int]
    by_scope: dict[str, int]


def count(selection: Selection) -> Preview:
    """What `flush` would delete."""
    columns = ("state", "content_class", "scope__hash", "scope__knowledge_version")
    by_state, by_class, by_scope = Counter[str](), Counter[str](), Counter[str]()
    rows = selection.entries().order_by().values_list(*columns).annotate(n=Count("*"))
    for state, content_class, scope, version, n in rows:
        by_state[state] += n
        by_class[content_class] += n
        by_scope[f"{scope[:12]} (knowledge {version or '–'})"] += n
    most = (dict(found.most_common()) for found in (by_state, by_class, by_scope))
    return Preview(by_state.total(), *most)


def flush(
    selection: Selection,
    *,
    batch: int = BATCH,
    pause: float = PAUSE_SECONDS,
    progress: Callable[[int], object] = lambda deleted: None,
) -> int:
    """Delete these entries, `batch` in each transaction and `pause` seconds between two, in the order of
    their ids. `progress` hears of each batch. Returns how many were deleted; what somebody was just serving
    is tried again, a few times. May be ended at any time, and called again for the rest."""
    gone = 0
    for attempt in range(_ATTEMPTS):
        left = 0
        for ids in _batches(selection, batch):
            deleted = eviction.delete(ids)
            gone, left = gone + deleted, left + len(ids) - deleted
            progress(deleted)
            time.sleep(pause)
        if not left:
            break
        time.sleep(attempt)
    metrics.took_back("flush", gone)
    return gone


_ATTEMPTS = 4
_FIRST = UUID(int=0)


def _batches(selection: Selection, size: int) -> Iterator[list[UUID]]:
    """Ids behind those before them: what was deleted is not read over again."""
    last = _FIRST
    while ids := list(
        selection.entries().filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)[:size]
    ):
        yield ids
        last = ids[-1]
