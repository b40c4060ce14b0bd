"""A policy that is tried on live lookups without any effect, and what it would have done.

It weighs the candidates that the live lookup has found, after the answer was decided on: no second search,
and the verifier is asked only where the live policy had no need to. Whatever fails here is counted and
changes nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import structlog
from django.db.models import QuerySet

from inference import metrics
from inference.calibration.bounds import interval
from inference.models import Decision, Mode, Outcome, Policy, Scope

from . import hindsight
from .hindsight import Lookup
from .measured import Measured
from .policy import shadow_rules, standing

if TYPE_CHECKING:
    from .decision import Decided

log = structlog.get_logger(__name__)

_SERVED = (Outcome.HIT, Outcome.GRAY)
# A report looks at so many of the newest lookups at most.
REPORTED = 20_000
# One that somebody waits for at fewer.
SHOWN = 1_000


@dataclass(frozen=True)
class Tried:
    """What goes into the decision's row: the shadow policy, and what it would have done. All empty where none
    was tried. `measured` is what is known now, the verifier's word with it."""

    policy: int | None = None
    did: dict[str, Any] | None = None
    measured: Measured | None = None


def try_on(scope: Scope | None, decided: "Decided") -> Tried:
    """What the shadow policy of this scope, if there is one, would have made of the lookup."""
    try:
        return _try_on(scope, decided)
    except Exception as error:
        log.warning("shadow_failed", error=str(error).strip())
        metrics.STAGE_ERRORS.labels(stage="shadow").inc()
        return Tried()


def _try_on(scope: Scope | None, decided: "Decided") -> Tried:
    measured = decided.measured
    current = shadow_rules(scope) if scope and measured and decided.under else None
    if current is None or measured is None or decided.under is None:
        return Tried()
    limits = current.of(measured.content_class)
    if not limits.trial:
        return Tried()
    other = decided.under(current)
    did: dict[str, Any] = {"outcome": other.outcome}
    if other.found:
        did |= {"wording": str(other.found.wording), "entry": str(other.found.entry)}
    known = other.measured.verifier if other.measured else None
    return Tried(limits.policy, did, measured if known is None else replace(measured, verifier=known))


# --- the report -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Counted:
    """Lookups of one kind, and what observations say of the answer that was, or would have been, served."""

    n: int = 0
    right: int = 0
    wrong: int = 0

    @property
    def unknown(self) -> int:
        return self.n - self.right - self.wrong

    @property
    def wrong_share(self) -> tuple[float, float, float] | None:
        """Of those that are known: the share, and its 95% interval; None without any."""
        known = self.right + self.wrong
        return (self.wrong / known, *interval(self.wrong, known)) if known else None

    def to_json(self) -> dict[str, Any]:
        share = self.wrong_share
        return {
            "n": self.n,
            "right": self.right,
            "wrong": self.wrong,
            "unknown": self.unknown,
            "wrong_share": None if share is None else [round(part, 4) for part in share],
        }


@dataclass(frozen=True)
class Report:
    """What the shadow policy would have done on the lookups that thresholds decided: `live` and `shadow` are
    all hits of either, `added` and `lost` those of one only, `changed` where both serve another answer."""

    policy: Policy
    lookups: int
    live: Counted
    shadow: Counted
    added: Counted
    lost: Counted
    changed: Counted
    examples: list[Decision] = field(default_factory=list)
    """The newest of those that differ."""

    @property
    def groups(self) -> dict[str, Counted]:
        return {name: getattr(self, name) for name in _GROUPS}

    @property
    def hit_shares(self) -> dict[str, tuple[float, float, float] | None]:
        """Of each, the share of lookups that hit, with its 95% interval."""
        n = self.lookups
        both = {"live": self.live.n, "shadow": self.shadow.n}
        return {name: (hits / n, *interval(hits, n)) if n else None for name, hits in both.items()}

    def to_json(self) -> dict[str, Any]:
        shares = {
            name: share and [round(part, 4) for part in share] for name, share in self.hit_shares.items()
        }
        return {
            "policy": self.policy.pk,
            "version": self.policy.version,
            "scope": self.policy.scope.hash if self.policy.scope else None,
            "class": self.policy.content_class,
            "lookups": self.lookups,
            "hit_share": shares,
            **{name: counted.to_json() for name, counted in self.groups.items()},
        }


_EXAMPLES = 20
_LARGE = ("generation__question", "generation__output_token_ids", "generation__text")
_GROUPS = ("live", "shadow", "added", "lost", "changed")


def report(policy: Policy, most: int = REPORTED) -> Report:
    """Of the newest `most` lookups on which this policy was tried."""
    rows = hindsight.lookups(_tried(policy)[:most])
    known = hindsight.of(rows)
    groups: dict[str, list[bool | None]] = {name: [] for name in _GROUPS}
    examples: list[int] = []
    for row in rows:
        live, tried = _served_live(row), _served_by_shadow(row)
        said = known.get(row.pk)
        if live:
            groups["live"].append(said.right(live) if said else None)
        if tried:
            groups["shadow"].append(said.right(tried) if said else None)
        if live != tried:
            kind = "changed" if live and tried else "added" if tried else "lost"
            groups[kind].append(said.right(tried or live) if said else None)
            examples.append(row.pk)
    differ = Decision.objects.filter(pk__in=examples[:_EXAMPLES]).select_related("generation")
    return Report(
        policy=policy,
        lookups=len(rows),
        **{name: _counted(group) for name, group in groups.items()},
        examples=list(differ.defer(*_LARGE).order_by("-id")),
    )


def on_trial() -> list[Policy]:
    """The shadow policies that are tried now."""
    shadows = Policy.objects.filter(mode=Mode.SHADOW).select_related("scope").order_by("-id")
    kinds = {(row.scope_id, row.content_class): row for row in reversed(shadows)}
    return [row for row in kinds.values() if standing(row.scope, row.content_class).shadow == row]


def tried_on(policy: Policy, most: int = REPORTED) -> int:
    """On how many lookups it was tried, counted to `most`."""
    return _tried(policy).order_by().values("pk")[:most].count()


def _tried(policy: Policy) -> QuerySet[Decision]:
    return Decision.objects.filter(shadow=policy).order_by("-id")


def _served_live(row: Lookup) -> str:
    return str(row.entry or "") if row.outcome in _SERVED else ""


def _served_by_shadow(row: Lookup) -> str:
    did: Mapping[str, Any] = row.shadowed or {}
    return str(did.get("entry", "")) if did.get("outcome") in _SERVED else ""


def _counted(said: Iterable[bool | None]) -> Counted:
    known = list(said)
    return Counted(len(known), known.count(True), known.count(False))
