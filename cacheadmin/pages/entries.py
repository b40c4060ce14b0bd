"""Entries: the list, one of them, and searches that were given a name."""

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from cacheadmin import reading, search
from cacheadmin.access import Request, permitted
from cacheadmin.models import SavedSearch
from inference.models import Entry

from .page import draw

MOST_SEARCHES = 30


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
    query = _kept(request.GET)
    return draw(
        request,
        "entries",
        filters=filters,
        page=found,
        columns=columns,
        after=after,
        query=query,
        searches=SavedSearch.objects.filter(user=request.user).order_by("name"),
    )


def _kept(sent: QueryDict) -> str:
    """What a search is, without where on which page one is."""
    query = sent.copy()
    query.pop("after", None)
    for name in list(query):
        if not any(query.getlist(name)):
            del query[name]
    return query.urlencode()[:2_000]


def _as_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


@require_POST
@permitted("view")
def save_search(request: Request) -> HttpResponse:
    """Under this name, for whoever is signed in; in the place of what had it before."""
    name = request.POST.get("name", "").strip().replace("\x00", "")[:60]
    query = _kept(QueryDict(request.POST.get("query", "")[:2_000]))
    mine = SavedSearch.objects.filter(user=request.user)
    if not name:
        messages.error(request, _("A search needs a name to be kept by."))
    elif mine.exclude(name=name).count() >= MOST_SEARCHES:
        messages.error(request, _("You keep as many searches as there is room for: forget one first."))
    else:
        mine.update_or_create(user=request.user, name=name, defaults={"query": query})
        messages.success(request, _("Kept as “%(name)s”.") % {"name": name})
    return redirect(f"{reverse('console_entries')}?{query}")


@require_POST
@permitted("view")
def forget_search(request: Request, pk: int) -> HttpResponse:
    SavedSearch.objects.filter(user=request.user, pk=pk).delete()
    return redirect("console_entries")


@require_GET
@permitted("view")
def entry(request: Request, pk: UUID) -> HttpResponse:
    try:
        return draw(request, "entry", story=reading.story(pk))
    except Entry.DoesNotExist as error:
        raise Http404 from error
