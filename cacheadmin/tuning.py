"""Changing thresholds, on record: what an operator saves, and what fits come to.

Nothing that serves more than before is put in force unless somebody has said so: a person who confirmed it,
or the setting CALIBRATION_MAY_LOWER.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction

from inference.cache import policy
from inference.cache.policy import Thresholds
from inference.calibration import pairs, refitting
from inference.calibration.fitting import Goal
from inference.calibration.refitting import Proposal
from inference.evaluation.cache import Progress
from inference.models import Mode, Policy, Scope

from . import audit
from .models import Action

# In one fit by itself so many pairs are shown to the verifier (10 ms each), besides those it knows.
ASKED_AT_ONCE = 500
ITSELF = "calibration"

Actor = AbstractBaseUser | str
Did = Literal["put in force", "proposed", "on trial", "kept", "too little is known"]


class Unconfirmed(Exception):
    """It would serve more than before, and nobody has said that it may."""


@transaction.atomic
def save(
    actor: Actor,
    scope: Scope | None,
    content_class: str,
    limits: Thresholds,
    mode: Mode,
    *,
    seen: int,
    confirmed: bool = False,
    reason: str = "",
    fit: dict[str, Any] | None = None,
) -> Policy:
    """The next version, and its record. `seen` is the newest version that the actor knows.

    Raises policy.Changed where there is a newer one, Unconfirmed, and ValueError for thresholds out of order.
    """
    before = policy.standing(scope, content_class)
    if seen != before.newest:
        raise policy.Changed
    if mode == Mode.LIVE and limits.lowers(before.live) and not confirmed:
        raise Unconfirmed
    name = actor if isinstance(actor, str) else actor.get_username()
    row = policy.write(scope, content_class, limits, mode, seen=seen, author=name, note=reason, fit=fit)
    change = audit.Change(audit.POLICY, row.pk, _shown(before.live), _shown(Thresholds.of(row), row))
    audit.record(actor, Action.TUNE, [change], reason)
    return row


def _shown(limits: Thresholds, row: Policy | None = None) -> dict[str, Any]:
    """As the record holds it."""
    values: dict[str, Any] = {
        "high": limits.high,
        "low": limits.low,
        "near": limits.near,
        "consent": limits.consent,
        "likely": limits.likely,
        "version": limits.version,
    }
    if row is not None:
        values |= {"mode": row.mode, "scope": row.scope and row.scope.hash[:8], "class": row.content_class}
    return values


# --- fits -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Applied:
    """What became of one proposal; `rows` are the versions that it made."""

    proposal: Proposal
    did: Did
    rows: tuple[Policy, ...] = ()


def goal() -> Goal:
    """As the settings have it. Raises ValueError."""
    return Goal(settings.CALIBRATION_TARGET, settings.CALIBRATION_CONFIDENCE)


def apply(
    proposal: Proposal, actor: str, may_lower: Callable[[Proposal], bool], last: dict[str, Any] | None = None
) -> Applied:
    """Put in force what serves less, at once; what serves more if `may_lower`, else propose it. Nothing where
    the fit says nothing, or nothing new after the fit `last`."""
    if not proposal.certified:
        return Applied(proposal, "too little is known")
    if not refitting.says_something_new(proposal, last):
        return Applied(proposal, "kept")
    common: dict[str, Any] = {"fit": proposal.to_json(), "reason": _reason(proposal)}
    where = (actor, proposal.scope, proposal.content_class)
    seen = proposal.before.newest
    if not proposal.lowers:
        row = save(*where, proposal.fitted, Mode.LIVE, seen=seen, **common)
        return Applied(proposal, "put in force" if proposal.changes else "kept", (row,))
    if may_lower(proposal):
        row = save(*where, proposal.fitted, Mode.LIVE, seen=seen, confirmed=True, **common)
        return Applied(proposal, "put in force", (row,))
    rows = []
    if not proposal.safe.same_as(proposal.before.live):
        rows.append(save(*where, proposal.safe, Mode.LIVE, seen=seen, **common))
    newest = rows[-1].version if rows else seen
    rows.append(save(*where, proposal.fitted, Mode.PROPOSED, seen=newest, **common))
    return Applied(proposal, "proposed", tuple(rows))


def _reason(proposal: Proposal) -> str:
    share = f"at most {proposal.fit.goal.target:.1%} wrong hits, {proposal.fit.goal.confidence:.0%} sure"
    return f"fitted to {proposal.fit.pairs} pairs from {proposal.data['source']}: {share}"


def last_fitted(scope: Scope | None, content_class: str) -> Policy | None:
    """The newest version that was fitted, in whatever mode."""
    rows = Policy.objects.filter(scope=scope, content_class=content_class, fit__isnull=False)
    return rows.order_by("-version").first()


def last_fit(scope: Scope | None, content_class: str) -> dict[str, Any] | None:
    row = last_fitted(scope, content_class)
    return row.fit if row else None


def waiting(scope: Scope | None, content_class: str, limits: Thresholds) -> Policy | None:
    """The version with these thresholds that waits for somebody's word, or is on trial: who puts them in
    force takes that one up, with the fit that it came from."""
    found = policy.standing(scope, content_class)
    rows = [row for row in (found.proposed, found.shadow) if row and Thresholds.of(row).same_as(limits)]
    return rows[0] if rows else None


def as_proposed(row: Policy) -> str:
    """The reason for the record where nobody gives another."""
    return f"as proposed in version {row.version}"


def observed(most: int | None = None, progress: Progress = lambda *_: None) -> list[pairs.Labelled]:
    """The labelled lookups of the cache's own observations, the verifier asked of up to `most` more."""
    known = pairs.observed()
    return pairs.convinced(known, len(known) if most is None else most, progress)


def recalibrate() -> Sequence[Applied]:
    """Fit thresholds to what was observed, as beat does; returns what became of every group."""
    labelled = observed(ASKED_AT_ONCE)
    found = []
    for proposal in refitting.proposals(labelled, "observations", goal()):
        last = last_fit(proposal.scope, proposal.content_class)
        try:
            found.append(apply(proposal, ITSELF, lambda _one: settings.CALIBRATION_MAY_LOWER, last))
        except policy.Changed:
            continue  # an operator was at it meanwhile; there is a next time
    return found
