"""Looking for an answer. Each layer is one function from a question to a pairing or nothing."""

from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID

from django.db import connection

from inference.models import Scope, Wording


@dataclass(frozen=True)
class Found:
    """A pairing that may be served, and what there is to serve."""

    wording: UUID
    entry: UUID
    answer: str


# Stand-ins for the parameters while the query is compiled; no real value is like them.
_KEY, _SCOPE, _SESSION = "\x01key", -1, UUID(int=1)


@cache
def _exact() -> tuple[str, tuple[Any, ...]]:
    """The query of `exact`, compiled once: Django builds it in 1.7 ms, Postgres answers it in 0.4."""
    found = (
        Wording.objects.servable(_SCOPE, _SESSION)
        .filter(exact_key=_KEY)
        .order_by("visibility", "-created_at")  # "session" sorts before "shared"
        .values_list("pk", "entry_id", "entry__answer")[:1]
    )
    sql, parameters = found.query.sql_with_params()
    return sql, tuple(parameters)


def exact(key: str, scope: Scope, session: UUID) -> Found | None:
    """The proved pairing with this key that `session` may be served; its own before a shared one."""
    sql, parameters = _exact()
    actual: dict[Any, Any] = {_KEY: key, _SCOPE: scope.pk, _SESSION: session}
    with connection.cursor() as cursor:
        cursor.execute(sql, [actual.get(parameter, parameter) for parameter in parameters])
        row = cursor.fetchone()
    return Found(*row) if row else None
