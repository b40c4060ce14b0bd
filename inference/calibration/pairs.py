"""What thresholds are fitted to: lookups whose truth is known, from the cache's own observations or from
cases."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import connection

from inference.cache import consent, decision, hindsight, probe, verifier
from inference.cache.measured import Limits, Measured
from inference.evaluation.cache import MEASURING, Progress, World, store, throw_away, watched
from inference.evaluation.cases import Case
from inference.history import model_view
from inference.models import Decision, Wording
from inference.understanding.turns import Turns

from .fitting import Kind, Pair

# Of the newest observations and decisions so many are looked at.
OBSERVED = 20_000


@dataclass(frozen=True)
class Labelled:
    """A lookup and its truth: would serving its candidate have been right? `decision` is its row, None
    for a case."""

    id: str
    measured: Measured
    right: bool
    scope: int | None = None
    decision: int | None = None

    @property
    def by_evidence(self) -> bool:
        return self.measured.evidence is not None

    def pair(self, limits: Limits) -> Pair | None:
        """As thresholds are fitted to it, `limits` being in force; None where no threshold decides on it."""
        one = self.measured
        if one.evidence is not None:
            return Pair(self.id, "likely", one.evidence, self.right)
        convinced = one.verifier is None or one.verifier >= limits.consent
        if one.otherwise or one.objected or not (one.agrees or (convinced and not one.doubted)):
            return None
        if one.agrees and convinced:
            return Pair(self.id, "low", one.score, self.right)
        return Pair(self.id, "high", one.strict, self.right)


def pairs(labelled: Sequence[Labelled], limits: Limits) -> list[Pair]:
    """Those that thresholds decide on."""
    return [pair for one in labelled if (pair := one.pair(limits))]


def known_from(labelled: Sequence[Labelled]) -> dict[Kind, float]:
    """What evidence could not have come to was not weighed: of `likely`, what every lookup was weighed
    for."""
    return {"likely": max((one.measured.complete for one in labelled), default=0.0)}


# --- from observations ------------------------------------------------------------------------------

# By fresh answers the generation was observed itself; a hit by its pairing, of which a few lookups are
# enough: once it is proved, the exact layer serves it thousands of times.
_OBSERVED = """
    WITH recent AS (
        SELECT generation_id, wording_id, source FROM inference_observation
        WHERE wording_id IS NOT NULL AND verdict <> 'unclear' ORDER BY id DESC LIMIT %(observed)s
    )
    SELECT d.id FROM recent JOIN inference_decision d ON d.generation_id = recent.generation_id
    WHERE recent.source = 'near' AND d.outcome = 'near' AND d.measured IS NOT NULL
    UNION
    SELECT d.id FROM (SELECT DISTINCT wording_id FROM recent WHERE source <> 'near') AS pairing
    CROSS JOIN LATERAL (
        SELECT id FROM inference_generation g WHERE g.wording_id = pairing.wording_id LIMIT 10
    ) AS g JOIN inference_decision d ON d.generation_id = g.id
    WHERE d.measured IS NOT NULL AND d.outcome IN ('hit', 'gray')
    ORDER BY 1 DESC LIMIT %(most)s
"""


def observed(
    scope: int | None = None, content_class: str = "", most: int = OBSERVED, newest: int = OBSERVED
) -> list[Labelled]:
    """Of the newest observations; newest first, and of one question and entry only the newest. Without
    `scope` or class, of all."""
    with connection.cursor() as cursor:
        cursor.cursor.execute(_OBSERVED, {"observed": newest, "most": most}, prepare=False)
        ids = [row[0] for row in cursor.fetchall()]
    rows = Decision.objects.filter(pk__in=ids).order_by("-id")
    if scope is not None:
        rows = rows.filter(generation__scope=scope)
    else:
        rows = rows.exclude(generation__scope__app=MEASURING)  # what is evaluated at this moment
    if content_class:
        rows = rows.filter(measured__content_class=content_class)
    found = hindsight.lookups(rows)
    known = hindsight.of(found)
    labelled: dict[str, Labelled] = {}
    for row in found:
        measured = Measured.from_json(row.measured or {})
        right = known[row.pk].right(str(measured.candidate)) if row.pk in known else None
        if right is not None:
            name = f"{row.exact_key} {measured.candidate}"
            labelled.setdefault(name, Labelled(name, measured, right, row.scope, row.pk))
    return list(labelled.values())


def convinced(
    labelled: Sequence[Labelled], most: int, progress: Progress = lambda *_: None
) -> list[Labelled]:
    """The same, with the verifier's word wherever it counts and was not needed when the lookup was made; of
    up to `most` lookups it is asked now, and the others are left out. What it says is kept with the
    decision."""
    silent = [one for one in labelled if one.measured.verifier is None and _hangs_on_it(one.measured)]
    if not silent or not verifier.available():
        return list(labelled)
    said = {one.id: _said(one) for one in watched("verifier", silent[:most], progress)}
    left_out = {one.id for one in silent} - {name for name, word in said.items() if word is not None}
    found = []
    for one in labelled:
        word = said.get(one.id)
        if one.id not in left_out:
            found.append(one if word is None else replace(one, measured=replace(one.measured, verifier=word)))
    return found


def _hangs_on_it(measured: Measured) -> bool:
    return (
        measured.evidence is None
        and not measured.otherwise
        and not measured.objected
        and (measured.agrees or not measured.doubted)
    )


def _said(one: Labelled) -> float | None:
    """What the verifier gives the pairing; None where its texts are gone."""
    rows = Decision.objects.select_related("generation__scope", "generation__session")
    row = rows.filter(pk=one.decision).first() if one.decision is not None else None
    wording = Wording.objects.filter(pk=one.measured.wording).first()
    if row is None or wording is None or row.generation.scope is None:
        return None
    read = probe.read(row.generation.scope, row.generation.session_id, model_view(row.generation))
    word = float(verifier.score([consent.pair(read, wording)])[0])
    Decision.objects.filter(pk=row.pk).update(measured=replace(one.measured, verifier=word).to_json())
    return word


# --- from cases -------------------------------------------------------------------------------------


def of_cases(cases: Sequence[Case], progress: Progress = lambda *_: None) -> list[Labelled]:
    """Every probe and every third wording, asked of all seeds in a throw-away scope. What earlier layers
    answer, or nothing is like, is left out: no threshold decides that."""
    with throw_away() as world:
        store(world, cases, progress)
        asked = list(_questions(cases))
        return [
            found
            for case, name, turns in watched("questions", asked, progress)
            if (found := _of_case(world, case, name, turns))
        ]


def _questions(cases: Sequence[Case]) -> Iterator[tuple[Case, str, Turns]]:
    for case in cases:
        yield case, case.id, case.probe
        if case.third:
            yield case, f"{case.id} reworded", case.third


def _of_case(world: World, case: Case, name: str, turns: Turns) -> Labelled | None:
    measured = decision.judged_by_thresholds(world.read(turns))
    if measured is None:
        return None
    right = case.expect == "hit" and measured.candidate == world.entries[case.id]
    return Labelled(name, measured, right)


# --- distributions ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Histogram:
    """How many right and wrong pairs score in each bin; the first bin begins at `first` and holds all below,
    each is `width` wide."""

    first: float
    width: float
    right: tuple[int, ...]
    wrong: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "first": self.first,
            "width": self.width,
            "right": list(self.right),
            "wrong": list(self.wrong),
        }


_FIRST, _BINS = 0.70, 60


def histogram(
    labelled: Sequence[Labelled], value: Callable[[Measured], float] = lambda one: one.score
) -> Histogram:
    """Of all labelled lookups, whether thresholds could have them served or not."""
    counts: dict[bool, list[int]] = {True: [0] * _BINS, False: [0] * _BINS}
    width = (1 - _FIRST) / _BINS
    for one in labelled:
        at = int((value(one.measured) - _FIRST) / width + 1e-9)
        counts[one.right][min(_BINS - 1, max(0, at))] += 1
    return Histogram(_FIRST, width, tuple(counts[True]), tuple(counts[False]))
