"""Finding entries: by what was asked, by likeness, and by what they are; newest first, page after page.

Filters that no index knows (a hit must not rewrite indexes) look through a bounded number of entries at a
time, so that a page is never waited for; where the bound was reached the page says how far it looked.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.db import connection
from django.db.models import BooleanField, Exists, OuterRef, QuerySet
from django.db.models.expressions import RawSQL
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext_lazy as _

from inference.cache import vectors
from inference.cache.lookup import as_text
from inference.embedding import Vector, embed
from inference.models import Entry, EntrySource, Scope, Wording

from .labels import CLASSES, LANGUAGES, STATES

PAGE = 50
LOOKED_AT = 10_000
OFTEN = 1_000
MATCHES = 2_000
NEAREST = 50

AGES = {"1h": timedelta(hours=1), "1d": timedelta(days=1), "7d": timedelta(days=7), "30d": timedelta(days=30)}

COLUMNS: dict[str, Any] = {
    "state": _("State"),
    "class": _("Class"),
    "hits": _("Hits"),
    "age": _("Age"),
    "scope": _("Scope"),
    "visibility": _("Seen by"),
    "expires": _("Expires"),
    "saves": _("A hit saves"),
}
SHOWN_AT_FIRST = ["state", "class", "hits", "age"]


class Filters(forms.Form):
    """What the entries page is asked for. All of it stands in the address, so that a search can be kept."""

    q = forms.CharField(label=_("Question contains"), required=False, min_length=2, max_length=200)
    like = forms.CharField(label=_("Similar to"), required=False, max_length=500)
    state = forms.ChoiceField(label=_("State"), required=False)
    content_class = forms.ChoiceField(label=_("Class"), required=False)
    scope = forms.ModelChoiceField(
        Scope.objects.order_by("-id"), label=_("Scope"), required=False, empty_label=_("Any")
    )
    source = forms.CharField(label=_("Source"), required=False, max_length=200)
    age = forms.ChoiceField(label=_("Created"), required=False)
    hits = forms.IntegerField(label=_("Hits, at least"), required=False, min_value=0)
    language = forms.ChoiceField(label=_("Language"), required=False)
    col = forms.MultipleChoiceField(label=_("Columns"), required=False, choices=list(COLUMNS.items()))

    def __init__(self, data: Mapping[str, Any]) -> None:
        super().__init__(data, auto_id="f-%s", label_suffix="")
        self._choices("state", STATES)
        self._choices(
            "age",
            {
                "1h": _("in the last hour"),
                "1d": _("in the last day"),
                "7d": _("in the last 7 days"),
                "30d": _("in the last 30 days"),
            },
        )
        self._choices("content_class", CLASSES)
        self._choices("language", LANGUAGES)

    def _choices(self, name: str, labels: Mapping[str, Any]) -> None:
        choice = self.fields[name]
        assert isinstance(choice, forms.ChoiceField)
        choice.choices = [("", _("Any")), *labels.items()]

    @property
    def main(self) -> list[forms.BoundField]:
        return [self[name] for name in ("q", "like", "state")]

    @property
    def more(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name not in ("q", "like", "state", "col")]

    @property
    def more_active(self) -> bool:
        return any(field.value() for field in self.more)

    @property
    def columns(self) -> list[str]:
        chosen = self.cleaned_data.get("col") if self.is_valid() else None
        return [name for name in COLUMNS if name in (chosen or SHOWN_AT_FIRST)]

    @property
    def active(self) -> bool:
        """Is anything filtered at all?"""
        return self.is_valid() and any(
            v not in (None, "", []) for k, v in self.cleaned_data.items() if k != "col"
        )


@dataclass(frozen=True)
class Row:
    """An entry with the question that it is best known by."""

    entry: Entry
    question: str
    wordings: int
    likeness: float | None = None


@dataclass(frozen=True)
class Page:
    """`after` is the cursor of the next page, "" on the last one. `looked_back_to` is set where the search
    ended before the page was full; `capped` where more questions contain the text than are looked at;
    `unembedded` where a search by likeness found no embedder."""

    rows: list[Row] = field(default_factory=list)
    after: str = ""
    looked_back_to: datetime | None = None
    capped: bool = False
    unembedded: bool = False


def find(filters: Filters, after: str = "") -> Page:
    """One page of what valid `filters` ask for, behind the cursor."""
    wanted = filters.cleaned_data
    if wanted["like"]:
        return _alike(wanted)
    entries = _after(_filtered(wanted).order_by("-created_at", "-id"), after)
    if wanted["q"]:
        return _asked(entries, wanted, after)
    if not any(wanted[name] for name in _UNINDEXED):
        return _page(entries)
    return _page(*_bounded(entries, wanted, after, LOOKED_AT))


_UNINDEXED = ("state", "content_class", "hits", "language")


def _filtered(wanted: Mapping[str, Any]) -> QuerySet[Entry]:
    entries = Entry.objects.defer("answer_vector").select_related("scope")
    if wanted["state"]:
        entries = entries.filter(state=wanted["state"])
    if wanted["content_class"]:
        entries = entries.filter(content_class=wanted["content_class"])
    if wanted["scope"]:
        entries = entries.filter(scope=wanted["scope"])
    if wanted["source"]:
        named = EntrySource.objects.filter(source_key=wanted["source"])
        entries = entries.filter(pk__in=named.values("entry"))
    if wanted["age"]:
        entries = entries.filter(created_at__gte=timezone.now() - AGES[wanted["age"]])
    if wanted["hits"]:
        entries = entries.filter(hits__gte=wanted["hits"])
    if wanted["language"]:
        told = Wording.objects.filter(entry=OuterRef("pk"), fingerprint__meaning__language=wanted["language"])
        entries = entries.filter(Exists(told))
    return entries


# --- paging -----------------------------------------------------------------------------------------


def _after(entries: QuerySet[Entry], cursor: str) -> QuerySet[Entry]:
    place = _place(cursor)
    if place is None:
        return entries
    # As a row, which the index on both columns is walked by; an OR would be a filter over everything.
    behind = RawSQL("(inference_entry.created_at, inference_entry.id) < (%s, %s)", list(place))
    return entries.annotate(behind=behind).filter(behind=True)


def _place(cursor: str) -> tuple[datetime, UUID] | None:
    """Where a page begins; None for the first one, and for a cursor that is none."""
    text, _sep, pk = cursor.partition("_")
    try:
        at = parse_datetime(text)
        return (at, uuid.UUID(pk)) if at and timezone.is_aware(at) else None
    except ValueError:
        return None


def cursor_of(entry: Entry) -> str:
    return f"{entry.created_at.isoformat()}_{entry.pk}"


def _candidates(wanted: Mapping[str, Any], after: str) -> QuerySet[Entry]:
    """The entries of the scope, if one is chosen, from the newest on that stand behind the cursor."""
    ordered = _after(Entry.objects.order_by("-created_at", "-id"), after)
    return ordered.filter(scope=wanted["scope"]) if wanted["scope"] else ordered


def _bounded(
    entries: QuerySet[Entry], wanted: Mapping[str, Any], after: str, most: int
) -> tuple[QuerySet[Entry], Entry | None]:
    """Those among the next `most`, and the last one that is looked at (None if these are all)."""
    candidates = _candidates(wanted, after)
    last = candidates.only("id", "created_at")[most - 1 : most].first()
    if last is not None:
        entries = entries.filter(created_at__gte=last.created_at)
    return entries, last


def _page(entries: QuerySet[Entry], last: Entry | None = None, capped: bool = False) -> Page:
    found = list(entries[: PAGE + 1])
    shown = found[:PAGE]
    if len(found) > PAGE:
        return Page(_rows(shown), cursor_of(shown[-1]), capped=capped)
    if last is not None:
        return Page(_rows(shown), cursor_of(last), last.created_at, capped)
    return Page(_rows(shown), capped=capped)


def _rows(entries: list[Entry], likeness: Mapping[UUID, float] | None = None) -> list[Row]:
    """With two queries for all of them."""
    asked: dict[UUID, list[str]] = {}
    wordings = Wording.objects.filter(entry__in=entries).order_by("created_at")
    for entry_id, question in wordings.values_list("entry_id", "question"):
        asked.setdefault(entry_id, []).append(question)
    return [
        Row(
            entry,
            next(iter(asked.get(entry.pk, [])), ""),
            len(asked.get(entry.pk, [])),
            None if likeness is None else likeness[entry.pk],
        )
        for entry in entries
    ]


# --- by text and by likeness ------------------------------------------------------------------------

_CONTAINING = """
    SELECT entry_id FROM inference_wording
    WHERE console_bigrams(question) @> console_bigrams(%s) AND question ILIKE %s LIMIT %s
"""


def _asked(entries: QuerySet[Entry], wanted: Mapping[str, Any], after: str) -> Page:
    """What is asked often fills a page from the newest entries; for what is asked seldom there is an index,
    which takes long for what is asked often."""
    newest = list(_candidates(wanted, after).values_list("pk", flat=True)[:OFTEN])
    of_those = RawSQL("inference_wording.entry_id = ANY(%s::uuid[])", [newest], BooleanField())
    so = Wording.objects.filter(of_those, question__icontains=wanted["q"])
    page = _page(_among(entries, list(so.values_list("entry", flat=True))))
    if page.after:
        return page
    ids, capped = _containing(wanted["q"])
    return _page(_among(entries, ids), capped=capped)


def _containing(text: str) -> tuple[list[UUID], bool]:
    """Entries that were asked for with this text in the question, and whether these are only some of them."""
    escaped = text.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
    with connection.cursor() as cursor:
        cursor.cursor.execute(_CONTAINING, [text, f"%{escaped}%", MATCHES + 1], prepare=False)
        rows = cursor.fetchall()
    return list({row[0] for row in rows[:MATCHES]}), len(rows) > MATCHES


def _among(entries: QuerySet[Entry], ids: list[UUID]) -> QuerySet[Entry]:
    """Those with one of these ids, given as one value: thousands of them take long to be written out."""
    named = RawSQL("inference_entry.id = ANY(%s::uuid[])", [ids], BooleanField())
    return entries.filter(named)


def _alike(wanted: Mapping[str, Any]) -> Page:
    """The entries whose questions are nearest, among those the other filters let through."""
    vector = embed([wanted["like"].casefold()])
    if vector is None:
        return Page(unembedded=True)
    nearest = _nearest(vector[0])
    entries = _filtered(wanted).filter(pk__in=nearest)
    if wanted["q"]:
        entries = entries.filter(wordings__question__icontains=wanted["q"]).distinct()
    ordered = sorted(entries, key=lambda entry: -nearest[entry.pk])[:NEAREST]
    return Page(_rows(ordered, nearest))


def _nearest(vector: Vector) -> dict[UUID, float]:
    """Entries by the likeness of their nearest wording: of the proved ones, by the index that lookups use,
    and of those in doubt."""
    size = len(vector)
    of = f"({vectors.expression('question', size)} <#> %(vector)s::halfvec({size}))"
    sized = f"vector_dims(inference_wording.question_vector) = {size}"
    arms = " UNION ALL ".join(
        f"(SELECT entry_id, -{of} FROM inference_wording WHERE {which} ORDER BY {of} LIMIT 200)"
        for which in (
            vectors.condition("question", size),
            f"inference_wording.state = 'suspect' AND {sized}",
        )
    )
    best: dict[UUID, float] = {}
    with connection.cursor() as cursor:
        cursor.cursor.execute(arms, {"vector": as_text(vector)}, prepare=False)
        for entry, likeness in cursor.fetchall():
            best[entry] = max(likeness, best.get(entry, -1.0))
    return best
