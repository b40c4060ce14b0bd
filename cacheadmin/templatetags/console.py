"""What the console's templates ask for."""

from collections.abc import Iterable, Mapping, Sized
from datetime import datetime
from typing import Any
from uuid import UUID

from django import template
from django.conf import settings
from django.contrib.humanize.templatetags.humanize import naturaltime
from django.http import QueryDict
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from cacheadmin import access, charts, labels
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


@register.filter
def count(number: int | float | None) -> str:
    """12345 as "12,345", in every language alike."""
    return f"{number or 0:,}"


@register.filter
def is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


@register.filter
def amount(value: float | None, unit: str) -> str:
    """A chart's value as its unit is written; a dash for None."""
    if value is None:
        return "–"
    match unit:
        case "share":
            return percent(value)
        case "ms":
            return f"{value:,.0f} ms"
        case "bytes":
            return f"{value / 2**20:,.1f} MiB"
        case "money":
            return f"{value:,.2f} {settings.PRICE_CURRENCY}"
    return f"{value:,.0f}"


@register.filter
def total(value: float, name: str) -> str:
    """A figure of an engine's ledger: its name says what it is."""
    if name.endswith("_bytes"):
        return amount(value, "bytes")
    return percent(value) if name.endswith("_ratio") else f"{value:,}"


@register.filter
def is_id(text: object) -> bool:
    """Can this be an id of a row?"""
    try:
        UUID(str(text))
    except ValueError:
        return False
    return True


@register.simple_tag
def chart_rows(chart: charts.Chart, sheet: charts.Sheet) -> SafeString:
    """A chart's table, row by row. Not by the template: of a month there are two thousand cells."""
    return format_html_join(
        "\n",
        '<tr><th scope="row">{}</th>{}</tr>',
        (
            (
                f"{row.at:%m-%d %H:%M}",
                format_html_join(
                    "", '<td class="number">{}</td>', ((amount(value, chart.unit),) for value in row.values)
                ),
            )
            for row in charts.rows(sheet, chart)
        ),
    )


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
def cut(rows: Sized, most: int, which: str = "last") -> SafeString:
    """A line that says so where a list of which only so many are shown is as long as that."""
    if len(rows) < most:
        return SafeString("")
    said = (
        _("The first %(n)d; there may be more.")
        if which == "first"
        else _("The last %(n)d; there may be more.")
    )
    return format_html('<p class="explain">{}</p>', said % {"n": most})


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
