"""What the cache does and how it is: figures, health."""

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.http import HttpResponse
from django.views.decorators.http import require_GET

from cacheadmin import charts, figures, health, sampling
from cacheadmin.access import Request, permitted
from cacheadmin.labels import CLASSES, SPANS
from inference.models import Scope

from .page import draw


@require_GET
@permitted("view")
def overview(request: Request) -> HttpResponse:
    span = request.GET.get("range", "")
    span = span if span in figures.RANGES else "24h"
    wanted = request.GET.get("scope", "")
    scope = Scope.objects.filter(pk=wanted).first() if wanted.isdecimal() and len(wanted) < 18 else None
    content_class = request.GET.get("class", "")
    content_class = content_class if content_class in CLASSES else ""
    found = figures.overview(span, scope, content_class)
    held = figures.holdings()
    held_bytes, limit_bytes = sampling.held_bytes()
    return draw(
        request,
        "overview",
        figures=found,
        sheet=charts.sheet(found),
        held=held,
        suspects=held.suspects,
        waiting=health.waiting(),
        held_bytes=held_bytes,
        limit_bytes=limit_bytes,
        price=f"{settings.PRICE_PER_1000_TOKENS:g} {settings.PRICE_CURRENCY}",
        span=span,
        spans=SPANS,
        scope=scope,
        content_class=content_class,
        scopes=Scope.objects.order_by("-id")[:100],
        classes=CLASSES,
    )


@require_GET
@permitted("view")
def state(request: Request) -> HttpResponse:
    parts = health.parts()
    try:
        amounts = health.amounts()
    except (DatabaseError, InterfaceError):
        amounts = []
    return draw(request, "health", parts=parts, amounts=amounts, engines=health.engines())


@require_GET
@permitted("view")
def ledger(request: Request) -> HttpResponse:
    return draw(request, "ledger", engines=health.engines())
