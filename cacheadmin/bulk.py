"""Many pairings decided at once, after a look at them: all of them, or none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from inference.cache import lifecycle
from inference.models import ALIVE, State, Wording

from . import audit, review
from .models import ReviewClaim
from .review import Judgement, Refused

# What can be decided without a word on each.
ACTIONS = (review.APPROVE, review.REJECT, review.SKIP)
MOST = 100


class Changed(Exception):
    """Some of them are no longer as they were shown; nothing was done. `pks` says which."""

    def __init__(self, pks: set[UUID]) -> None:
        super().__init__(f"{len(pks)} have changed")
        self.pks = pks


@dataclass(frozen=True)
class Chosen:
    """One of them as it is now: the stamp of what is seen, and who else has it open ("" where nobody)."""

    wording: Wording
    stamp: str
    with_whom: str

    @property
    def decidable(self) -> bool:
        """Does it wait for a decision, and is nobody else about to make it?"""
        alive = self.wording.entry.state in ALIVE
        return self.wording.state == State.SUSPECT and alive and not self.with_whom


def look(pks: Sequence[UUID], operator: User) -> list[Chosen]:
    """Those that are there, in the order in which they were chosen."""
    rows = Wording.objects.select_related("entry", "claim__operator").defer(*review.VECTORS)
    found = {row.pk: row for row in rows.filter(pk__in=pks)}
    return [
        Chosen(found[pk], lifecycle.stamp(found[pk]), _other(found[pk], operator))
        for pk in dict.fromkeys(pks)
        if pk in found
    ]


def _other(wording: Wording, operator: User) -> str:
    claim: ReviewClaim | None = getattr(wording, "claim", None)
    if claim is None or not claim.holds or claim.operator_id == operator.pk:
        return ""
    return str(claim.operator.get_username())


def decide(operator: User, action: str, seen: Mapping[UUID, str], reason: str = "") -> UUID:
    """Do this to all of them, each as its stamp says it was seen; returns the batch of the action. Raises
    Changed, Refused: nothing is done then."""
    if action not in ACTIONS:
        raise Refused("unknown_action")
    if not seen:
        raise Refused("nothing_chosen")
    with transaction.atomic():
        # In one order, so that two who choose the same do not wait for each other for ever.
        rows = Wording.objects.select_related("entry").defer(*review.VECTORS)
        locked = rows.select_for_update(of=("self", "entry")).filter(pk__in=seen).order_by("pk")
        there = {wording.pk for wording in locked}
        chosen = look(sorted(there), operator)
        changed = {one.wording.pk for one in chosen if one.stamp != seen[one.wording.pk] or not one.decidable}
        if changed or len(there) < len(seen):
            raise Changed(changed)
        changes = [change for one in chosen for change in _act(one, action)]
        ReviewClaim.objects.filter(wording__in=there).delete()
        return audit.record(operator, action, changes, reason)


def _act(chosen: Chosen, action: str) -> list[audit.Change]:
    try:
        # Nobody else can change it any more; another of them, of the same entry, may just have done so.
        now = Wording.objects.select_related("entry").defer(*review.VECTORS).get(pk=chosen.wording.pk)
        return review.act(now, Judgement(action, lifecycle.stamp(now)))
    except (lifecycle.Stale, lifecycle.Occupied) as error:
        raise Changed({chosen.wording.pk}) from error
