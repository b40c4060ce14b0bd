"""What changed how questions are answered: versions, policies, sources, flushes. A drop in the figures has
its cause beside it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext as _

from inference.models import Mode, Policy, Scope, Version

from . import labels
from .models import Action, AuditRecord

SHOWN = 40
_MARKED = (Action.FLUSH, Action.BUMP, Action.INVALIDATE)


@dataclass(frozen=True)
class Mark:
    """One change: when, what, by whom ("" where nobody says), and the action it is on record as, if it is."""

    at: datetime
    what: str
    who: str = ""
    batch: UUID | None = None


def since(at: datetime, scope: Scope | None = None) -> list[Mark]:
    """What changed since then for `scope` (or any), oldest first; the newest SHOWN of them."""
    found = sorted([*_actions(at), *_policies(at, scope), *_deploys(at)], key=lambda mark: mark.at)
    return found[-SHOWN:]


def _actions(at: datetime) -> Iterator[Mark]:
    records = AuditRecord.objects.filter(created_at__gte=at, action__in=_MARKED)
    for record in records.order_by("-id")[:SHOWN]:
        yield Mark(record.created_at, _said(record), record.actor, record.batch)


def _said(record: AuditRecord) -> str:
    called = labels.label("action", record.action)
    if record.action == Action.BUMP:
        return f"{called}: {record.before.get('knowledge', '')} → {record.after.get('knowledge', '')}"
    if record.action == Action.INVALIDATE:
        return f"{called}: {record.selection.get('source', '')}"
    return called


def _policies(at: datetime, scope: Scope | None) -> Iterator[Mark]:
    live = Policy.objects.filter(created_at__gte=at, mode=Mode.LIVE).order_by("-pk")
    if scope:
        live = live.filter(scope=scope) | live.filter(scope=None)
    for policy in live[:SHOWN]:
        which = labels.label("class", policy.content_class) if policy.content_class else _("all classes")
        what = _("thresholds of %(which)s: %(low).3f and %(high).3f") % {
            "which": which,
            "low": policy.low,
            "high": policy.high,
        }
        yield Mark(policy.created_at, what)


def _deploys(at: datetime) -> Iterator[Mark]:
    """Scopes that appeared, but not because a version was bumped."""
    bumped = set(Version.objects.filter(app=settings.APP_NAME).values_list("knowledge", flat=True))
    new = Scope.objects.filter(app=settings.APP_NAME, created_at__gte=at).order_by("-pk")
    for scope in new[:SHOWN]:
        if scope.knowledge_version not in bumped:
            yield Mark(scope.created_at, _("another scope: %(scope)s") % {"scope": scope})
