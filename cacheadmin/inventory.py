"""What there is to look after: scopes and the versions they are asked with, sources, sessions, ledgers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Max, QuerySet
from django.db.models.expressions import RawSQL

from inference import history, versions
from inference import sources as of_answers
from inference.history import BothWays
from inference.live_ledger import Told
from inference.models import (
    ALIVE,
    DataSource,
    Entry,
    EntrySource,
    Generation,
    Invalidation,
    Scope,
    Session,
    Version,
)
from inference.versions import Active

from . import cursors

# --- versions and scopes ----------------------------------------------------------------------------


SHOWN_SCOPES = 10
SHOWN_VERSIONS = 20


@dataclass(frozen=True)
class App:
    """One app: what it is asked with now (None where another installation asks), since when, and its newest
    scopes, with how many entries each holds."""

    name: str
    active: Active | None
    since: datetime | None
    scopes: Sequence[tuple[Scope, int]]

    most_scopes = SHOWN_SCOPES


def apps() -> list[App]:
    """Ours first, then whoever else stores here."""
    counted: dict[int, int] = dict(
        Entry.objects.filter(state__in=ALIVE).order_by().values_list("scope").annotate(n=Count("*"))
    )
    every: dict[str, list[Scope]] = {settings.APP_NAME: []}
    for scope in Scope.objects.order_by("-created_at")[:200]:
        every.setdefault(scope.app, []).append(scope)
    return [
        App(
            name,
            versions.active() if name == settings.APP_NAME else None,
            Version.objects.filter(app=name).aggregate(at=Max("created_at"))["at"],
            [(scope, counted.get(scope.pk, 0)) for scope in scopes[: App.most_scopes]],
        )
        for name, scopes in every.items()
    ]


def bumps() -> list[Version]:
    """The last switches of our app, newest first."""
    return list(Version.objects.filter(app=settings.APP_NAME).order_by("-pk")[:SHOWN_VERSIONS])


# --- sources ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SourceRow:
    """A source and the entries made from it: all that are there, and those that can still be served."""

    source: DataSource
    entries: int
    servable: int


def sources(after: str, containing: str, most: int) -> list[SourceRow]:
    """In the order of their keys, behind `after`."""
    rows = DataSource.objects.filter(key__gt=after).order_by("key")
    if containing:
        rows = rows.filter(key__icontains=containing)
    return _with_entries(list(rows[:most]))


def source(pk: int) -> SourceRow:
    """Raises DataSource.DoesNotExist."""
    return _with_entries([DataSource.objects.get(pk=pk)])[0]


def servable(key: str, but_for: str = "") -> int:
    """Entries made from this source that can be served, but for those made from one version of it."""
    return int(of_answers.derived(key, but_for).filter(state__in=ALIVE).count())


def _with_entries(found: Sequence[DataSource]) -> list[SourceRow]:
    made = EntrySource.objects.filter(source_key__in=[row.key for row in found]).order_by()
    by_state = made.values_list("source_key", "entry__state").annotate(n=Count("pk"))
    every: dict[str, int] = {}
    alive: dict[str, int] = {}
    for key, state, n in by_state:
        every[key] = every.get(key, 0) + n
        alive[key] = alive.get(key, 0) + (n if state in ALIVE else 0)
    return [SourceRow(row, every.get(row.key, 0), alive.get(row.key, 0)) for row in found]


# --- sessions ---------------------------------------------------------------------------------------

SHOWN_OF_A_SESSION = 50


def sessions(after: str, wanted: str, most: int) -> list[Session]:
    """The last active first, behind the cursor `after`; `wanted` is all, open or ended."""
    rows = Session.objects.order_by("-last_active", "-pk")
    if wanted in ("open", "ended"):
        rows = rows.filter(ended_at__isnull=wanted == "open")
    if place := cursors.place(after):
        behind = RawSQL("(inference_session.last_active, inference_session.id) < (%s, %s)", list(place))
        rows = rows.annotate(behind=behind).filter(behind=True)
    return list(rows[:most])


def cursor_of(session: Session) -> str:
    return cursors.behind(session.last_active, session.pk)


@dataclass(frozen=True)
class Conversation:
    """A session with what it is to the cache."""

    session: Session
    held: Sequence[Mapping[str, Any]] = field(default_factory=list)

    most = SHOWN_OF_A_SESSION

    @cached_property
    def last(self) -> Generation | None:
        return Generation.objects.filter(session=self.session).order_by("-created_at").first()

    @cached_property
    def turns(self) -> list[BothWays]:
        """What the person reads beside what the model reads, up to the last answer."""
        return history.both_views(self.last) if self.last else []

    @cached_property
    def answers(self) -> QuerySet[Generation]:
        """Its questions, newest first, and how each was answered."""
        rows = Generation.objects.filter(session=self.session).select_related("entry")
        rows = rows.defer("question", "output_token_ids", "entry__answer_vector")
        return rows.order_by("-created_at")[: self.most]

    @cached_property
    def invalidations(self) -> QuerySet[Invalidation]:
        rows = Invalidation.objects.filter(session=self.session).select_related("generation")
        rows = rows.defer("generation__question", "generation__output_token_ids")
        return rows.order_by("-created_at")[: self.most]

    @cached_property
    def blocked(self) -> QuerySet[Entry]:
        return self.session.blocked.defer("answer_vector").order_by("-created_at")[: self.most]

    @cached_property
    def born(self) -> QuerySet[Entry]:
        """Entries that are its own."""
        rows = Entry.objects.filter(session=self.session).defer("answer_vector")
        return rows.order_by("-created_at")[: self.most]


def conversation(pk: UUID, told: Iterable[Told]) -> Conversation:
    """Raises Session.DoesNotExist."""
    session = Session.objects.get(pk=pk)
    held = [
        row | {"seat": one.seat}
        for one in told
        if one.figures
        for row in one.figures["sessions"]
        if row["session"] == str(pk)
    ]
    return Conversation(session, held)


def held_bytes(told: Iterable[Told]) -> dict[str, int]:
    """Bytes of keys and values by session (its id as text), for those that engines tell of."""
    found: dict[str, int] = {}
    for one in told:
        for row in one.figures["sessions"] if one.figures else ():
            found[row["session"]] = found.get(row["session"], 0) + row["bytes"]
    return found


def held_here(told: Iterable[Told]) -> bool:
    """Has any worker told which sessions it holds?"""
    return any(one.figures and one.figures["sessions"] for one in told)
