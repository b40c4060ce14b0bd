"""The page that Prometheus reads."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE

from inference import metrics, scraping

from .gauges import Gauges


@require_GET
def scrape(request: HttpRequest) -> HttpResponse:
    """Figures in Prometheus' text format; 401 or 403 for who may not read them (see `scraping.may_read`)."""
    allowed = scraping.may_read(
        request.META.get("REMOTE_ADDR", ""),
        request.headers.get("Authorization", ""),
        forwarded=scraping.was_forwarded(request.META),
    )
    if allowed != 200:
        return HttpResponse(status=allowed, headers={"WWW-Authenticate": "Bearer"})
    body = metrics.exposition(Gauges())
    return HttpResponse(body, content_type=CONTENT_TYPE, headers={"Cache-Control": "no-store"})
