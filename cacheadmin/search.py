"""Finding entries: by what was asked, by likeness, and by what they are; newest first, page after page.

Filters that no index knows (a hit must not rewrite indexes) look through a bounded number of entries at a
time, so that a page is never waited for; where the bound was reached the page says how far it looked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import Any
from uuid import UUID

from django import forms
from django.db import connection, transaction
from django.db.models import BooleanField, Exists, FloatField, OuterRef, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from inference.cache import vectors
from inference.cache.lookup import as_text
from inference.embedding import Vector, embed
from inference.models import Entry, EntrySource, Scope, State, Wording

from . import cursors
from .figures import estimated
from .labels import CLASSES, LANGUAGES, STATES

PAGE = 50
LOOKED_AT = 10_000
OFTEN = 1_000
MATCHES = 2_000
# Of the likest so many are looked at, and of those that no index by likeness holds.
NEAREST = 5_000

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

    q = forms.CharField(
        label=_("Question contains"),
        required=False,
        min_length=2,
        max_length=200,
        widget=forms.TextInput({"placeholder": _("not looked for in answers")}),
    )
    like = forms.CharField(
        label=_("Similar to"),
        required=False,
        max_length=500,
        widget=forms.TextInput({"placeholder": _("a question, in any words or language")}),
    )
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
    `nearest` where only so many of the likest questions were looked at; `unembedded` where a search by
    likeness found no embedder."""

    rows: list[Row] = field(default_factory=list)
    after: str = ""
    looked_back_to: datetime | None = None
    capped: bool = False
    nearest: int | None = None
    unembedded: bool = False


def find(filters: Filters, after: str = "") -> Page:
    """One page of what valid `filters` ask for, behind the cursor."""
    wanted = filters.cleaned_data
    if wanted["like"]:
        return _alike(wanted, after)
    entries = _after(_filtered(wanted).order_by("-created_at", "-id"), after)
    if wanted["q"]:
        return _asked(entries, wanted, after)
    if not any(wanted[name] for name in _UNINDEXED):
        return _page(entries)
    return _page(*_bounded(entries, wanted, after, LOOKED_AT))


_UNINDEXED = ("state", "content_class", "hits", "language")


def _filtered(wanted: Mapping[str, Any]) -> QuerySet[Entry]:
    entries = Entry.objects.defer("answer_vector").select_related("scope")
    return entries.filter(*_conditions(wanted))


def _conditions(wanted: Mapping[str, Any], at: str = "") -> list[Q | Exists]:
    """What the filters say of an entry; `at` is the way to it from the rows that are asked for."""
    to, pk = (f"{at}__", at) if at else ("", "pk")
    said = {"state": "state", "content_class": "content_class", "hits": "hits__gte"}
    found: list[Q | Exists] = [Q((to + path, wanted[name])) for name, path in said.items() if wanted[name]]
    if wanted["scope"]:
        found.append(Q(scope=wanted["scope"]))  # a wording's is its entry's
    if wanted["age"]:
        found.append(Q((f"{to}created_at__gte", timezone.now() - AGES[wanted["age"]])))
    if wanted["source"]:
        named = EntrySource.objects.filter(source_key=wanted["source"])
        found.append(Q((f"{pk}__in", named.values("entry"))))
    if wanted["language"]:
        told = {"fingerprint__meaning__language": wanted["language"]}
        found.append(Exists(Wording.objects.filter(entry=OuterRef(pk), **told)))
    return found


# --- paging -----------------------------------------------------------------------------------------


def _after(entries: QuerySet[Entry], cursor: str) -> QuerySet[Entry]:
    place = cursors.place(cursor)
    if place is None:
        return entries
    # As a row, which the index on both columns is walked by; an OR would be a filter over everything.
    behind = RawSQL("(inference_entry.created_at, inference_entry.id) < (%s, %s)", list(place))
    return entries.annotate(behind=behind).filter(behind=True)


def cursor_of(entry: Entry) -> str:
    return cursors.behind(entry.created_at, entry.pk)


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


def _alike(wanted: Mapping[str, Any], after: str) -> Page:
    """The entries behind the cursor whose questions are nearest, of those the other filters let through."""
    vector = embed([wanted["like"].casefold()])
    if vector is None:
        return Page(unembedded=True)
    behind = _rank(after) or (-2.0, UUID(int=0))
    for most in (OFTEN, NEAREST):
        near = _nearest(vector[0], wanted, most)
        found = sorted(one for pk, far in near.far.items() if (one := (far, pk)) > behind)
        # Of one entry there may be many wordings: where they come to too few entries, more are asked for.
        if len(found) > PAGE or not near.full:
            break
    shown = [pk for _far, pk in found[:PAGE]]
    entries = Entry.objects.defer("answer_vector").select_related("scope").in_bulk(shown)
    rows = _rows([entries[pk] for pk in shown if pk in entries], {pk: -far for pk, far in near.far.items()})
    if len(found) > PAGE:
        far, pk = found[PAGE - 1]
        return Page(rows, f"{far!r}_{pk}", nearest=NEAREST if near.partly else None)
    whole = not near.partly and estimated(Wording) <= NEAREST
    return Page(rows, nearest=None if whole else NEAREST)


def _rank(cursor: str) -> tuple[float, UUID] | None:
    """How far the last one was; None for the first page, and for a cursor that is none."""
    far, _sep, pk = cursor.partition("_")
    try:
        return float(far), UUID(pk)
    except ValueError:
        return None


@dataclass(frozen=True)
class _Near:
    """How far the nearest wording of each entry is: its likeness below zero. `full`: as many as were asked
    for, there may be others; `partly`: of those that are not proved not all were compared."""

    far: Mapping[UUID, float]
    full: bool
    partly: bool


def _nearest(vector: Vector, wanted: Mapping[str, Any], most: int) -> _Near:
    """Of the proved wordings up to `most`, by the index that lookups use; the others, for which there is
    none, are compared one by one."""
    size = len(vector)
    far = RawSQL(
        f"{vectors.expression('question', size)} <#> %s::halfvec({size})", [as_text(vector)], FloatField()
    )
    wordings = Wording.objects.filter(*_conditions(wanted, "entry")).annotate(far=far)
    if wanted["q"]:
        so = Wording.objects.filter(entry=OuterRef("entry"), question__icontains=wanted["q"])
        wordings = wordings.filter(Exists(so))
    proved = wordings.filter(_said(vectors.condition("question", size))).order_by("far")[:most]
    compared, partly = _unproved(wanted)
    others = wordings.filter(
        RawSQL("inference_wording.id = ANY(%s::uuid[])", [compared], BooleanField()),
        _said(f"vector_dims(inference_wording.question_vector) = {size}"),
    )
    found: list[list[tuple[UUID, float]]] = []
    # In the index a search goes on until enough is let through; not for ever, though.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL hnsw.max_scan_tuples = {NEAREST}")
        for arm in (proved, others.order_by()):
            statement = arm.values_list("entry", "far").query.sql_with_params()
            cursor.cursor.execute(*statement, prepare=False)
            found.append(cursor.fetchall())
    nearest: dict[UUID, float] = {}
    for pk, distance in chain(*found):
        nearest[pk] = min(distance, nearest.get(pk, 2.0))
    return _Near(nearest, len(found[0]) >= most, partly)


_UNPROVED = [state for state in State if state != State.ACTIVE]


def _unproved(wanted: Mapping[str, Any]) -> tuple[list[UUID], bool]:
    """Wordings that are not proved, up to NEAREST, of what an index knows; and whether there may be more."""
    by_index = {name: value if name in ("scope", "source", "age") else "" for name, value in wanted.items()}
    rows = Wording.objects.filter(*_conditions(by_index, "entry"), state__in=_UNPROVED)
    # The index is on scope and state; whatever the scope, it leads to them.
    rows = rows.filter(scope__in=Scope.objects.order_by().values("pk"))
    found = list(rows.order_by().values_list("pk", flat=True)[:NEAREST])
    return found, len(found) >= NEAREST


def _said(condition: str) -> RawSQL:
    return RawSQL(f"({condition})", [], BooleanField())
