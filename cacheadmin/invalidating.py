"""A changed source as somebody's action, written down with what it did."""

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from inference import sources
from inference.sources import Invalidated

from . import audit
from .models import Action, AuditRecord


@transaction.atomic
def invalidate(key: str, version: str, actor: AbstractBaseUser | str, reason: str = "") -> Invalidated:
    """See `inference.sources.invalidate`. `actor` is a user, or what a command or another system is called.
    Raises UnknownSource, ValueError."""
    done = sources.invalidate(key, version)
    AuditRecord.objects.create(
        **audit.of(actor),
        action=Action.INVALIDATE,
        reason=reason,
        selection={"source": key, "version": version},
        entries=done.entries,
    )
    return done
