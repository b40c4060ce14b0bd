"""Audit: all actions, and one of them."""

from uuid import UUID

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET

from cacheadmin import flushing, labels, review
from cacheadmin.access import Request, permitted
from cacheadmin.models import AuditRecord

from .page import draw

PAGE = 50


@require_GET
@permitted("view")
def audit(request: Request) -> HttpResponse:
    records = AuditRecord.objects.order_by("-id")
    wanted = {name: request.GET.get(name, "").strip() for name in ("action", "actor", "about")}
    if wanted["action"] in labels.ACTIONS:
        records = records.filter(action=wanted["action"])
    if wanted["actor"]:
        records = records.filter(actor=wanted["actor"][:200])
    if wanted["about"]:
        records = records.filter(subject_id=wanted["about"][:64], subject__in=labels.SUBJECTS)
    before = request.GET.get("before", "")
    if before.isdecimal() and len(before) < 18:
        records = records.filter(pk__lt=int(before))
    found = list(records[: PAGE + 1])
    more = found[PAGE - 1].pk if len(found) > PAGE else None
    return draw(request, "audit", records=found[:PAGE], more=more, wanted=wanted, actions=labels.ACTIONS)


@require_GET
@permitted("view")
def action(request: Request, batch: UUID) -> HttpResponse:
    return show(request, batch)


def show(request: Request, batch: UUID, status: int = 200, problem: str = "") -> HttpResponse:
    records = list(AuditRecord.objects.filter(batch=batch).order_by("id"))
    if not records:
        raise Http404
    undone = AuditRecord.objects.filter(undoes=batch).first()
    undoable = undone is None and review.undoable(records[0])
    return draw(
        request,
        "action",
        status,
        records=records,
        undone=undone,
        undoable=undoable,
        silent=flushing.silent(records[0]),
        problem=problem,
    )
