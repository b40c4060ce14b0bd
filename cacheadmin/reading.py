"""What an operator reads of an entry and of a pairing: collected from the tables, and compared."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from inference.cache import lifecycle
from inference.cache.prints import Prints, compare_prints
from inference.models import ALIVE, Decision, Entry, Generation, Observation, Wording
from inference.understanding.fingerprint import Comparison, Reason, compare, fingerprint

from . import audit
from .models import AuditRecord
from .wording_diff import Sides, compare_words

VECTORS = ("question_vector", "context_vector")
SHOWN_DECISIONS = 50
SHOWN_OBSERVATIONS = 10
SHOWN_WORDINGS = 100
SHOWN_READERS = 20
SHOWN_ACTIONS = 50
LOOKED_AT = 250
_SHOWN_LOOKUPS = 5


@dataclass(frozen=True)
class Event:
    """Something in an entry's life. `kind` is created, wording, observation, action, hit, expires or dies;
    `what` is the row that it is about."""

    at: datetime
    kind: str
    what: Any = None


@dataclass(frozen=True)
class Beside:
    """A verdict, with the stored answer and the one it was given on side by side."""

    observation: Observation
    stored: str
    fresh: str

    @cached_property
    def sides(self) -> Sides:
        return compare_words(self.stored, self.fresh)

    @property
    def is_fresh(self) -> bool:
        """Was the verdict on another answer than the stored one?"""
        return bool(self.fresh.strip()) and self.fresh != self.stored

    @cached_property
    def differences(self) -> tuple[Reason, ...]:
        return compare(fingerprint(self.stored), fingerprint(self.fresh)).reasons


@dataclass(frozen=True)
class Pairing:
    """A wording with all that helps to decide on it."""

    wording: Wording

    most_wordings, most_verdicts = SHOWN_WORDINGS, SHOWN_OBSERVATIONS

    @property
    def entry(self) -> Entry:
        return self.wording.entry

    @property
    def decidable(self) -> bool:
        """Can it be served, now or once it is approved?"""
        return self.wording.state in ALIVE and self.entry.state in ALIVE

    @property
    def stamp(self) -> str:
        return lifecycle.stamp(self.wording)

    @cached_property
    def others(self) -> list[Wording]:
        return list(wordings_of(self.entry.pk).exclude(pk=self.wording.pk)[: self.most_wordings])

    @cached_property
    def proved(self) -> Wording | None:
        """The other wording that speaks for the entry: the first that is proved, else the first."""
        return next((one for one in self.others if one.state == "active"), None) or next(
            iter(self.others), None
        )

    @cached_property
    def asked(self) -> Sides | None:
        """The question beside the one that the entry is known by."""
        if self.proved is None:
            return None
        return compare_words(_meaning(self.proved), _meaning(self.wording))

    @cached_property
    def comparison(self) -> Comparison | None:
        """Of the two questions, by their fingerprints."""
        if self.proved is None:
            return None
        try:
            known, mine = (Prints.from_json(one.fingerprint) for one in (self.proved, self.wording))
        except (ValueError, TypeError):
            return None  # of a version that is no more
        return compare_prints(known, mine)

    @cached_property
    def evidence(self) -> list[Beside]:
        """Verdicts on it, those on a fresh answer first."""
        found = [
            Beside(one, self.entry.answer, one.fresh or one.generation.text)
            for one in observations_on([self.wording.pk])[: self.most_verdicts]
        ]
        return sorted(found, key=lambda one: not one.is_fresh)

    @cached_property
    def decisions(self) -> list[Decision]:
        """The last lookups that came to it, newest first."""
        rows = Decision.objects.select_related("generation").defer(*_LARGE).order_by("-id")
        # One after the other: over both at once no index leads.
        served = Generation.objects.filter(wording=self.wording).order_by("-created_at")[:_SHOWN_LOOKUPS]
        found = {
            one.pk: one
            for which in (
                {"wording": self.wording},
                {"generation__in": list(served.values_list("pk", flat=True))},
            )
            for one in rows.filter(**which)[:_SHOWN_LOOKUPS]
        }
        return [found[pk] for pk in sorted(found, reverse=True)[:_SHOWN_LOOKUPS]]

    @cached_property
    def suggested(self) -> tuple[str, str]:
        """The names in which the two questions differ, as far as that is plain."""
        if self.asked is None:
            return "", ""
        stored, this = (
            " ".join(run.text.strip() for run in side if run.kind != "same").strip()
            for side in (self.asked.left, self.asked.right)
        )
        short = max(len(stored), len(this)) <= 40
        return (stored, this) if stored and this and short else ("", "")


def _meaning(wording: Wording) -> str:
    return wording.resolved or wording.question


_LARGE = ("generation__question", "generation__output_token_ids")


def wordings_of(entry: UUID) -> QuerySet[Wording]:
    return Wording.objects.filter(entry=entry).defer(*VECTORS).order_by("created_at")


def observations_on(wordings: Iterable[UUID]) -> QuerySet[Observation]:
    rows = Observation.objects.filter(wording__in=list(wordings)).select_related("generation", "wording")
    return rows.defer(*_LARGE, "wording__question_vector", "wording__context_vector").order_by("-id")


def pairing(pk: UUID) -> Pairing:
    """Raises Wording.DoesNotExist."""
    rows = Wording.objects.select_related("entry__scope", "scope")
    return Pairing(rows.defer(*VECTORS, "entry__answer_vector").get(pk=pk))


@dataclass(frozen=True)
class Reader:
    """A conversation in which an entry was served: how often, and when last."""

    session: UUID
    times: int
    last: datetime


@dataclass(frozen=True)
class Story:
    """An entry with everything that hangs on it, each kind up to its `most`."""

    entry: Entry

    most_wordings, most_verdicts = SHOWN_WORDINGS, SHOWN_OBSERVATIONS
    most_decisions, most_lookups, most_readers = SHOWN_DECISIONS, LOOKED_AT, SHOWN_READERS
    most_actions = SHOWN_ACTIONS

    @cached_property
    def wordings(self) -> list[Wording]:
        return list(wordings_of(self.entry.pk)[: self.most_wordings])

    @cached_property
    def born(self) -> Wording | None:
        return next((one for one in self.wordings if one.origin == "birth"), None) or next(
            iter(self.wordings), None
        )

    @property
    def prints(self) -> list[tuple[str, str]]:
        """The parts of the fingerprint of the question it was created for, as (part, what it holds)."""
        parts = (self.born.fingerprint or {}).get("meaning", {}) if self.born else {}
        return [(name, _flat(value)) for name, value in parts.items() if name != "text"]

    @cached_property
    def last_lookups(self) -> list[int]:
        """Ids of the last lookups that came to it, newest first."""
        # As a range, which only the index on entry and id is in the order of: told that it is one entry,
        # Postgres may walk all lookups from the newest on, until it has found enough of a popular entry's.
        mine = Decision.objects.filter(entry_id__gte=self.entry.pk, entry_id__lte=self.entry.pk)
        return list(mine.order_by("entry_id", "-id").values_list("pk", flat=True)[: self.most_lookups])

    @cached_property
    def decisions(self) -> list[Decision]:
        rows = Decision.objects.filter(pk__in=self.last_lookups[: self.most_decisions])
        return list(rows.select_related("generation", "policy").defer(*_LARGE).order_by("-id"))

    @cached_property
    def readers(self) -> list["Reader"]:
        """Conversations that it was served in, as far as its last lookups tell, the last first."""
        rows = Decision.objects.filter(pk__in=self.last_lookups, outcome__in=["hit", "gray"]).order_by("-id")
        found: dict[UUID, list[datetime]] = {}
        for session, at in rows.values_list("generation__session", "created_at"):
            found.setdefault(session, []).append(at)
        return [Reader(session, len(at), at[0]) for session, at in found.items()][: self.most_readers]

    @cached_property
    def evidence(self) -> list[Beside]:
        rows = observations_on(one.pk for one in self.wordings)[: self.most_verdicts]
        return [Beside(one, self.entry.answer, one.fresh or one.generation.text) for one in rows]

    @property
    def life_is_cut(self) -> bool:
        """May there have been more than is shown of its life?"""
        kinds = (
            (self.wordings, self.most_wordings),
            (self.evidence, self.most_verdicts),
            (self.actions, self.most_actions),
        )
        return any(len(rows) >= most for rows, most in kinds)

    @cached_property
    def life(self) -> list[Event]:
        return sorted(self._events(), key=lambda event: event.at)

    def _events(self) -> Iterator[Event]:
        entry = self.entry
        yield Event(entry.created_at, "created")
        yield from (
            Event(one.created_at, "wording", one)
            for one in self.wordings
            if one != self.born or (one.created_at - entry.created_at).total_seconds() > 1
        )
        yield from (
            Event(one.observation.updated_at, "observation", one.observation) for one in self.evidence
        )
        yield from (Event(one.created_at, "action", one) for one in self.actions)
        if entry.last_hit_at:
            yield Event(entry.last_hit_at, "hit")
        yield Event(entry.expires_at, "expires")
        yield Event(entry.dies_at, "dies")

    @cached_property
    def actions(self) -> list[AuditRecord]:
        """The last things that were done to it or to its wordings."""
        mine = Q(subject=audit.ENTRY, subject_id=str(self.entry.pk))
        ids = [str(one.pk) for one in self.wordings]
        rows = AuditRecord.objects.filter(mine | Q(subject=audit.WORDING, subject_id__in=ids))
        return list(rows.order_by("-id")[: self.most_actions])


def _flat(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(" ".join(map(str, one)) if isinstance(one, list) else str(one) for one in value)
    return str(value)


def story(pk: UUID) -> Story:
    """Raises Entry.DoesNotExist."""
    rows = Entry.objects.select_related("scope").prefetch_related("sources")
    return Story(rows.defer("answer_vector").get(pk=pk))
