"""From which likeness on an answer is served, by scope and content class."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.db import connection

from inference.models import ConfusablePair, Mode, Policy, Scope

# How long a worker goes on with what it read: a changed threshold is at work within a second.
_FRESH_SECONDS = 1.0


@dataclass(frozen=True)
class Thresholds:
    """Likeness from 0 to 1. At `high` a hit, unless something conflicts; at `low` a gray hit, if all agrees;
    for both the verifier, where there is one, must give `consent` (but not for what agrees above `high`).
    In other words, where nothing agrees or conflicts, a gray hit if all the evidence comes to `likely` and
    the verifier alone gives `consent`; `followed` is the same for questions that were asked at the same
    moment of a conversation. At `near` worth proving; below that a miss. `policy` is the row that says so,
    None for what is built in.
    """

    high: float
    low: float
    near: float
    consent: float
    policy: int | None = None
    version: int = 0
    likely: float = 0.97
    followed: float = 0.9


BUILT_IN = Thresholds(high=0.985, low=0.90, near=0.78, consent=0.5)


@dataclass(frozen=True)
class Rules:
    """All that is tuned for one scope: thresholds by content class, and names never to be confused."""

    thresholds: dict[str, Thresholds]
    confusable: tuple[tuple[str, str], ...]

    def of(self, content_class: str) -> Thresholds:
        """Those of the class, or else of all classes, or else the built-in ones."""
        return self.thresholds.get(content_class) or self.thresholds.get("") or BUILT_IN


_read: dict[tuple[int, str], tuple[float, Rules]] = {}


def rules(scope: Scope, mode: Mode = Mode.LIVE) -> Rules:
    """The rules of `scope` now, at most a second old."""
    known = _read.get((scope.pk, mode))
    if known and time.monotonic() - known[0] < _FRESH_SECONDS:
        return known[1]
    current = Rules(_thresholds(scope, mode), _confusable(scope))
    _read[scope.pk, mode] = (time.monotonic(), current)
    return current


def forget() -> None:
    """Read everything anew when it is next asked for."""
    _read.clear()


def _thresholds(scope: Scope, mode: Mode) -> dict[str, Thresholds]:
    """The newest of each class; the scope's own before the general ones."""
    rows = Policy.objects.filter(mode=mode).filter(scope_id__in=[scope.pk]) | Policy.objects.filter(
        mode=mode, scope=None
    )
    ordered: Iterable[Policy] = sorted(rows, key=lambda row: (row.scope_id is not None, row.version))
    return {
        row.content_class: Thresholds(row.high, row.low, row.near, row.consent, row.pk, row.version)
        for row in ordered
    }


def forbid(scope: Scope | None, first: str, second: str) -> ConfusablePair | None:
    """Never take one name for the other, in `scope` or (without one) in all. Returns the new pair; None where
    it is known already, whichever name comes first."""
    known = ConfusablePair.objects.filter(scope=scope)
    if known.filter(first=first, second=second).exists() or known.filter(first=second, second=first).exists():
        return None
    pair, new = ConfusablePair.objects.get_or_create(scope=scope, first=first, second=second)
    forget()
    return pair if new else None


@cache
def _pairs_sql() -> str:
    return """
        SELECT first, second FROM inference_confusablepair WHERE scope_id = %s OR scope_id IS NULL ORDER BY id
    """


def _confusable(scope: Scope) -> tuple[tuple[str, str], ...]:
    with connection.cursor() as cursor:
        cursor.execute(_pairs_sql(), [scope.pk])
        rows: list[Any] = cursor.fetchall()
    return tuple((first, second) for first, second in rows)
