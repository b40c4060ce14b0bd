"""Looking for an answer. Each layer is one function from a question to pairings that may be served.

All of them search through the one servable queryset; what they bring differs only in how it was found.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any
from uuid import UUID

import numpy as np
from django.db import connection
from django.db.models import BooleanField
from django.db.models.expressions import RawSQL

from inference.embedding import Vector
from inference.models import Scope, State, Wording
from inference.understanding.turns import Turn, Turns

from . import vectors
from .prints import Prints
from .probe import Probe

# Of the nearest wordings by each channel so many are weighed; the right one was among them in 106 of 109.
NEAREST = 8
# More wordings than this under one key are not looked at.
_BY_KEY = 256


@dataclass(frozen=True)
class Found:
    """A pairing that may be served, and what there is to serve. `proved`: nothing is open about the entry."""

    wording: UUID
    entry: UUID
    answer: str
    content_class: str
    proved: bool


@dataclass(frozen=True)
class Candidate(Found):
    """A pairing that was found by likeness, with what is needed to weigh it.

    Likenesses are inner products of vectors of length 1, so 1 is the same (never distances);
    `context_likeness` is None where one side leans on nothing, `rejected_likeness` where the entry has no
    rejected wording; `answer_likeness` is the probe's to the stored answer and `own_answer_likeness` the
    stored question's, None where the answer has no vector of the same length.
    """

    question: str
    resolved: str
    dependent: bool
    fingerprint: Mapping[str, Any]
    parameters: tuple[str, ...]
    likeness: float | None = None
    context_likeness: float | None = None
    rejected_likeness: float | None = None
    answer_likeness: float | None = None
    own_answer_likeness: float | None = None

    @cached_property
    def prints(self) -> Prints:
        return Prints.from_json(self.fingerprint)


# Stand-ins for the parameters while a query is compiled; no real value is like them.
_KEY, _SCOPE, _SESSION = "\x01key", -1, UUID(int=1)
_TEMPLATE, _BANDS, _VECTOR = "\x01template", "\x01bands", "\x01vector"

_COLUMNS = """
    w.id, w.entry_id, e.answer, e.content_class, e.state = 'active',
    w.question, w.resolved, w.dependent, w.fingerprint, w.parameters
"""
_FROM = "inference_wording w JOIN inference_entry e ON e.id = w.entry_id"

Compiled = tuple[str, tuple[Any, ...]]


def _compiled(queryset: Any) -> Compiled:
    sql, parameters = queryset.query.sql_with_params()
    return sql, tuple(parameters)


def _bound(compiled: Compiled, actual: Mapping[Any, Any]) -> tuple[str, list[Any]]:
    """The statement and its parameters, with the stand-ins replaced."""
    sql, parameters = compiled
    return sql, [actual.get(p, p) if isinstance(p, str | int | UUID) else p for p in parameters]


# --- exact ------------------------------------------------------------------------------------------


@cache
def _exact(first: bool) -> Compiled:
    """The query of `exact`, compiled once: Django builds it in 1.7 ms, Postgres answers it in 0.4."""
    with_key = Wording.objects.servable(_SCOPE, _SESSION).filter(exact_key=_KEY)
    return _compiled(
        (with_key.filter(context=[]) if first else with_key)
        .order_by("visibility", "-created_at")  # "session" sorts before "shared"
        .values_list("pk", "entry_id", "entry__answer", "entry__content_class", "entry__state")[:1]
    )


def exact(key: str, scope: Scope, session: UUID, first: bool = False) -> Found | None:
    """The proved pairing with this key that `session` may be served; its own before a shared one. `first`:
    only what was asked first thing in a conversation."""
    sql, parameters = _bound(_exact(first), {_KEY: key, _SCOPE: scope.pk, _SESSION: session})
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        row = cursor.fetchone()
    if row is None:
        return None
    wording, entry, answer, content_class, state = row
    return Found(wording, entry, answer, content_class, state == State.ACTIVE)


# --- fuzzy ------------------------------------------------------------------------------------------


@cache
def _alike() -> Compiled:
    """Three index scans; one condition with OR would leave the choice of an index to guesswork. What they
    bring is put to the servable queryset together: planned with each of them it took as long again."""
    arms = " UNION ".join(f"(SELECT id {_KEYED.format(by)} LIMIT {_BY_KEY})" for by in _KEYS)
    keyed = RawSQL(arms, [parameter for key in _KEYS.values() for parameter in (*key, _SESSION)])
    ids, parameters = _compiled(
        Wording.objects.servable(_SCOPE, _SESSION).filter(pk__in=keyed).order_by().values_list("id")
    )
    return f"SELECT {_COLUMNS} FROM ({ids}) AS found JOIN {_FROM} ON w.id = found.id", parameters


_KEYED = "FROM inference_wording WHERE {} AND state = 'active' AND (visibility = 'shared' OR session_id = %s)"
_KEYS: dict[str, tuple[Any, ...]] = {
    "keyword_key = %s AND keyword_key <> ''": (_KEY,),
    "template_key = %s AND template_key <> ''": (_TEMPLATE,),
    "typo_bands && %s::int[]": (_BANDS,),
}


def _union(querysets: Sequence[Any]) -> Compiled:
    arms = [_compiled(queryset) for queryset in querysets]
    sql = " UNION ".join(f"({sql})" for sql, _ in arms)
    return sql, tuple(parameter for _, parameters in arms for parameter in parameters)


def alike(probe: Probe) -> list[Candidate]:
    """Pairings whose question has the same keywords, the same template, or nearly the same spelling."""
    actual = {
        _KEY: probe.keyword_key,
        _TEMPLATE: probe.template_key,
        _BANDS: probe.typo_bands,
        _SCOPE: probe.scope.pk,
        _SESSION: probe.session,
    }
    with connection.cursor() as cursor:
        cursor.execute(*_bound(_alike(), actual))  # prepared: planning takes 1.5 ms, and answering .1
        return [_candidate(row) for row in cursor.fetchall()]


# --- semantic ---------------------------------------------------------------------------------------


@cache
def _nearest(dimension: int, channels: tuple[str, ...]) -> Compiled:
    """The nearest by each of `channels`, each with its likeness by both, how near the probe is to a wording
    that was rejected for the same entry, and how near both questions are to the answer. `<#>` is the negative
    inner product: the least is the likest."""
    halfvec = f"halfvec({dimension})"
    ids, parameters = _union([_nearest_by(channel, dimension) for channel in channels])
    sql = f"""
        WITH probe AS MATERIALIZED (SELECT %s::{halfvec} AS question, %s::{halfvec} AS context),
             nearest AS MATERIALIZED ({ids})
        SELECT {_COLUMNS},
            -(w.question_vector::{halfvec} <#> probe.question),
            -(w.context_vector::{halfvec} <#> probe.context),
            (SELECT max(-(r.question_vector::{halfvec} <#> probe.question))
             FROM inference_wording r
             WHERE r.entry_id = w.entry_id AND vector_dims(r.question_vector) = {dimension}
                AND (r.state = 'rejected' OR (r.state = 'suspect' AND r.disagreed > 0))),
            CASE WHEN vector_dims(e.answer_vector) = {dimension}
                THEN -(e.answer_vector::{halfvec} <#> probe.question) END,
            CASE WHEN vector_dims(e.answer_vector) = {dimension}
                THEN -(e.answer_vector::{halfvec} <#> w.question_vector::{halfvec}) END
        FROM nearest JOIN {_FROM} ON w.id = nearest.id CROSS JOIN probe
    """
    return sql, (_VECTOR + "question", _VECTOR + "context", *parameters)


def _nearest_by(channel: str, dimension: int) -> Any:
    expression = vectors.expression(channel, dimension)
    near = RawSQL(f"{expression} <#> %s::halfvec({dimension})", [_VECTOR + channel])
    indexed = RawSQL(f"({vectors.condition(channel, dimension)})", [], BooleanField())
    servable = Wording.objects.servable(_SCOPE, _SESSION).filter(indexed)
    return servable.order_by(near).values_list("id")[:NEAREST]


def nearest(probe: Probe) -> list[Candidate]:
    """Up to 8 pairings by question, and for a dependent one up to 8 by context. Empty without vectors."""
    question, context = probe.question_vector, probe.context_vector
    if question is None:
        return []
    actual = {
        _VECTOR + "question": as_text(question),
        _VECTOR + "context": None if context is None else as_text(context),
        _SCOPE: probe.scope.pk,
        _SESSION: probe.session,
    }
    channels = vectors.CHANNELS[:1] if context is None else vectors.CHANNELS
    return [_candidate(row) for row in _unprepared(_bound(_nearest(len(question), channels), actual))]


def context_of(wording: UUID) -> Turns:
    """The turns before a stored question; none if it is gone."""
    found = Wording.objects.filter(pk=wording).values_list("context", flat=True).first()
    return [Turn(role=turn["role"], content=turn["content"]) for turn in found or []]


def as_text(vector: Vector) -> str:
    """For the database, to six digits: a half float holds three or four."""
    return str(np.round(vector.astype(np.float64), 6).tolist())


def _unprepared(statement: tuple[str, list[Any]]) -> list[tuple[Any, ...]]:
    """The rows, planned for these very values: which index is best depends on how large the scope is."""
    with connection.cursor() as cursor, connection.wrap_database_errors:
        cursor.cursor.execute(*statement, prepare=False)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _candidate(row: tuple[Any, ...]) -> Candidate:
    values: list[Any] = [*row[:8], json.loads(row[8]), tuple(json.loads(row[9])), *row[10:]]
    return Candidate(*values)
