"""From which likeness on an answer is served, by scope and content class.

Policies are rows that are never changed. A process goes on with what it read for a second at most, so that a
new one is at work within a second everywhere.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import Q

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
    None for what is built in; `trial` marks one that only a shadow policy says.
    """

    high: float
    low: float
    near: float
    consent: float
    policy: int | None = None
    version: int = 0
    likely: float = 0.97
    followed: float = 0.9
    trial: bool = False

    @classmethod
    def of(cls, row: Policy) -> "Thresholds":
        limits = (row.high, row.low, row.near, row.consent)
        return cls(*limits, row.pk, row.version, row.likely, trial=row.mode == Mode.SHADOW)

    def lowers(self, other: "Thresholds") -> bool:
        """Would anything be served by these that is not by `other`? (`near` serves nothing.)"""
        serving = zip(self._serving, other._serving, strict=True)
        return any(mine < theirs for mine, theirs in serving)

    def same_as(self, other: "Thresholds") -> bool:
        """Whatever rows they are."""
        return self._serving == other._serving and self.near == other.near

    @property
    def _serving(self) -> tuple[float, ...]:
        return self.high, self.low, self.consent, self.likely


BUILT_IN = Thresholds(high=0.985, low=0.90, near=0.78, consent=0.5)


@dataclass(frozen=True)
class Rules:
    """All that is tuned for one scope: thresholds by content class, and names never to be confused."""

    thresholds: Mapping[str, Thresholds]
    confusable: tuple[tuple[str, str], ...]

    def of(self, content_class: str) -> Thresholds:
        """Those of the class, or else of all classes, or else the built-in ones."""
        return self.thresholds.get(content_class) or self.thresholds.get("") or BUILT_IN


@dataclass(frozen=True)
class _Known:
    at: float
    live: Rules
    shadow: Rules | None


_read: dict[int, _Known] = {}


def rules(scope: Scope) -> Rules:
    """The rules of `scope` now, at most a second old."""
    return _now(scope).live


def shadow_rules(scope: Scope) -> Rules | None:
    """Where a shadow policy is tried in `scope`: the rules as they would be with it. At most a second old."""
    return _now(scope).shadow


def forget() -> None:
    """Read everything anew when it is next asked for."""
    _read.clear()


def _now(scope: Scope) -> _Known:
    known = _read.get(scope.pk)
    if known is None or time.monotonic() - known.at >= _FRESH_SECONDS:
        live, shadow = _thresholds(scope)
        pairs = _confusable(scope)
        tried = Rules(shadow, pairs) if shadow else None
        known = _read[scope.pk] = _Known(time.monotonic(), Rules(live, pairs), tried)
    return known


def _thresholds(scope: Scope) -> tuple[dict[str, Thresholds], dict[str, Thresholds]]:
    """The live ones of each class, and these with the shadow ones in their place (empty without any). The
    scope's own stand before the general ones, so that no general trial shows where a scope has its own."""
    rows = _newest(Q(scope=scope.pk) | Q(scope=None), [Mode.LIVE, Mode.SHADOW])
    live: dict[str, Thresholds] = {}
    tried: dict[str, Thresholds] = {}
    for own in (False, True):
        level = [row for row in rows if (row.scope_id is not None) == own]
        standing = {row.content_class: row for row in level if row.mode == Mode.LIVE}
        trials = [row for row in level if row.mode == Mode.SHADOW and not _followed(row, standing)]
        live |= {name: Thresholds.of(row) for name, row in standing.items()}
        tried |= {name: Thresholds.of(row) for name, row in standing.items()}
        tried |= {row.content_class: Thresholds.of(row) for row in trials}
    return live, tried if any(limits.trial for limits in tried.values()) else {}


def _followed(shadow: Policy, standing: Mapping[str, Policy]) -> bool:
    """Was a live one put in force since?"""
    live = standing.get(shadow.content_class)
    return live is not None and live.version > shadow.version


def _newest(which: Q, modes: list[Mode]) -> list[Policy]:
    """Of each scope, class and mode the last one, without what it was fitted to."""
    kind = ("scope_id", "content_class", "mode")
    rows = Policy.objects.filter(which, mode__in=modes).defer("fit", "note")
    return list(rows.order_by(*kind, "-version").distinct(*kind))


# --- the policies of one scope and class -------------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """What there is of one kind (a scope, or all; a class, or all). `live` is what decides: its own row or
    what it inherits; `shadow` and `proposed` only if no live one came after. `newest` is the last version of
    any mode, 0 without one."""

    live: Thresholds
    own: bool
    shadow: Policy | None
    proposed: Policy | None
    newest: int


def standing(scope: Scope | None, content_class: str) -> Standing:
    """Read now, and not up to a second ago."""
    mine = _newest(Q(scope=scope, content_class=content_class), list(Mode))
    by_mode = {Mode(row.mode): row for row in mine}
    live = by_mode.get(Mode.LIVE)
    since = live.version if live else 0
    later = {mode: row for mode, row in by_mode.items() if row.version > since}
    return Standing(
        live=Thresholds.of(live) if live else _inherited(scope, content_class),
        own=live is not None,
        shadow=later.get(Mode.SHADOW),
        proposed=later.get(Mode.PROPOSED),
        newest=max((row.version for row in mine), default=0),
    )


def _inherited(scope: Scope | None, content_class: str) -> Thresholds:
    """As `Rules.of` finds them: by class before by scope."""
    whose = Q(scope=None) if scope is None else Q(scope=scope) | Q(scope=None)
    rows = _newest(whose & Q(content_class__in=["", content_class]), [Mode.LIVE])
    rows.sort(key=lambda row: (row.content_class == "", row.scope_id is None))
    return Thresholds.of(rows[0]) if rows else BUILT_IN


class Changed(Exception):
    """Another version of the policy came first."""


def write(
    scope: Scope | None,
    content_class: str,
    limits: Thresholds,
    mode: Mode,
    *,
    seen: int,
    author: str = "",
    note: str = "",
    fit: Mapping[str, Any] | None = None,
) -> Policy:
    """The next version. `seen` is the newest one that whoever writes it knows: raises Changed where that is
    not the newest any more, and ValueError for thresholds that are not in order."""
    shares = (limits.consent, limits.likely)
    if not 0 <= limits.near <= limits.low <= limits.high <= 1 or not all(0 <= one <= 1 for one in shares):
        raise ValueError("0 ≤ near ≤ low ≤ high ≤ 1, consent and likely from 0 to 1")
    kind = Policy.objects.filter(scope=scope, content_class=content_class)
    try:
        with transaction.atomic():
            if kind.filter(version__gt=seen).exists():
                raise Changed
            row = Policy.objects.create(
                scope=scope,
                content_class=content_class,
                version=seen + 1,
                mode=mode,
                high=limits.high,
                low=limits.low,
                near=limits.near,
                consent=limits.consent,
                likely=limits.likely,
                author=author[:200],
                note=note,
                fit=None if fit is None else dict(fit),
            )
    except IntegrityError as error:
        raise Changed from error
    forget()
    transaction.on_commit(forget)  # what was read in between was the old one
    return row


# --- names never to be confused ---------------------------------------------------------------------


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
