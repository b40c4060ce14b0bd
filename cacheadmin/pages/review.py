"""Review: the queue, one pairing, and what is decided on it."""

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from cacheadmin import bulk as many
from cacheadmin import labels, reading, review
from cacheadmin.access import Request, may, permitted
from cacheadmin.review import Judgement, Refused, Taken
from inference.cache.lifecycle import Occupied, Stale
from inference.models import Wording

from .page import draw

PAGE = 50


@require_GET
@permitted("view")
def queue(request: Request) -> HttpResponse:
    after = request.GET.get("after", "")[:120]
    found = list(review.most_urgent(PAGE + 1, after))
    return draw(
        request,
        "queue",
        waiting=found[:PAGE],
        more=review.cursor_of(found[PAGE - 1]) if len(found) > PAGE else "",
        after=after,
        last=review.last_action(request.user),
    )


@require_POST
@permitted("review")
def begin(request: Request) -> HttpResponse:
    """On to the next one."""
    return _next(request)


def _next(request: Request) -> HttpResponse:
    wording = review.claim_next(request.user)
    return redirect("console_pairing", wording.pk) if wording else redirect("console_review")


@require_GET
@permitted("view")
def pairing(request: Request, pk: UUID) -> HttpResponse:
    return _pairing(request, pk)


def _pairing(
    request: Request, pk: UUID, status: int = 200, problem: str = "", typed: Judgement | None = None
) -> HttpResponse:
    """The pairing as it is now. `typed` is what its operator had put in before it came to nothing."""
    try:
        found = reading.pairing(pk)
    except Wording.DoesNotExist as error:
        raise Http404 from error
    held = review.holder(pk)
    mine = held is not None and held.operator_id == request.user.pk
    # The form always sends them; what was not meant to be kept is what was there before.
    answer = typed.answer if typed and typed.action == review.EDIT else ""
    names = typed.names if typed and typed.action == review.CONFUSE else ("", "")
    return draw(
        request,
        "pairing",
        status,
        pairing=found,
        held=held,
        mine=mine,
        open=mine and found.decidable and may(request.user, "review"),
        problem=problem,
        typed=typed,
        answer=answer or found.entry.answer,
        names=names if any(names) else found.suggested,
        last=review.last_action(request.user),
    )


@require_POST
@permitted("review")
def take(request: Request, pk: UUID) -> HttpResponse:
    """Open this one, wherever in the queue it stands."""
    try:
        review.claim(pk, request.user)
    except Taken:
        return _pairing(request, pk, 409)
    except Wording.DoesNotExist as error:
        raise Http404 from error
    return redirect("console_pairing", pk)


@require_POST
@permitted("review")
def keep(request: Request, pk: UUID) -> HttpResponse:
    """The page is still open; answers with the line that says whose the pairing is."""
    try:
        held = review.claim(pk, request.user)
    except Taken as taken:
        held = taken.claim
    except Wording.DoesNotExist as error:
        raise Http404 from error
    context = {"held": held, "mine": held.operator_id == request.user.pk}
    return render(request, "console/pairing.html#claim", context)


@require_POST
@permitted("review")
def release(request: Request, pk: UUID) -> HttpResponse:
    review.release(pk, request.user)
    return redirect("console_review")


@require_POST
@permitted("review")
def decide(request: Request, pk: UUID) -> HttpResponse:
    sent = request.POST
    judgement = Judgement(
        action=sent.get("action", ""),
        seen=sent.get("seen", ""),
        reason=sent.get("reason", "").strip()[:2_000],
        # Browsers send line ends as CR LF.
        answer=sent.get("answer", "").replace("\r\n", "\n")[:100_000],
        names=(sent.get("first", "")[:200], sent.get("second", "")[:200]),
        everywhere=bool(sent.get("everywhere")),
    )
    try:
        review.decide(pk, request.user, judgement)
    except Wording.DoesNotExist as error:
        raise Http404 from error
    except Taken:
        return _pairing(request, pk, 409, typed=judgement)
    except Stale:
        problem = _("This changed while you looked at it, so nothing was done. Here it is as it is now.")
        return _pairing(request, pk, 409, problem, judgement)
    except Occupied:
        problem = _("The same question has another proved answer by now, so nothing was done.")
        return _pairing(request, pk, 409, problem, judgement)
    except Refused as refused:
        return _pairing(request, pk, 400, str(labels.REFUSALS[refused.code]), judgement)
    return _next(request)


@require_POST
@permitted("review")
def bulk(request: Request) -> HttpResponse:
    """Those that were ticked, as they are, before anything is done to them."""
    pks = [pk for pk in (_as_id(text) for text in request.POST.getlist("pick")[: many.MOST]) if pk]
    return _bulk(request, pks, request.POST.get("action", ""))


def _bulk(
    request: Request, pks: list[UUID], action: str, status: int = 200, problem: str = "", reason: str = ""
) -> HttpResponse:
    if action not in many.ACTIONS or not pks:
        status, problem = 400, str(labels.REFUSALS["nothing_chosen" if not pks else "unknown_action"])
    return draw(
        request,
        "bulk",
        status,
        chosen=many.look(pks, request.user),
        action=action,
        problem=problem,
        reason=reason,
    )


@require_POST
@permitted("review")
def decide_bulk(request: Request) -> HttpResponse:
    sent = request.POST
    seen = {}
    for text in sent.getlist("pick")[: many.MOST]:
        pk, _sep, stamp = text.partition(":")
        if found := _as_id(pk):
            seen[found] = stamp
    action, reason = sent.get("action", ""), sent.get("reason", "").strip()[:2_000]
    try:
        many.decide(request.user, action, seen, reason)
    except many.Changed:
        problem = _(
            "Some of them changed while you looked, so nothing was done. Here they are as they are now."
        )
        return _bulk(request, list(seen), action, 409, problem, reason)
    except Refused as refused:
        return _bulk(request, list(seen), action, 400, str(labels.REFUSALS[refused.code]), reason)
    return redirect("console_review")


def _as_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


@require_POST
@permitted("review")
def undo(request: Request, batch: UUID) -> HttpResponse:
    try:
        review.undo(batch, request.user)
    except Refused as refused:
        return _not_undone(request, batch, 400, str(labels.REFUSALS[refused.code]))
    except (Stale, Occupied):
        problem = _("Something has changed since, so nothing was undone.")
        return _not_undone(request, batch, 409, problem)
    messages.success(request, _("Undone."))
    return redirect("console_review" if request.POST.get("to") == "review" else "console_audit")


def _not_undone(request: Request, batch: UUID, status: int, problem: str) -> HttpResponse:
    from .audit import show

    return show(request, batch, status, problem)
