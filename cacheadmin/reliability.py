"""How often what the cache serves is wrong, as far as verdicts tell: an estimate with an interval.

From background checks, which are made of a share of all hits, whoever they were served to. Where there are
only few, people's verdicts count too, although those who have something to complain of speak up more often.

Doubtful hits (gray) are looked at much more often than others, so they are estimated by themselves: the share
of all hits that are wrong is each kind's share, weighed by how many hits of it there were.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db import connection

from inference.calibration.bounds import wilson

from .tallies import ORIGIN, Stretch

# Whose verdicts on an answer that was served count here; what only hints at one (an edit, a repeat) doesn't.
CHECKS = ("gray",)
PEOPLE = ("user", "correction", "operator")
ENOUGH = 30
# A step of a chart with fewer verdicts than this says nothing: of ten right ones up to 28% may be wrong.
A_FEW = 10
# Of more answers than that every second, third ... is looked at, picked by chance but always the same ones: a
# share of 2% is then known to 0.3 points, and a month costs no more than a day.
MOST = 10_000


@dataclass(frozen=True)
class Estimate:
    """A share from 0 to 1, between which bounds it lies with 95% confidence, from how many verdicts, and
    whether these are background checks alone."""

    share: float
    low: float
    high: float
    verdicts: int
    checked: bool = False


@dataclass(frozen=True)
class Stratum:
    """Hits of one kind: how many, how many of those were judged, and how many of those were wrong."""

    hits: int
    judged: int
    wrong: int


_HOW_MANY = "SELECT count(*) FROM inference_observation WHERE created_at >= %s"
# One verdict for each answer that was served: a disagreement counts, whoever agreed besides.
_COUNTED = """
    WITH verdicts AS (
        SELECT o.generation_id, bool_or(o.verdict = 'disagree') AS wrong,
            date_bin(%(step)s, min(o.created_at), %(origin)s) AS at
        FROM inference_observation o
        WHERE o.created_at >= %(since)s AND o.verdict IN ('agree', 'disagree') AND o.source = ANY(%(by)s)
            AND (uuid_hash(o.generation_id) & 2147483647) %% %(every)s = 0
        GROUP BY o.generation_id
    )
    SELECT at, g.served_by = 'gray' AS gray, count(*), count(*) FILTER (WHERE wrong)
    FROM verdicts JOIN inference_generation g ON g.id = verdicts.generation_id
        LEFT JOIN inference_entry e ON e.id = g.entry_id
    WHERE g.served_by IN ('exact', 'fuzzy', 'semantic', 'gray')
        AND (%(scope)s::bigint IS NULL OR g.scope_id = %(scope)s::bigint)
        AND (%(class)s::text = '' OR e.content_class = %(class)s::text)
    GROUP BY 1, 2
"""

# How many hits were judged, and how many of those were wrong, by whether they were gray.
ByGray = Mapping[bool, tuple[int, int]]


@dataclass(frozen=True)
class Judged:
    """Hits that were judged, by the step of the stretch in which they were first."""

    by_step: Mapping[datetime, ByGray]
    checked: bool

    @cached_property
    def by_gray(self) -> ByGray:
        total: dict[bool, tuple[int, int]] = {}
        for found in self.by_step.values():
            for gray, (n, wrong) in found.items():
                before = total.get(gray, (0, 0))
                total[gray] = before[0] + n, before[1] + wrong
        return total


def judged(stretch: Stretch) -> Judged:
    """By background checks if those are enough, else by people too. At most MOST answers, as many as that
    come from anywhere in this time."""
    with connection.cursor() as cursor:
        cursor.execute(_HOW_MANY, [stretch.since])
        every = max(1, cursor.fetchone()[0] // MOST)
    wanted: dict[str, Any] = {
        "since": stretch.since,
        "step": stretch.step,
        "origin": ORIGIN,
        "every": every,
        "scope": stretch.scope.pk if stretch.scope else None,
        "class": stretch.content_class,
    }
    checks = _judged(wanted, CHECKS)
    if sum(n for found in checks.values() for n, _wrong in found.values()) >= ENOUGH:
        return Judged(checks, True)
    return Judged(_judged(wanted, (*CHECKS, *PEOPLE)), False)


def _judged(wanted: Mapping[str, Any], by: Sequence[str]) -> dict[datetime, dict[bool, tuple[int, int]]]:
    found: dict[datetime, dict[bool, tuple[int, int]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED, {**wanted, "by": list(by)})
        for at, gray, n, wrong in cursor.fetchall():
            found.setdefault(at, {})[gray] = n, wrong
    return found


def estimate(strata: Iterable[Stratum], checked: bool = False) -> Estimate | None:
    """Of all hits of these kinds, the share that is wrong; None where none was judged.

    The bounds are each kind's Wilson bounds, recovered to those of their sum (MOVER: Zou and Donner, 2008). A
    kind of which nothing was judged may be anything, which the upper bound then shows."""
    known = [one for one in strata if one.hits or one.judged]
    judged = sum(one.judged for one in known)
    if not judged:
        return None
    hits = sum(max(one.hits, one.judged) for one in known)
    share = below = above = 0.0
    for one in known:
        weight = max(one.hits, one.judged) / hits
        at, (low, high) = one.wrong / max(1, one.judged), wilson(one.wrong, one.judged)
        share += weight * at
        below += (weight * (at - low)) ** 2
        above += (weight * (high - at)) ** 2
    return Estimate(
        share, max(0.0, share - math.sqrt(below)), min(1.0, share + math.sqrt(above)), judged, checked
    )
