"""What every page of the console is drawn with."""

from typing import Any

from django.shortcuts import render

from cacheadmin import review
from cacheadmin.access import Request
from cacheadmin.pulse import COUNTED


def draw(request: Request, name: str, status: int = 200, **context: Any) -> Any:
    """The page, or for an htmx request the part of it that is named `results`."""
    if request.htmx and status == 200:
        return render(request, f"console/{name}.html#results", context)
    if "suspects" not in context:
        context["suspects"] = review.queue_length(COUNTED + 1)
    context["counted"] = COUNTED
    return render(request, f"console/{name}.html", context, status=status)
