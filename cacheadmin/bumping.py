"""A version bump as somebody's action, written down with what it did."""

from dataclasses import asdict

from django.contrib.auth.models import AbstractBaseUser

from inference import versions
from inference.versions import Active, Bump

from . import audit
from .models import Action, AuditRecord


def bump(
    knowledge: str,
    system_prompt: str | None,
    actor: AbstractBaseUser | str,
    reason: str = "",
    *,
    back: bool = False,
    seen: Active | None = None,
) -> Bump:
    """See `inference.versions.bump`. Raises WrongVersion, Moved."""
    made = versions.bump(knowledge, system_prompt, back=back, seen=seen)
    AuditRecord.objects.create(
        **audit.of(actor),
        action=Action.BUMP,
        reason=reason,
        before=asdict(made.before),
        after=asdict(made.after),
        entries=made.entries,
    )
    return made
