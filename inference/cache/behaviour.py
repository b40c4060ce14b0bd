"""What people do after an answer, read as a verdict on it. What they say of it comes by `invalidation` and by
`service.feedback`; what each weighs stands in `standing`.

A message that takes nothing back and asks for nothing anew lets the answer before it stand; one that asks the
same in other words says that the answer to that was none.
"""

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import numpy as np
from django.utils import timezone

from inference.embedding import embed
from inference.models import DETECTED, Generation, Invalidation, State, Status, Verdict
from inference.understanding.fingerprint import compare, fingerprint
from inference.understanding.language import language
from inference.understanding.normalise import normalise

from . import lifecycle
from .probe import Probe
from .standing import Witness

# Whoever edits within a minute of the answer has read it, and not what they wanted.
_AT_ONCE = timedelta(seconds=60)
# So many turns back a repeat is one.
_TURNS_BACK = 2
# From which likeness on two questions that don't differ ask the same, by language: Chinese texts lie closer
# together. It is a hint, and no hit hangs on it.
_REPEATED = {"zh": 0.95}
_REPEATED_ELSE = 0.93
# From so many agreeing verdicts on, one against it no longer puts it in doubt: silence need not be noted.
_WELL_PROVED = 8


def was_at_once(generation: UUID) -> bool:
    """Did this answer end only just now?"""
    ended = Generation.objects.filter(pk=generation).values_list("finished_at", flat=True).first()
    return ended is not None and timezone.now() - ended < _AT_ONCE


def hear(probe: Probe, generation: Generation) -> None:
    """Let what the message of `generation` is, after those before it, count for the answers it follows."""
    before = list(_before(generation))
    if not before or generation.question.get("again"):
        return
    if Invalidation.objects.filter(generation=generation, cause__in=DETECTED).exists():
        return
    repeated = next((answer for asked, answer in before if _repeats(probe, asked)), None)
    if repeated is not None:
        _note(repeated, Witness.REPEAT, Verdict.DISAGREE)
    elif normalise(before[0][0]) != normalise(probe.question):
        _note(before[0][1], Witness.CONTINUED, Verdict.AGREE)


def _before(generation: Generation) -> Iterator[tuple[str, UUID]]:
    """The last questions of this conversation and the answers to them, newest first."""
    turns, ids = generation.question["turns"], generation.question.get("generations") or []
    for at in range(len(turns) - 2, max(0, len(turns) - 2 - 2 * _TURNS_BACK), -2):
        if at < len(ids) and ids[at]:
            yield turns[at - 1]["content"], UUID(ids[at])


def _repeats(probe: Probe, asked: str) -> bool:
    """Is this the same question in other words? The very same words are no more than a second click."""
    if normalise(asked) == normalise(probe.question):
        return False
    compared = compare(fingerprint(probe.resolved), fingerprint(asked))
    if compared.verdict == "conflict":
        return False
    vectors = embed([probe.resolved.casefold(), asked.casefold()])
    if vectors is None:
        return compared.verdict == "agree"
    needed = _REPEATED.get(language(asked), _REPEATED_ELSE)
    return float(np.dot(vectors[0], vectors[1])) >= needed


def _note(answer: UUID, witness: Witness, verdict: Verdict) -> None:
    row = (
        Generation.objects.filter(pk=answer, status=Status.COMPLETE)
        .select_related("wording__entry")
        .defer("question", "output_token_ids", "wording__question_vector", "wording__context_vector")
        .first()
    )
    if row is None or row.wording is None:
        return
    pairing, entry = row.wording, row.wording.entry
    proved = (pairing.state, entry.state) == (State.ACTIVE, State.ACTIVE)
    if verdict == Verdict.AGREE and proved and min(pairing.agreed, entry.agreed) >= _WELL_PROVED:
        return
    lifecycle.observe(answer, witness, verdict, pairing)
