"""What the cache does, in figures: over a stretch of time, of one scope or content class or all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from inference.models import Decision, Entry, Generation, Outcome, Scope, ServedBy, Wording

from . import reliability, review, tallies
from .models import AnswerHour, LookupHour
from .reliability import ByGray, Estimate, Judged, Stratum
from .tallies import Stretch

Rows = Sequence[Mapping[str, Any]]

# What is shown, and in which steps.
RANGES = {
    "1h": (timedelta(hours=1), timedelta(minutes=2)),
    "24h": (timedelta(hours=24), timedelta(hours=1)),
    "7d": (timedelta(days=7), timedelta(hours=3)),
    "30d": (timedelta(days=30), timedelta(hours=12)),
}
LAYERS = ("exact", "fuzzy", "semantic")
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
    """`lookup_rows` and `answer_rows` are the counts by step, from which the rest is summed; `judged` is what
    `false_hits` comes from."""

    stretch: Stretch
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
    false_hits: Estimate | None
    judged: Judged = field(repr=False)
    lookup_rows: Rows = field(repr=False)
    answer_rows: Rows = field(repr=False)

    @cached_property
    def false_hits_over_time(self) -> dict[datetime, Estimate]:
        """By the beginning of a step: of those in which enough was judged to say anything."""
        hits = tallies.summed(self.lookup_rows, "at", "outcome")
        found = {}
        for at, by_gray in self.judged.by_step.items():
            outcomes = {(outcome,): hits.get((at, outcome), 0) for outcome in SERVED}
            estimate = _estimate(by_gray, outcomes, self.judged.checked)
            if estimate and estimate.verdicts >= reliability.A_FEW:
                found[at] = estimate
        return found

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

    @property
    def money_saved(self) -> float | None:
        """What the saved tokens would have cost; None where nobody has said what they cost."""
        return money(self.tokens_saved)


def money(tokens: float) -> float | None:
    """What these tokens cost at PRICE_PER_1000_TOKENS."""
    return tokens / 1_000 * settings.PRICE_PER_1000_TOKENS if settings.PRICE_PER_1000_TOKENS else None


def overview(span: str, scope: Scope | None, content_class: str) -> Overview:
    """Figures of the stretch that is called `span`: of whole hours, where those are counted already."""
    stretch = Stretch.of(*RANGES[span], scope, content_class)
    lookups = tallies.by_step(LookupHour, stretch)
    answers = tallies.by_step(AnswerHour, stretch)
    outcomes = tallies.summed(lookups, "outcome")
    asked = sum(n for (outcome,), n in outcomes.items() if outcome != Outcome.BYPASS)
    saved = [row for row in answers if row["served_by"] != ServedBy.MODEL]
    judged = reliability.judged(stretch)
    return Overview(
        stretch=stretch,
        lookups=int(asked),
        served=int(sum(outcomes.get((outcome,), 0) for outcome in SERVED)),
        layers=[_layer(name, lookups, asked) for name in LAYERS],
        outcomes={outcome: int(outcomes.get((outcome,), 0)) for outcome in Outcome.values},
        speeds=_speeds(answers),
        answers_saved=int(sum(row["n"] for row in saved)),
        tokens_saved=int(sum(row["tokens_saved"] for row in saved)),
        seconds_saved=sum(row["seconds_saved"] for row in saved),
        prompt_tokens=int(sum(row["prompt_tokens"] for row in answers)),
        cached_tokens=int(sum(row["cached_tokens"] for row in answers)),
        false_hits=_estimate(judged.by_gray, outcomes, judged.checked),
        judged=judged,
        lookup_rows=lookups,
        answer_rows=answers,
    )


def false_hits(span: str) -> tuple[Judged, Estimate | None]:
    """Of all scopes and classes: what was judged in this time, and what that says of all hits."""
    stretch = Stretch.of(*RANGES[span])
    outcomes = tallies.summed(tallies.by_step(LookupHour, stretch), "outcome")
    judged = reliability.judged(stretch)
    return judged, _estimate(judged.by_gray, outcomes, judged.checked)


def _estimate(by_gray: ByGray, outcomes: Mapping[tuple[Any, ...], float], checked: bool) -> Estimate | None:
    kinds = ((Outcome.GRAY, True), (Outcome.HIT, False))
    strata = [
        Stratum(int(outcomes.get((outcome,), 0)), *by_gray.get(gray, (0, 0))) for outcome, gray in kinds
    ]
    return reliability.estimate(strata, checked)


def _layer(name: str, lookups: Rows, asked: float) -> Layer:
    mine = [row for row in lookups if row["layer"] == name]
    outcomes = {outcome: int(n) for (outcome,), n in tallies.summed(mine, "outcome").items()}
    total = sum(outcomes.values())
    served = sum(outcomes.get(outcome, 0) for outcome in SERVED)
    milliseconds = sum(row["milliseconds"] for row in mine)
    return Layer(name, outcomes, milliseconds / total if total else 0.0, served / asked if asked else 0.0)


def _speeds(answers: Rows) -> list[Speed]:
    found: dict[str, dict[int, float]] = {}
    for (name, bucket), n in tallies.summed(answers, "served_by", "bucket").items():
        found.setdefault(name, {})[bucket] = n
    return [
        Speed(
            name,
            int(sum(found[name].values())),
            tallies.percentile(found[name], 0.5),
            tallies.percentile(found[name], 0.95),
        )
        for name in ServedBy.values
        if name in found
    ]


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
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples FROM pg_class WHERE oid = %s::regclass", [model._meta.db_table])
        rows = int(cursor.fetchone()[0])
    if rows > 2 * _FEW:
        return rows
    few = model._default_manager.order_by().values("pk")[: _FEW + 1].count()
    return few if few <= _FEW else max(few, rows)


def load(since: datetime, step: timedelta) -> dict[datetime, dict[str, Any]]:
    """The most that waited and was held in each step since then."""
    with connection.cursor() as cursor:
        cursor.cursor.execute(
            """
                SELECT date_bin(%s::interval, at, %s::timestamptz), max(waiting), max(suspects),
                    max(kv_bytes), max(kv_limit)
                FROM cacheadmin_loadsample WHERE at >= %s GROUP BY 1
            """,
            [step, tallies.ORIGIN, since],
        )
        names = ("waiting", "suspects", "kv_bytes", "kv_limit")
        return {row[0]: dict(zip(names, row[1:], strict=True)) for row in cursor.fetchall()}
