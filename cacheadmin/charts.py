"""The overview's charts: each the same numbers as a picture and as a table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection
from django.utils.translation import gettext as _

from inference.models import Outcome, ServedBy

from . import changes, figures, labels, reliability, tallies
from .changes import Mark
from .figures import Overview
from .models import Action
from .tallies import Stretch

Value = float | None
ByStep = Mapping[datetime, Value]


@dataclass(frozen=True)
class Series:
    """One line, or the bars of one colour; a value for each step, None where there is nothing to say."""

    label: str
    values: Sequence[Value]


@dataclass(frozen=True)
class Chart:
    """`unit`: share (from 0 to 1), ms, count, bytes or money. `bars` are stacked; lines over several powers
    of ten are drawn on a `log` scale; `small` shares from 0 to the largest. `hint` says what else is to be
    known, such as what the chosen scope and class don't narrow."""

    name: str
    title: str
    unit: str
    series: Sequence[Series]
    bars: bool = False
    log: bool = False
    small: bool = False
    hint: str = ""

    @property
    def empty(self) -> bool:
        return not any(value for one in self.series for value in one.values)


@dataclass(frozen=True)
class Sheet:
    """All charts over the same steps, with what changed meanwhile."""

    steps: Sequence[datetime]
    charts: Sequence[Chart]
    marks: Sequence[Mark]

    @property
    def data(self) -> dict[str, Any]:
        """For the script that draws them; times in seconds since 1970."""
        return {
            "at": [int(at.timestamp()) for at in self.steps],
            "marks": [{"at": int(mark.at.timestamp()), "what": mark.what} for mark in self.marks],
            "charts": {
                chart.name: {
                    "unit": chart.unit,
                    "bars": chart.bars,
                    "log": chart.log,
                    "small": chart.small,
                    "series": [{"label": one.label, "values": one.values} for one in chart.series],
                }
                for chart in self.charts
            },
            "currency": settings.PRICE_CURRENCY,
        }


@dataclass(frozen=True)
class Row:
    """One step of a chart's table."""

    at: datetime
    values: Sequence[Value]


def rows(sheet: Sheet, chart: Chart) -> list[Row]:
    """Newest first, but for steps in which nothing was."""
    found = [Row(at, [one.values[place] for one in chart.series]) for place, at in enumerate(sheet.steps)]
    return [row for row in reversed(found) if any(value is not None for value in row.values)]


def sheet(overview: Overview) -> Sheet:
    steps = overview.stretch.steps
    every = [
        _answered(overview, steps),
        _speeds(overview, steps),
        _saved(overview, steps),
        *_money(overview, steps),
        _false_hits(overview, steps),
        _invalidations(overview.stretch, steps),
        *_load(overview.stretch, steps),
    ]
    return Sheet(steps, every, changes.since(steps[0], overview.stretch.scope))


def _line(label: str, steps: Sequence[datetime], values: ByStep) -> Series:
    return Series(str(label), [values.get(step) for step in steps])


def _answered(overview: Overview, steps: Sequence[datetime]) -> Chart:
    """Of all lookups in a step, which share each layer answered and which went on to the model."""
    n = tallies.summed(
        [row for row in overview.lookup_rows if row["outcome"] != Outcome.BYPASS], "at", "layer", "outcome"
    )
    asked: dict[datetime, float] = {}
    served: dict[str, dict[datetime, float]] = {layer: {} for layer in figures.LAYERS}
    for (at, layer, outcome), count in n.items():
        asked[at] = asked.get(at, 0.0) + count
        if outcome in figures.SERVED and layer in served:
            served[layer][at] = served[layer].get(at, 0.0) + count
    rest = {at: 1 - sum(of.get(at, 0.0) for of in served.values()) / total for at, total in asked.items()}
    lines = [
        _line(labels.LAYERS[layer], steps, {at: of.get(at, 0.0) / asked[at] for at in asked})
        for layer, of in served.items()
    ]
    return Chart(
        "answered",
        _("Who answered, as a share of all lookups"),
        "share",
        [*lines, _line(_("went on to the model"), steps, rest)],
    )


def _speeds(overview: Overview, steps: Sequence[datetime]) -> Chart:
    buckets: dict[str, dict[datetime, dict[int, float]]] = {}
    for row in overview.answer_rows:
        buckets.setdefault(row["served_by"], {}).setdefault(row["at"], {})[row["bucket"]] = row["n"]
    lines = [
        _line(
            labels.SERVED_BY[name],
            steps,
            {at: tallies.percentile(of, 0.5) for at, of in buckets[name].items()},
        )
        for name in ServedBy.values
        if name in buckets
    ]
    return Chart("speeds", _("Time to the first words, half within"), "ms", lines, log=True)


def _saved(overview: Overview, steps: Sequence[datetime]) -> Chart:
    saved: dict[datetime, float] = {}
    reused: dict[datetime, float] = {}
    for row in overview.answer_rows:
        at = row["at"]
        saved[at] = saved.get(at, 0.0) + row["tokens_saved"]
        reused[at] = reused.get(at, 0.0) + row["cached_tokens"]
    lines = [
        _line(_("answered from the cache"), steps, saved),
        _line(_("prompt not read anew"), steps, reused),
    ]
    return Chart("saved", _("Tokens that were not computed"), "count", lines, bars=True)


def _money(overview: Overview, steps: Sequence[datetime]) -> Iterable[Chart]:
    """What the saved tokens would have cost; nothing where nobody has said what they cost."""
    saved: dict[datetime, Value] = {}
    for row in overview.answer_rows:
        cost = figures.money(row["tokens_saved"])
        if cost is None:
            return
        saved[row["at"]] = (saved.get(row["at"]) or 0.0) + cost
    yield Chart("money", _("Money saved"), "money", [_line(_("by the cache"), steps, saved)], bars=True)


def _false_hits(overview: Overview, steps: Sequence[datetime]) -> Chart:
    found = overview.false_hits_over_time
    lines = [
        _line(_("estimated"), steps, {at: one.share for at, one in found.items()}),
        _line(_("at most, 95% sure"), steps, {at: one.high for at, one in found.items()}),
    ]
    hint = _("Where fewer than %(n)d hits were judged, nothing can be said.") % {"n": reliability.A_FEW}
    return Chart("wrong", _("Wrong hits, estimated"), "share", lines, small=True, hint=hint)


_TAKEN_BACK = """
    SELECT date_bin(%(step)s::interval, i.created_at, %(origin)s::timestamptz), i.cause, count(*)
    FROM inference_invalidation i JOIN inference_generation g ON g.id = i.generation_id
    WHERE i.created_at >= %(since)s AND i.undone_at IS NULL
        AND (%(scope)s::bigint IS NULL OR g.scope_id = %(scope)s::bigint)
    GROUP BY 1, 2
    UNION ALL
    SELECT date_bin(%(step)s::interval, created_at, %(origin)s::timestamptz), action, count(*)
    FROM cacheadmin_auditrecord
    WHERE created_at >= %(since)s AND action = ANY(%(actions)s) AND subject = ''
    GROUP BY 1, 2
"""
_BY_ACTION = {Action.INVALIDATE: "source", Action.BUMP: "version", Action.FLUSH: "flush"}


def _invalidations(stretch: Stretch, steps: Sequence[datetime]) -> Chart:
    """How often something was taken back: by people in their conversations, by sources, versions, flushes."""
    found: dict[str, dict[datetime, float]] = {}
    with connection.cursor() as cursor:
        cursor.cursor.execute(
            _TAKEN_BACK,
            {"step": stretch.step, "origin": tallies.ORIGIN, "since": stretch.since}
            | {"scope": stretch.scope.pk if stretch.scope else None}
            | {"actions": [str(action) for action in _BY_ACTION]},
        )
        for at, cause, n in cursor.fetchall():
            cause = _BY_ACTION.get(cause, cause)
            found.setdefault(cause, {})[at] = float(n)
    lines = [
        _line(labels.label("cause", cause), steps, found[cause]) for cause in labels.CAUSES if cause in found
    ]
    hints = [_("Sources, versions and flushes: of all scopes.")] if stretch.scope else []
    hints += [_("Of all classes.")] if stretch.content_class else []
    title = _("What was taken back, by cause")
    return Chart("invalidations", title, "count", lines, bars=True, hint=" ".join(hints))


def _load(stretch: Stretch, steps: Sequence[datetime]) -> Iterable[Chart]:
    samples = figures.load(stretch.since, stretch.step)

    def line(label: str, name: str) -> Series:
        return _line(label, steps, {at: sample[name] for at, sample in samples.items()})

    waiting = [line(_("answers being written or waiting"), "waiting"), line(_("in review"), "suspects")]
    hint = _("Of all scopes and classes.") if stretch.scope or stretch.content_class else ""
    yield Chart("waiting", _("What waited, at most"), "count", waiting, hint=hint)
    memory = [line(_("held"), "kv_bytes"), line(_("at most"), "kv_limit")]
    yield Chart("memory", _("Keys and values held by the engines"), "bytes", memory, hint=hint)
