"""The audit trail: who did what to which rows, before, after, and why."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import AbstractBaseUser

from .models import AuditRecord

WORDING, ENTRY, PAIR, POLICY = "wording", "entry", "confusable pair", "policy"


@dataclass(frozen=True)
class Change:
    """What an action did to one row: the values that changed, as JSON holds them."""

    subject: str
    subject_id: object
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)


def of(actor: AbstractBaseUser | str) -> dict[str, Any]:
    """The columns that say who acted: a user, or what a command or another system is called."""
    if isinstance(actor, str):
        return {"user_id": None, "actor": actor[:200]}
    return {"user_id": actor.pk, "actor": actor.get_username()[:200]}


def record(
    actor: AbstractBaseUser | str,
    action: str,
    changes: Iterable[Change],
    reason: str = "",
    undoes: uuid.UUID | None = None,
) -> uuid.UUID:
    """Write one action down, in the transaction that it happens in. `actor` is a user, or what a command is
    called. Returns the batch by which it can be found and undone. Raises IntegrityError if what it undoes
    was undone before."""
    batch = uuid.uuid4()
    who = of(actor)
    AuditRecord.objects.bulk_create(
        AuditRecord(
            batch=batch,
            **who,
            action=action,
            subject=change.subject,
            subject_id=str(change.subject_id),
            before=dict(change.before),
            after=dict(change.after),
            reason=reason,
            undoes=undoes,
        )
        for change in changes
    )
    return batch
