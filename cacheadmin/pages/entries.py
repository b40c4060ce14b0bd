"""Entries: the list and one of them."""

from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET

from cacheadmin import reading, search
from cacheadmin.access import Request, permitted
from inference.models import Entry

from .page import draw


@require_GET
@permitted("view")
def entries(request: Request) -> HttpResponse:
    filters = search.Filters(request.GET)
    text = request.GET.get("q", "").strip()
    if not request.htmx and (pk := _as_id(text)) and Entry.objects.filter(pk=pk).exists():
        return redirect("console_entry", pk)
    after = request.GET.get("after", "")[:100]
    found = search.find(filters, after) if filters.is_valid() else search.Page()
    # A form that can't be read still shows its columns.
    columns = {name: search.COLUMNS[name] for name in filters.columns}
    return draw(request, "entries", filters=filters, page=found, columns=columns, after=after)


def _as_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


@require_GET
@permitted("view")
def entry(request: Request, pk: UUID) -> HttpResponse:
    try:
        return draw(request, "entry", story=reading.story(pk))
    except Entry.DoesNotExist as error:
        raise Http404 from error
