"""Sources: what answers were made from, and saying that one has changed."""

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from cacheadmin import inventory
from cacheadmin.access import Request, permitted
from cacheadmin.invalidating import invalidate
from inference import sources as of_answers
from inference.models import DataSource

from .page import draw

PAGE = 50


@require_GET
@permitted("view")
def sources(request: Request) -> HttpResponse:
    after, text = request.GET.get("after", "")[:200], request.GET.get("q", "").strip()[:200]
    found = inventory.sources(after.replace("\x00", ""), text.replace("\x00", ""), PAGE + 1)
    more = found[PAGE - 1].source.key if len(found) > PAGE else ""
    return draw(request, "sources", rows=found[:PAGE], more=more, after=after, q=text)


@require_GET
@permitted("view")
def source(request: Request, pk: int) -> HttpResponse:
    return _source(request, pk)


def _source(request: Request, pk: int, status: int = 200, problem: str = "") -> HttpResponse:
    """With what saying that it has changed would do."""
    try:
        row = inventory.source(pk)
    except DataSource.DoesNotExist as error:
        raise Http404 from error
    sent = request.POST or request.GET
    version = sent.get("version", "").strip().replace("\x00", "")[:200]
    return draw(
        request,
        "source",
        status,
        row=row,
        version=version,
        preview="version" in sent,
        meant=inventory.servable(row.source.key, version),
        problem=problem,
    )


@require_POST
@permitted("flush")
def changed(request: Request, pk: int) -> HttpResponse:
    try:
        row = inventory.source(pk)
    except DataSource.DoesNotExist as error:
        raise Http404 from error
    sent = request.POST
    if sent.get("seen") != str(row.source.changes):
        problem = _("It has changed since you looked, so nothing was done. Here it is as it is now.")
        return _source(request, pk, 409, problem)
    version, reason = sent.get("version", "").strip(), sent.get("reason", "").strip()[:2_000]
    try:
        of_answers.check_version(version)
    except ValueError:
        return _source(request, pk, 400, _("A version has at most 200 characters in one line."))
    done = invalidate(row.source.key, version, request.user, reason)
    messages.success(request, _("%(count)d entries are served no more.") % {"count": done.entries})
    return redirect("console_source", pk)
