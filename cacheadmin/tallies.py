"""Hours that are over, counted once, so that a week's figures need not be counted from millions of rows.

The same two statements count an hour for keeps and what has passed of the current one.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Max, Min
from django.utils import timezone

from inference.models import Decision, Generation

from .models import AnswerHour, LookupHour

# From one edge to the next a fifth more, from 1 ms to 100 s: percentiles are right to a tenth.
EDGES = [round(1.2**step, 3) for step in range(64)]

# An answer is counted in the hour in which it was asked for; by then those are finished.
_SETTLED = timedelta(minutes=5)

_LOOKUPS = """
    SELECT date_trunc('hour', d.created_at) AS hour, g.scope_id,
        coalesce(e.content_class, '') AS content_class, d.layer, d.outcome,
        count(*) AS n, sum(d.milliseconds) AS milliseconds
    FROM inference_decision d JOIN inference_generation g ON g.id = d.generation_id
        LEFT JOIN inference_entry e ON e.id = d.entry_id
    WHERE d.created_at >= %(since)s AND d.created_at < %(until)s
    GROUP BY 1, 2, 3, 4, 5
"""
_ANSWERS = """
    SELECT date_trunc('hour', g.created_at) AS hour, g.scope_id,
        coalesce(e.content_class, '') AS content_class, g.served_by,
        width_bucket(g.first_token_ms, %(edges)s::float8[]) AS bucket, count(*) AS n,
        coalesce(sum(e.tokens_to_compute) FILTER (WHERE g.served_by <> 'model'), 0) AS tokens_saved,
        coalesce(sum(e.seconds_to_compute) FILTER (WHERE g.served_by <> 'model'), 0) AS seconds_saved,
        coalesce(sum(g.prompt_tokens) FILTER (WHERE g.served_by = 'model'), 0) AS prompt_tokens,
        coalesce(sum(g.cached_tokens) FILTER (WHERE g.served_by = 'model'), 0) AS cached_tokens
    FROM inference_generation g LEFT JOIN inference_entry e ON e.id = g.entry_id
    WHERE g.created_at >= %(since)s AND g.created_at < %(until)s
        AND g.served_by <> '' AND g.first_token_ms IS NOT NULL
    GROUP BY 1, 2, 3, 4, 5
"""
_COUNTED: dict[type[LookupHour] | type[AnswerHour], str] = {LookupHour: _LOOKUPS, AnswerHour: _ANSWERS}
_LOCK = 7_306_502  # any number that nobody else locks by


def counted_until() -> datetime | None:
    """The end of the last hour that is counted; None before the first."""
    hours = [model._default_manager.aggregate(last=Max("hour"))["last"] for model in _COUNTED]
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
        for model, statement in _COUNTED.items():
            columns = [name for name in _columns(model) if name != "id"]
            cursor.cursor.execute(
                f"INSERT INTO {model._meta.db_table} ({', '.join(columns)})"
                f" SELECT {', '.join(columns)} FROM ({statement}) AS counted",
                _bounds(since, until),
                prepare=False,
            )
            made += cursor.rowcount
    return made


def _columns(model: type[LookupHour] | type[AnswerHour]) -> list[str]:
    return [str(field.column) for field in model._meta.concrete_fields]


def _first() -> datetime | None:
    """When the first question was asked."""
    first = [rows.aggregate(at=Min("created_at"))["at"] for rows in (Decision.objects, Generation.objects)]
    return min((at for at in first if at), default=None)


def _bounds(since: datetime, until: datetime) -> dict[str, Any]:
    return {"since": since, "until": until, "edges": EDGES}


def summed(
    model: type[LookupHour] | type[AnswerHour],
    by: Sequence[str],
    since: datetime,
    scope: int | None,
    content_class: str,
) -> list[Mapping[str, Any]]:
    """Counts from `since` until now, summed over hours, scopes and classes (or one of them), one row for each
    combination of the columns `by`."""
    first = _next_hour(since)
    until = max(first, counted_until() or first)
    keys = {"id", "hour", "scope_id", "content_class", *by}
    sums = [name for name in _columns(model) if name not in keys]
    group = ", ".join(by)
    table, rows = model._meta.db_table, _COUNTED[model]
    later = rows.replace("since", "counted").replace("until", "now")
    with connection.cursor() as cursor:
        columns = f"scope_id, content_class, {group}, {', '.join(sums)}"
        cursor.cursor.execute(
            f"""
                SELECT {group}, {", ".join(f"sum({name})::float8 AS {name}" for name in sums)} FROM (
                    SELECT {columns} FROM ({rows}) AS before
                    UNION ALL
                    SELECT {columns} FROM {table} WHERE hour >= %(first)s AND hour < %(counted)s
                    UNION ALL
                    SELECT {columns} FROM ({later}) AS after
                ) AS every
                WHERE (%(scope)s::bigint IS NULL OR scope_id = %(scope)s::bigint)
                    AND (%(class)s::text = '' OR content_class = %(class)s::text)
                GROUP BY {group}
            """,
            _bounds(since, first)
            | {"first": first, "counted": until, "now": timezone.now() + _SETTLED}
            | {"scope": scope, "class": content_class},
            prepare=False,
        )
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _next_hour(at: datetime) -> datetime:
    """The first full hour from `at` on."""
    full = at.replace(minute=0, second=0, microsecond=0)
    return full if full == at else full + timedelta(hours=1)


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
