"""Pages of the chat, whole or in part: parse, ask `chat.services`, present.

A view answers an htmx request with the part that changes and any other with a page, so that reading,
renaming, deleting, voting and switching branches work without a script. Sending needs the websocket.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect, render
from django.urls import Resolver404, resolve, reverse
from django.utils.cache import patch_cache_control
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from . import exports, presentation, services
from .models import Conversation, Message, Owner, Role
from .owners import owner_of
from .presentation import Article, articles, found_in_words, listed, title_of
from .protocol import Refused
from .strings import STRINGS

PAGE_SIZE = 40
# A transcript opens with this many messages; the rest is one click away. A thousand at once take a
# browser seconds to lay out, and who returns to a conversation reads its end.
SHOWN_AT_FIRST = 100
VERDICTS = ("agree", "disagree", "none")


class Request(HttpRequest):
    """A request as the middleware leaves it."""

    htmx: HtmxDetails


View = Callable[..., HttpResponse]


def for_owner(view: View) -> View:
    """Calls `view(request, owner, …)`; whoever may not chat is sent to the login page, and what isn't
    theirs or isn't there is a 404."""

    @wraps(view)
    def wrapped(request: Request, **kwargs: Any) -> HttpResponse:
        owner = owner_of(request, create=True)
        if owner is None:
            return _to_login(request)
        try:
            response = view(request, owner, **kwargs)
        except Refused as refused:
            if refused.code == "not_found":
                raise Http404(refused.message) from refused
            return HttpResponseBadRequest(refused.message, content_type="text/plain; charset=utf-8")
        patch_cache_control(response, private=True, no_cache=True)
        return response

    return wrapped


def _to_login(request: Request) -> HttpResponse:
    if request.htmx:
        return HttpResponseClientRedirect(reverse("account_login"))
    return redirect_to_login(request.get_full_path() if request.method == "GET" else "/")


# --- pages --------------------------------------------------------------------------------------


@require_GET
@for_owner
def new(request: Request, owner: Owner) -> HttpResponse:
    return _page(request, owner)


@require_GET
@for_owner
def conversation(request: Request, owner: Owner, conversation_id: UUID) -> HttpResponse:
    shown = services.get_conversation(owner, conversation_id)
    if request.htmx:
        return _transcript(request, shown)
    return _page(request, owner, **_transcript_context(request, shown))


def _page(request: Request, owner: Owner, **context: Any) -> HttpResponse:
    shown: Conversation | None = context.get("conversation")
    page: dict[str, Any] = {
        "strings": STRINGS,
        "max_chars": settings.MAX_TEXT_CHARS,
        # Names what the browser keeps for this person (drafts, unsent text); says nothing about them.
        "owner_tag": salted_hmac("chat.owner_tag", owner.key, algorithm="sha256").hexdigest()[:16],
        "is_guest": owner.user_id is None,
        "title": title_of(shown) if shown else "",
    }
    return render(request, "chat/page.html", page | _list_context(request, owner, shown) | context)


def _transcript(request: Request, shown: Conversation) -> HttpResponse:
    return render(request, "chat/page.html#transcript", _transcript_context(request, shown))


def _transcript_context(request: Request, shown: Conversation) -> dict[str, Any]:
    rows = services.transcript(shown)
    hidden = 0 if request.GET.get("all") else max(0, len(rows) - SHOWN_AT_FIRST)
    return {"conversation": shown, "articles": articles(rows[hidden:]), "hidden": hidden}


# --- the list -----------------------------------------------------------------------------------


@require_GET
@for_owner
def conversations(request: Request, owner: Owner) -> HttpResponse:
    context = _list_context(request, owner, _current(request, owner))
    if not request.htmx:
        return _page(request, owner, **context, listing=True)
    part = "more" if context["page"].number > 1 else "list"
    return render(request, f"chat/conversations.html#{part}", context)


def _list_context(request: Request, owner: Owner, current: Conversation | None) -> dict[str, Any]:
    search = request.GET.get("q", "").strip()[:200]
    paginator = Paginator(services.conversations(owner, search), PAGE_SIZE)
    page = paginator.get_page(request.GET.get("page"))
    first = page.start_index() - 1
    above = paginator.object_list[first - 1] if first > 0 else None
    return {
        "q": search,
        "page": page,
        "lines": listed(page.object_list, above),
        "current_id": current.id if current else None,
        "current_leaf": current.leaf_id if current else None,
        "found": found_in_words(paginator.count) if search else "",
    }


def _current(request: Request, owner: Owner) -> Conversation | None:
    """The conversation that the page behind an htmx request shows."""
    try:
        match = resolve(urlsplit(request.htmx.current_url or "").path)
        return services.get_conversation(owner, match.kwargs["conversation_id"])
    except (Resolver404, KeyError, Refused):
        return None


@require_http_methods(["GET", "POST"])
@for_owner
def rename(request: Request, owner: Owner, conversation_id: UUID) -> HttpResponse:
    renamed = services.get_conversation(owner, conversation_id)
    context: dict[str, Any] = {"conversation": renamed, "title": title_of(renamed)}
    if request.method == "POST":
        title = request.POST.get("title", "").strip()
        context |= {"title": title, "error": _title_error(title)}
        if not context["error"]:
            services.rename(owner, conversation_id, title)
            return _renamed(request, owner, conversation_id)
    name = "chat/rename.html#form" if request.htmx else "chat/rename.html"
    return render(request, name, context)


def _title_error(title: str) -> str:
    longest = Conversation._meta.get_field("title").max_length or 0
    if not title:
        return _("A title needs at least one character.")
    return _("A title has at most %(count)d characters.") % {"count": longest} if len(title) > longest else ""


def _renamed(request: Request, owner: Owner, conversation_id: UUID) -> HttpResponse:
    if not request.htmx:
        return redirect("conversation", conversation_id)
    current = _current(request, owner)
    line = listed([services.get_conversation(owner, conversation_id)])[0]
    context = {"line": line, "current_id": current.id if current else None}
    return render(request, "chat/conversations.html#line", context)


@require_http_methods(["GET", "POST"])
@for_owner
def delete(request: Request, owner: Owner, conversation_id: UUID) -> HttpResponse:
    doomed = services.get_conversation(owner, conversation_id)
    if request.method == "GET":
        name = "chat/delete.html#dialog" if request.htmx else "chat/delete.html"
        return render(request, name, {"conversation": doomed, "title": title_of(doomed)})
    current = _current(request, owner)
    services.delete(owner, conversation_id)
    if not request.htmx:
        return redirect("chat")
    if current is not None and current.id == conversation_id:
        return HttpResponseClientRedirect(reverse("chat"))
    return render(request, "chat/conversations.html#list", _list_context(request, owner, current))


@require_GET
@for_owner
def export(request: Request, owner: Owner, conversation_id: UUID, kind: str) -> HttpResponse:
    exported = services.get_conversation(owner, conversation_id)
    if kind == "md":
        return exports.markdown(exported)
    if kind == "json":
        return exports.json(exported)
    raise Http404(kind)


# --- messages -----------------------------------------------------------------------------------


@require_GET
@for_owner
def message(request: Request, owner: Owner, message_id: UUID) -> HttpResponse:
    """The article alone, for the script to put in place of the streamed text."""
    return render(request, "chat/message.html", {"article": _article(owner, message_id)})


def _article(owner: Owner, message_id: UUID) -> Article:
    found = services.get_message(owner, message_id)
    return articles(services.transcript(found.conversation, found)[-1:])[0]


@require_POST
@for_owner
def branch(request: Request, owner: Owner, message_id: UUID) -> HttpResponse:
    shown = services.show_branch(owner, message_id)
    if request.htmx:
        return _transcript(request, shown)
    return redirect(_place_of(shown.id, message_id))


@require_POST
@for_owner
def feedback(request: Request, owner: Owner, message_id: UUID) -> HttpResponse:
    verdict = request.POST.get("verdict", "")
    judged: Message = services.get_message(owner, message_id)
    if verdict not in VERDICTS or judged.role != Role.ASSISTANT:
        return HttpResponseBadRequest(_("This can't be judged."), content_type="text/plain; charset=utf-8")
    services.record_feedback(owner, message_id, verdict)
    if request.htmx:
        return render(request, "chat/message.html#feedback", {"article": _article(owner, message_id)})
    return redirect(_place_of(judged.conversation_id, message_id))


@require_GET
@for_owner
def corrections(request: Request, owner: Owner, conversation_id: UUID) -> HttpResponse:
    """The lines under the questions that were read as taking something back, for the script to put in
    place."""
    rows = services.transcript(services.get_conversation(owner, conversation_id))
    lines = presentation.corrections(row.message for row in rows[-SHOWN_AT_FIRST:])
    return render(request, "chat/correction.html#all", {"corrections": lines.values()})


@require_POST
@for_owner
def undo_correction(request: Request, owner: Owner, correction_id: int) -> HttpResponse:
    question = services.undo_correction(owner, correction_id)
    if not request.htmx:
        return redirect(_place_of(question.conversation_id, question.pk))
    line = presentation.corrections([question])[question.pk]
    return render(request, "chat/correction.html#line", {"correction": line, "moved": True})


def _place_of(conversation_id: UUID, message_id: UUID) -> str:
    return f"{reverse('conversation', args=[conversation_id])}#m-{message_id}"
