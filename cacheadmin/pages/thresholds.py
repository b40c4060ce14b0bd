"""Thresholds: what they are, what others would come to, and changing them."""

import math
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from cacheadmin import labels, thresholds, tuning
from cacheadmin.access import Request, may, permitted
from inference.cache import policy
from inference.models import Mode, Scope

from .page import draw

NAMES = thresholds.NAMES


@require_GET
@permitted("view")
def page(request: Request) -> HttpResponse:
    return _page(request, request.GET, _wanted(request.GET))


def _page(
    request: Request,
    which: Mapping[str, str],
    wanted: Mapping[str, float],
    status: int = 200,
    problem: str = "",
    unconfirmed: str = "",
) -> HttpResponse:
    scope, content_class = _scope(which.get("scope", "")), which.get("class", "")
    content_class = content_class if content_class in labels.CLASSES else ""
    seen = thresholds.picture(scope, content_class, _in_order(wanted))
    return draw(
        request,
        "thresholds",
        status,
        picture=seen,
        problem=problem,
        unconfirmed=unconfirmed,
        reason=which.get("reason", "")[:2_000] if status != 200 else "",
        may_tune=may(request.user, "tune"),
        scopes=_scopes(scope),
        classes=labels.CLASSES,
    )


def _scope(text: str) -> Scope | None:
    return Scope.objects.filter(pk=text).first() if text.isdecimal() and len(text) < 18 else None


def _scopes(chosen: Scope | None) -> list[Scope]:
    newest = list(Scope.objects.order_by("-id").values_list("pk", flat=True)[:50])
    return list(Scope.objects.filter(Q(pk__in=newest) | Q(pk=chosen.pk if chosen else None)).order_by("-id"))


def _wanted(sent: Mapping[str, str]) -> dict[str, float]:
    """The thresholds that were asked for, as far as they can be read."""
    found = {name: number for name in NAMES if (number := _number(sent.get(name, ""))) is not None}
    return found


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 <= value <= 1 else None


def _in_order(wanted: Mapping[str, float]) -> dict[str, float]:
    """While somebody moves one slider past the other, the other goes along."""
    values = dict(wanted)
    if "high" in values and "low" in values:
        values["low"] = min(values["low"], values["high"])
    if "near" in values and "low" in values:
        values["near"] = min(values["near"], values["low"])
    return values


@require_POST
@permitted("tune")
def save(request: Request) -> HttpResponse:
    """Put thresholds in force, or on trial."""
    sent = request.POST
    wanted, mode, seen = _wanted(sent), sent.get("mode", ""), sent.get("seen", "")
    scope, content_class = _scope(sent.get("scope", "")), sent.get("class", "")
    readable = len(wanted) == len(NAMES) and seen.isdecimal() and len(seen) < 10
    if not readable or mode not in (Mode.LIVE, Mode.SHADOW) or (sent.get("scope") and scope is None):
        return _page(request, sent, {}, 400, _("These thresholds can't be read. Nothing was changed."))
    if content_class and content_class not in labels.CLASSES:
        return _page(request, sent, {}, 400, _("There is no such class. Nothing was changed."))
    limits, reason = thresholds.limits_of(wanted), sent.get("reason", "").strip()[:2_000]
    proposed = tuning.waiting(scope, content_class, limits)
    try:
        row = tuning.save(
            request.user,
            scope,
            content_class,
            limits,
            Mode(mode),
            seen=int(seen),
            confirmed=bool(sent.get("confirmed")),
            reason=reason or (tuning.as_proposed(proposed) if proposed else ""),
            fit=proposed.fit if proposed else None,
        )
    except policy.Changed:
        problem = _("Somebody changed these thresholds while you looked at them, so nothing was done.")
        return _page(request, sent, wanted, 409, problem)
    except tuning.Unconfirmed:
        return _page(request, sent, wanted, 400, unconfirmed=mode)
    except ValueError:
        problem = _("They must be in order: near at most low, low at most high, all from 0 to 1.")
        return _page(request, sent, wanted, 400, problem)
    thresholds.forget()
    said: Any = {
        Mode.LIVE: _("In force. The next question is decided by them."),
        Mode.SHADOW: _("On trial. They decide nothing; what they would have decided is written down."),
    }
    messages.success(request, said[Mode(row.mode)])
    query = {"scope": str(scope.pk) if scope else "", "class": content_class}
    return redirect(f"{reverse('console_thresholds')}?{urlencode(query)}")
