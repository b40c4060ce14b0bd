"""Hours that are over, counted once, so that a month's figures need not be counted from millions of rows.

Each is counted for everything, for each scope, for each class, and for each scope and class (`Cut`): whatever
is asked for, only the rows of that are read. The same rows are what has passed of the current hour.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from operator import itemgetter
from typing import Any

from django.db import connection, transaction
from django.db.models import Max, Min
from django.utils import timezone

from inference.models import Decision, Generation, Scope

from .models import AnswerHour, Cut, LookupHour

Counted = type[LookupHour] | type[AnswerHour]

# From one edge to the next a fifth more, from 1 ms to 100 s: percentiles are right to a tenth.
EDGES = [round(1.2**step, 3) for step in range(64)]

# Steps of a chart begin at multiples of their length from here on.
ORIGIN = datetime(2000, 1, 3, tzinfo=UTC)  # a Monday

# An answer is counted in the hour in which it was asked for; by then those are finished.
_SETTLED = timedelta(minutes=5)

_LOOKUPS = """
    SELECT d.created_at AS at, g.scope_id, coalesce(e.content_class, '') AS content_class,
        d.layer, d.outcome, d.milliseconds
    FROM inference_decision d JOIN inference_generation g ON g.id = d.generation_id
        LEFT JOIN inference_entry e ON e.id = d.entry_id
    WHERE d.created_at >= %(since)s AND d.created_at < %(until)s
"""
_ANSWERS = """
    SELECT g.created_at AS at, g.scope_id, coalesce(e.content_class, '') AS content_class,
        g.served_by, width_bucket(g.first_token_ms, %(edges)s::float8[]) AS bucket,
        g.served_by = 'model' AS computed, e.tokens_to_compute, e.seconds_to_compute,
        g.prompt_tokens, g.cached_tokens
    FROM inference_generation g LEFT JOIN inference_entry e ON e.id = g.entry_id
    WHERE g.created_at >= %(since)s AND g.created_at < %(until)s
        AND g.served_by <> '' AND g.first_token_ms IS NOT NULL
"""


@dataclass(frozen=True)
class _Kind:
    """What is counted: the rows, by which of their columns, and which sums of the others."""

    rows: str
    by: tuple[str, ...]
    others: tuple[str, ...]
    sums: Mapping[str, str]


_KINDS: dict[Counted, _Kind] = {
    LookupHour: _Kind(
        _LOOKUPS,
        ("layer", "outcome"),
        ("milliseconds",),
        {"n": "count(*)", "milliseconds": "sum(milliseconds)"},
    ),
    AnswerHour: _Kind(
        _ANSWERS,
        ("served_by", "bucket"),
        ("computed", "tokens_to_compute", "seconds_to_compute", "prompt_tokens", "cached_tokens"),
        {
            "n": "count(*)",
            "tokens_saved": "coalesce(sum(tokens_to_compute) FILTER (WHERE NOT computed), 0)",
            "seconds_saved": "coalesce(sum(seconds_to_compute) FILTER (WHERE NOT computed), 0)",
            "prompt_tokens": "coalesce(sum(prompt_tokens) FILTER (WHERE computed), 0)",
            "cached_tokens": "coalesce(sum(cached_tokens) FILTER (WHERE computed), 0)",
        },
    ),
}
_LOCK = 7_306_502  # any number that nobody else locks by
# Once they have a name; which of them a row leaves open says how it was cut.
_CUT = " ".join(
    f"WHEN {left_open} THEN '{cut}'"
    for left_open, cut in enumerate((Cut.EACH, Cut.SCOPE, Cut.CLASS, Cut.ALL))
)


def counted_until() -> datetime | None:
    """The end of the last hour that is counted; None before the first."""
    # All that the index begins with: its end is looked up, and not every hour read.
    every = {"cut": Cut.ALL, "scope": None, "content_class": ""}
    hours = [model._default_manager.filter(**every).aggregate(last=Max("hour"))["last"] for model in _KINDS]
    last = max((hour for hour in hours if hour), default=None)
    return last + timedelta(hours=1) if last else None


def count_hours() -> int:
    """Count the hours that are over and not counted yet; returns how many rows that made."""
    until = (timezone.now() - _SETTLED).replace(minute=0, second=0, microsecond=0)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        since = counted_until() or _first()
        if since is None or since >= until:
            return 0
        made = 0
        for model, kind in _KINDS.items():
            cursor.cursor.execute(_counting(model, kind), _bounds(since, until), prepare=False)
            made += cursor.rowcount
    return made


def _counting(model: Counted, kind: _Kind) -> str:
    by = ", ".join(("hour", *kind.by))
    cuts = ", ".join(
        f"({by}{more})" for more in ("", ", scope_id", ", content_class", ", scope_id, content_class")
    )
    return f"""
        INSERT INTO {model._meta.db_table} (cut, scope_id, content_class, {by}, {", ".join(kind.sums)})
        SELECT CASE GROUPING(scope_id, content_class) {_CUT} END, scope_id, coalesce(content_class, ''),
            {by}, {", ".join(kind.sums.values())}
        FROM (SELECT *, date_trunc('hour', at) AS hour FROM ({kind.rows}) AS row) AS row
        GROUP BY GROUPING SETS ({cuts})
    """


def _first() -> datetime | None:
    """When the first question was asked."""
    first = [rows.aggregate(at=Min("created_at"))["at"] for rows in (Decision.objects, Generation.objects)]
    return min((at for at in first if at), default=None)


def _bounds(since: datetime, until: datetime) -> dict[str, Any]:
    return {"since": since, "until": until, "edges": EDGES}


@dataclass(frozen=True)
class Stretch:
    """From `since` until now in steps, of one scope or content class (None, "": all). `since` is where a step
    begins; steps are so many minutes, or so many hours."""

    since: datetime
    step: timedelta
    scope: Scope | None = None
    content_class: str = ""

    @classmethod
    def of(
        cls, span: timedelta, step: timedelta, scope: Scope | None = None, content_class: str = ""
    ) -> "Stretch":
        """The last `span`, and what is missing to a whole first step."""
        since = timezone.now() - span
        return cls(since - (since - ORIGIN) % step, step, scope, content_class)

    @property
    def cut(self) -> Cut:
        if self.scope:
            return Cut.EACH if self.content_class else Cut.SCOPE
        return Cut.CLASS if self.content_class else Cut.ALL

    @cached_property
    def counted(self) -> datetime:
        """Up to here hours are read as they were counted; steps of minutes never are."""
        if self.step < timedelta(hours=1):
            return self.since
        return max(self.since, counted_until() or self.since)

    @cached_property
    def steps(self) -> list[datetime]:
        """The beginning of each, up to the one that is not over."""
        n = (timezone.now() - self.since) // self.step + 1
        return [self.since + at * self.step for at in range(n)]


def by_step(model: Counted, stretch: Stretch) -> list[Mapping[str, Any]]:
    """Counts by step (`at`) and by what the model's rows are counted by."""
    kind = _KINDS[model]
    by = ", ".join(("at", *kind.by))
    binned = "date_bin(%(step)s::interval, {}, %(origin)s::timestamptz) AS at"
    scope = "scope_id = %(scope)s::bigint" if stretch.scope else "scope_id IS NULL"
    wanted = [scope] if stretch.scope else []
    wanted += ["content_class = %(class)s::text"] if stretch.content_class else []
    with connection.cursor() as cursor:
        cursor.cursor.execute(
            f"""
                SELECT {by}, {", ".join(f"sum({name}::float8) AS {name}" for name in kind.sums)} FROM (
                    SELECT {binned.format("hour")}, {", ".join((*kind.by, *kind.sums))}
                    FROM {model._meta.db_table}
                    WHERE cut = %(cut)s::text AND {scope} AND content_class = %(class)s::text
                        AND hour >= %(first)s::timestamptz AND hour < %(since)s::timestamptz
                    UNION ALL
                    SELECT {by}, {", ".join(f"{of} AS {name}" for name, of in kind.sums.items())} FROM (
                        SELECT {binned.format("row.at")}, {", ".join((*kind.by, *kind.others))}
                        FROM ({kind.rows}) AS row WHERE {" AND ".join(wanted or ["TRUE"])}
                    ) AS row GROUP BY {by}
                ) AS every GROUP BY {by} ORDER BY {by}
            """,
            _bounds(stretch.counted, timezone.now() + _SETTLED)
            | {"first": stretch.since, "step": stretch.step, "origin": ORIGIN, "cut": str(stretch.cut)}
            | {"scope": stretch.scope.pk if stretch.scope else None, "class": stretch.content_class},
            prepare=False,
        )
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def percentile(buckets: Mapping[int, float], share: float) -> float | None:
    """Below which value (in milliseconds) `share` of what is counted by bucket lies; None without any."""
    wanted = share * sum(buckets.values())
    passed = 0.0
    for bucket, n in sorted(buckets.items()):
        if passed + n >= wanted and n:
            low, high = EDGES[bucket - 1] if bucket else 0.0, EDGES[min(bucket, len(EDGES) - 1)]
            return float(low + (high - low) * (wanted - passed) / n)
        passed += n
    return None


def summed(rows: Sequence[Mapping[str, Any]], *by: str) -> dict[tuple[Any, ...], float]:
    """`n` of these rows by the values of these columns."""
    found: defaultdict[tuple[Any, ...], float] = defaultdict(float)
    key = itemgetter(*by) if len(by) > 1 else lambda row: (row[by[0]],)
    for row in rows:
        found[key(row)] += row["n"]
    return dict(found)
