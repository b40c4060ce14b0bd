"""Sessions: conversations as the cache and the engines see them."""

from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from cacheadmin import health, inventory
from cacheadmin.access import Request, permitted
from inference.models import Session

from .page import draw

PAGE = 50


@require_GET
@permitted("view")
def sessions(request: Request) -> HttpResponse:
    problem = ""
    if text := request.GET.get("q", "").strip():
        try:
            if Session.objects.filter(pk=UUID(text)).exists():
                return redirect("console_session", UUID(text))
            problem = _("There is no conversation of this id.")
        except ValueError:
            problem = _("This is no id of a conversation.")
    wanted, after = request.GET.get("is", ""), request.GET.get("after", "")[:100]
    found = inventory.sessions(after, wanted, PAGE + 1)
    held = inventory.held_bytes(health.engines())
    return draw(
        request,
        "sessions",
        rows=[(one, held.get(str(one.pk))) for one in found[:PAGE]],
        more=inventory.cursor_of(found[PAGE - 1]) if len(found) > PAGE else "",
        after=after,
        wanted=wanted,
        q=text,
        problem=problem,
    )


@require_GET
@permitted("view")
def session(request: Request, pk: UUID) -> HttpResponse:
    told = health.engines()
    try:
        found = inventory.conversation(pk, told)
    except Session.DoesNotExist as error:
        raise Http404 from error
    return draw(request, "session", conversation=found, held_here=inventory.held_here(told))
