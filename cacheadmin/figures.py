"""What the cache does, in figures: over a stretch of time, of one scope or content class or all."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from inference.models import Decision, Entry, Generation, Outcome, Scope, ServedBy, Wording

from . import review, tallies
from .models import AnswerHour, AuditRecord, LookupHour

RANGES = {
    "1h": timedelta(hours=1),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}
SERVED = (Outcome.HIT, Outcome.GRAY)


@dataclass(frozen=True)
class Layer:
    """Lookups that ended in this layer, by outcome; `share` is what it answered of all lookups."""

    name: str
    outcomes: dict[str, int]
    milliseconds: float
    share: float

    @property
    def total(self) -> int:
        return sum(self.outcomes.values())


@dataclass(frozen=True)
class Speed:
    """How soon people saw the first words, in milliseconds, by how they were answered."""

    served_by: str
    answers: int
    p50: float | None
    p95: float | None


@dataclass(frozen=True)
class Overview:
    since: datetime
    lookups: int
    served: int
    layers: list[Layer]
    outcomes: dict[str, int]
    speeds: list[Speed]
    answers_saved: int
    tokens_saved: int
    seconds_saved: float
    prompt_tokens: int
    cached_tokens: int
    changes: list[AuditRecord]

    @property
    def hit_ratio(self) -> float | None:
        return self.served / self.lookups if self.lookups else None

    @property
    def penetration(self) -> float | None:
        """The share of lookups that went on to the model."""
        return 1 - self.served / self.lookups if self.lookups else None

    @property
    def reused(self) -> float | None:
        """The share of prompt tokens that the engine did not read anew."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else None


def overview(span: timedelta, scope: Scope | None, content_class: str) -> Overview:
    """Figures of the last `span`: of whole hours, where those are counted already."""
    since = timezone.now() - span
    which = (since, scope.pk if scope else None, content_class)
    lookups = tallies.summed(LookupHour, ("layer", "outcome"), *which)
    answers = tallies.summed(AnswerHour, ("served_by", "bucket"), *which)
    asked = int(sum(row["n"] for row in lookups if row["outcome"] != Outcome.BYPASS))
    saved = [row for row in answers if row["served_by"] != ServedBy.MODEL]
    return Overview(
        since=since,
        lookups=asked,
        served=int(sum(row["n"] for row in lookups if row["outcome"] in SERVED)),
        layers=[_layer(name, lookups, asked) for name in ("exact", "fuzzy", "semantic")],
        outcomes={o: int(sum(row["n"] for row in lookups if row["outcome"] == o)) for o in Outcome.values},
        speeds=_speeds(answers),
        answers_saved=int(sum(row["n"] for row in saved)),
        tokens_saved=int(sum(row["tokens_saved"] for row in saved)),
        seconds_saved=sum(row["seconds_saved"] for row in saved),
        prompt_tokens=int(sum(row["prompt_tokens"] for row in answers)),
        cached_tokens=int(sum(row["cached_tokens"] for row in answers)),
        changes=list(AuditRecord.objects.filter(created_at__gte=since).order_by("-id")[:10]),
    )


def _layer(name: str, lookups: list[Mapping[str, Any]], asked: int) -> Layer:
    mine = [row for row in lookups if row["layer"] == name]
    outcomes = {row["outcome"]: int(row["n"]) for row in mine}
    total = sum(outcomes.values())
    served = sum(outcomes.get(outcome, 0) for outcome in SERVED)
    milliseconds = sum(row["milliseconds"] for row in mine)
    return Layer(name, outcomes, milliseconds / total if total else 0.0, served / asked if asked else 0.0)


def _speeds(answers: list[Mapping[str, Any]]) -> list[Speed]:
    speeds = []
    for name in ServedBy.values:
        buckets = {row["bucket"]: row["n"] for row in answers if row["served_by"] == name}
        if buckets:
            ends = (tallies.percentile(buckets, share) for share in (0.5, 0.95))
            speeds.append(Speed(name, int(sum(buckets.values())), *ends))
    return speeds


@dataclass(frozen=True)
class Holdings:
    """What the cache holds now: many rows by Postgres' own estimate, which costs nothing; suspects and dead
    entries counted to a thousand."""

    entries: int
    wordings: int
    suspects: int
    expired: int


_MANY = 1_000


def holdings() -> Holdings:
    return Holdings(
        entries=estimated(Entry),
        wordings=estimated(Wording),
        suspects=review.queue_length(_MANY),
        expired=Entry.objects.filter(dies_at__lt=Now()).order_by().values("pk")[:_MANY].count(),
    )


_FEW = 10_000


def estimated(model: type[Entry] | type[Wording] | type[Decision] | type[Generation]) -> int:
    """Rows of a table: exactly as long as they are few, else as Postgres estimates them."""
    few = model._default_manager.order_by().values("pk")[: _FEW + 1].count()
    if few <= _FEW:
        return few
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples FROM pg_class WHERE oid = %s::regclass", [model._meta.db_table])
        return max(few, int(cursor.fetchone()[0]))
