"""What the console's templates ask for."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django import template
from django.contrib.humanize.templatetags.humanize import naturaltime
from django.http import QueryDict
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from cacheadmin import access, labels
from cacheadmin.wording_diff import Run

register = template.Library()


@register.filter
def called(value: object, kind: str) -> str:
    """`{{ entry.state|called:"state" }}`: its name in the reader's language."""
    return labels.label(kind, str(value))


@register.filter
def may(user: Any, permission: str) -> bool:
    return access.may(user, permission)


@register.filter
def percent(share: float | None) -> str:
    """0.1234 as "12.3%"; a dash for None."""
    return "–" if share is None else f"{share * 100:.1f}%"


@register.simple_tag(takes_context=True)
def address(context: template.Context, **changes: Any) -> str:
    """This page's query with other values; None takes one away."""
    query: QueryDict = context["request"].GET.copy()
    for name, value in changes.items():
        if value is None:
            query.pop(name, None)
        else:
            query[name] = str(value)
    return f"?{query.urlencode()}"


@register.simple_tag
def when(at: datetime) -> SafeString:
    """A moment, in words, with the exact one for who points at it."""
    exact = at.strftime("%Y-%m-%d %H:%M:%S UTC")
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', at.isoformat(), exact, str(naturaltime(at))
    )


@register.simple_tag
def state(value: str) -> SafeString:
    """A state of an entry or a wording."""
    return format_html('<span class="state {}">{}</span>', value, labels.label("state", value))


@register.simple_tag
def runs(side: Iterable[Run]) -> SafeString:
    """A text, with what is different from the other one marked."""
    parts = (
        format_html("{}", run.text)
        if run.kind == "same"
        else format_html('<mark class="{}">{}</mark>', run.kind, run.text)
        for run in side
    )
    return format_html_join("", "{}", ((part,) for part in parts))
