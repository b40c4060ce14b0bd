"""What is known by now of the answers that a lookup found: which would have been right, which wrong.

An answer that was served is judged by what was observed of its pairing with this question; one that was near
by the fresh answer that was written instead. The fresh answer is compared with all that were near and speaks
of the likest one: if it agrees, that entry was right and no other; if not, none was.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from inference.models import Decision, Observation, Outcome, Verdict

from .standing import HINTS

_NEAR = "near"
_OPERATOR = "operator"


@dataclass(frozen=True)
class Hindsight:
    """`entry` is the one spoken of. `alone`: what is said of it says that no other was right."""

    entry: str
    agrees: bool
    alone: bool

    def right(self, entry: str) -> bool | None:
        """Would serving this entry have been right? None where nobody can tell."""
        if entry == self.entry:
            return self.agrees
        return False if self.alone else None


@dataclass(frozen=True)
class Lookup:
    """What of a decision is needed here, and with its generation and that one's pairing: as rows of models,
    thousands of them take five times as long to read."""

    pk: int
    outcome: str
    entry: UUID | None
    measured: Mapping[str, Any] | None
    shadowed: Mapping[str, Any] | None
    generation: UUID
    scope: int | None
    exact_key: str
    pairing: UUID | None
    pairing_key: str | None
    pairing_entry: UUID | None


_COLUMNS = (
    "pk",
    "outcome",
    "entry",
    "measured",
    "shadowed",
    "generation",
    "generation__scope",
    "generation__exact_key",
    "generation__wording",
    "generation__wording__exact_key",
    "generation__wording__entry",
)


def lookups(decisions: "QuerySet[Decision]") -> list[Lookup]:
    """These decisions, in their order."""
    return [Lookup(*row) for row in decisions.values_list(*_COLUMNS)]


def of(found: Sequence[Lookup]) -> dict[int, Hindsight]:
    """By decision; those of which nothing is known are left out."""
    compared = _compared(found)
    pairings = {row.pk: pairing for row in found if (pairing := _pairing(row, compared))}
    verdicts = _verdicts(wording for wording, _entry in pairings.values())
    return {
        row.pk: Hindsight(
            entry=str(pairings[row.pk][1]),
            agrees=verdicts[pairings[row.pk][0]],
            alone=row.outcome == Outcome.NEAR,
        )
        for row in found
        if row.pk in pairings and pairings[row.pk][0] in verdicts
    }


_Pairing = tuple[UUID, UUID]


def _compared(found: Sequence[Lookup]) -> dict[UUID, _Pairing]:
    """By generation, the pairing that its fresh answer was compared with."""
    near = [row.generation for row in found if row.outcome == Outcome.NEAR]
    rows = Observation.objects.filter(generation__in=near, source=_NEAR, wording__isnull=False)
    return {
        generation: (wording, entry)
        for generation, wording, entry in rows.values_list("generation", "wording", "wording__entry")
    }


def _pairing(row: Lookup, compared: dict[UUID, _Pairing]) -> _Pairing | None:
    """The pairing of this very question with an entry of which something may have been observed."""
    if row.outcome == Outcome.NEAR:
        return compared.get(row.generation)
    # Where no pairing of its own could be stored, it is that of another question.
    if row.pairing is None or row.pairing_entry is None or row.pairing_key != row.exact_key:
        return None
    return row.pairing, row.pairing_entry


# Later doubts count beside an operator's word, earlier ones don't.
_VERDICTS = """
    WITH said AS (
        SELECT wording_id, verdict, updated_at,
            max(updated_at) FILTER (WHERE source = %(operator)s) OVER (PARTITION BY wording_id) AS settled
        FROM inference_observation
        WHERE wording_id = ANY(%(wordings)s) AND verdict <> %(unclear)s AND source <> ALL(%(hints)s)
    )
    SELECT wording_id, bool_and(verdict = %(agree)s) FROM said
    WHERE settled IS NULL OR updated_at >= settled GROUP BY wording_id
"""


def _verdicts(wordings: Iterable[UUID]) -> dict[UUID, bool]:
    """What all observations of a pairing come to, hints aside: an operator's last word, or else one
    disagreement. Added up by Postgres: a pairing that many are served has thousands."""
    wanted: dict[str, Any] = {
        "wordings": list(set(wordings)),
        "operator": _OPERATOR,
        "unclear": str(Verdict.UNCLEAR),
        "agree": str(Verdict.AGREE),
        "hints": [str(hint) for hint in HINTS],
    }
    with connection.cursor() as cursor:
        cursor.execute(_VERDICTS, wanted)
        return dict(cursor.fetchall())
