"""What a fresh answer teaches: whether one of the stored answers that were near would have done."""

from dataclasses import dataclass
from uuid import UUID

import numpy as np

from inference.embedding import embed
from inference.models import (
    Decision,
    Generation,
    Observation,
    Origin,
    Outcome,
    State,
    Verdict,
    Wording,
)
from inference.understanding.cacheability import Cacheability, is_personal

from . import agreement, lifecycle
from .agreement import Agreement, Answer
from .lookup import Found
from .prints import Prints, compare_prints
from .probe import Probe

_STATE = {Verdict.AGREE: State.ACTIVE, Verdict.UNCLEAR: State.SUSPECT, Verdict.DISAGREE: State.REJECTED}


@dataclass(frozen=True)
class _Near:
    """A pairing that was near, and how its answer compares with the fresh one."""

    wording: Wording
    agreement: Agreement


def keep(probe: Probe, generation: Generation, cacheability: Cacheability) -> Wording | None:
    """Store a complete, fresh answer: as a proof for an entry that was near, or as an entry of its own.
    Returns the proved wording, new or not; None when nothing was stored."""
    near = near_of(generation)
    fresh = answer_of(generation.text)
    proved = near and prove(probe, generation, fresh, near, cacheability.shareable)
    return proved or lifecycle.admit(probe, generation, cacheability, fresh.vector)


def answer_of(text: str) -> Answer:
    vectors = embed([text])
    return Answer(text, None if vectors is None else vectors[0])


def near_of(generation: Generation) -> list[UUID]:
    """The wordings that were near when this generation was looked up, and not served; likest first."""
    found = Decision.objects.filter(generation=generation, outcome=Outcome.NEAR).order_by("-id")
    return found.values_list("near", flat=True).first() or []


def prove(
    probe: Probe, generation: Generation, fresh: Answer, near: list[UUID], shared: bool
) -> Wording | None:
    """Compare the fresh answer with those of the wordings that were near. Returns the new wording of the one
    that it proves: then that entry answers this question from now on, and no other is needed. If it proves
    none, the one with the likest answer is noted as refuted or open: of that it is known best."""
    rows = {wording.pk: wording for wording in Wording.objects.filter(pk__in=near).select_related("entry")}
    compared = [_Near(rows[pk], _compare(probe, rows[pk], fresh)) for pk in near if pk in rows]
    if not compared:
        return None
    agreements = [one.agreement for one in compared]
    best = agreement.best(agreements)
    chosen = compared[agreement.likest(agreements) if best is None else best]
    verdict = chosen.agreement.verdict
    wording = lifecycle.learn(
        probe,
        generation,
        chosen.wording.entry_id,
        _STATE[verdict],
        Origin.NEAR,
        shared and not is_personal(generation.text),
    )
    if wording is None:
        return None
    Observation.objects.update_or_create(
        generation=generation, source="near", defaults={"verdict": verdict, "wording": wording}
    )
    return wording if wording.state == State.ACTIVE and best is not None else None


def _compare(probe: Probe, wording: Wording, fresh: Answer) -> Agreement:
    entry = wording.entry
    vector = entry.answer_vector
    stored = Answer(entry.answer, None if vector is None else np.asarray(vector, dtype=np.float32))
    asked = compare_prints(probe.prints, Prints.from_json(wording.fingerprint))
    return agreement.judge(stored, fresh, asked, probe.dependent or wording.dependent)


def note(probe: Probe, generation: Generation, found: Found, shared: bool) -> None:
    """Remember that this question was served this entry for its likeness: a suspect pairing of its own, on
    which the reader's verdict falls, and not on the wording that it was like."""
    wording = lifecycle.learn(probe, generation, found.entry, State.SUSPECT, Origin.HIT, shared)
    if wording is not None:
        generation.wording = wording
        Generation.objects.filter(pk=generation.pk).update(wording=wording)
