"""What a fresh answer teaches: whether one of the stored answers that were near would have done."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np
from django.db.models import Q
from django.db.models.functions import Now

from inference.embedding import embed
from inference.models import (
    ALIVE,
    Decision,
    Entry,
    Generation,
    Origin,
    Outcome,
    State,
    Verdict,
    Visibility,
    Wording,
)
from inference.understanding.cacheability import Cacheability, is_personal
from inference.understanding.comparison import overlap_of
from inference.understanding.normalise import normalise

from . import agreement, engine_judge, lifecycle
from .agreement import Agreement, Answer, Asked
from .lookup import Found
from .prints import Prints, compare_prints
from .probe import Probe
from .standing import Witness

_STATE = {Verdict.AGREE: State.ACTIVE, Verdict.UNCLEAR: State.SUSPECT, Verdict.DISAGREE: State.REJECTED}


@dataclass(frozen=True)
class _Near:
    """A pairing that was near, and how its answer compares with the fresh one."""

    wording: Wording
    agreement: Agreement


@dataclass(frozen=True)
class Word:
    """What a strong engine says of a pairing that was near, and of the answer that it has."""

    wording: UUID
    answer: str
    agreement: Agreement


def word_of_engine(probe: Probe, generation: Generation) -> Word | None:
    """Where the fresh answer leaves open whether the likest of those that were near is the same: what a
    strong engine says. For `keep`, and outside its transaction, since it takes a while."""
    compared = _compared(probe, near_of(generation), answer_of(generation.text))
    agreements = [one.agreement for one in compared]
    if not compared or agreement.best(agreements) is not None:
        return None
    likest = compared[agreement.likest(agreements)]
    stored = likest.wording.entry.answer
    answers = (stored, generation.text)
    settled = engine_judge.settle(likest.agreement, probe.turns, answers, generation.cache_salt)
    return Word(likest.wording.pk, stored, settled)


def keep(
    probe: Probe, generation: Generation, cacheability: Cacheability, word: Word | None = None
) -> Wording | None:
    """Store a complete, fresh answer: as a proof for an entry that was near, or as an entry of its own.
    Returns the proved wording, new or not; None when nothing was stored."""
    fresh = answer_of(generation.text)
    if (doubted := _doubted(probe)) is not None:
        state = _observe(probe, generation, doubted, compare(probe, doubted, fresh))
        if state is not None:
            return doubted if state == State.ACTIVE else None
    near = near_of(generation)
    proved = near and prove(probe, generation, fresh, near, cacheability.shareable, word)
    return proved or lifecycle.admit(probe, generation, cacheability, fresh.vector)


def _doubted(probe: Probe) -> Wording | None:
    """The pairing of this very question that is suspect, or whose entry is in doubt, and could come back."""
    mine = Wording.objects.filter(exact_key=probe.exact_key, scope=probe.scope)
    mine = mine.filter(Q(visibility=Visibility.SHARED) | Q(session=probe.session))
    doubted = Q(state=State.SUSPECT) | Q(state=State.ACTIVE, entry__disagreed__gt=0)
    alive = mine.filter(doubted, entry__state__in=ALIVE, entry__expires_at__gt=Now())
    return alive.select_related("entry").order_by("-created_at").first()


def _observe(probe: Probe, generation: Generation, doubted: Wording, found: Agreement) -> State | None:
    """Let a fresh answer count for a pairing that is not proved. Returns the state that this leaves it in,
    where the answer says the same and so need not be stored; None where it says something else, or leaves
    that open: then it takes its place."""
    same = normalise(doubted.entry.answer) == normalise(generation.text)
    if same and found.verdict == Verdict.AGREE and lifecycle.was_spoken_against(doubted):
        return State.SUSPECT  # the same words again don't clear a doubt
    lifecycle.observe(generation.pk, Witness.NEAR, found.verdict, doubted, reasons=found.reasons)
    doubted.refresh_from_db(fields=["state"])
    return State(doubted.state) if found.verdict == Verdict.AGREE else None


def answer_of(text: str) -> Answer:
    vectors = embed([text])
    return Answer(text, None if vectors is None else vectors[0])


def near_of(generation: Generation) -> list[UUID]:
    """The wordings that were near when this generation was looked up, and not served; likest first."""
    found = Decision.objects.filter(generation=generation, outcome=Outcome.NEAR).order_by("-id")
    return found.values_list("near", flat=True).first() or []


def prove(
    probe: Probe,
    generation: Generation,
    fresh: Answer,
    near: list[UUID],
    shared: bool,
    word: Word | None = None,
) -> Wording | None:
    """Compare the fresh answer with those of the wordings that were near. Returns the new wording of the one
    that it proves: then that entry answers this question from now on, and no other is needed. If it proves
    none, the one with the likest answer is noted as refuted or open: of that it is known best."""
    compared = [_spoken_of(one, word) for one in _compared(probe, near, fresh)]
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
    lifecycle.observe(generation.pk, Witness.NEAR, verdict, wording, reasons=chosen.agreement.reasons)
    wording.refresh_from_db(fields=["state"])
    return wording if wording.state == State.ACTIVE and best is not None else None


def _compared(probe: Probe, near: Sequence[UUID], fresh: Answer) -> list[_Near]:
    """Those that are still there, likest first, but for what this conversation asked before."""
    rows = {wording.pk: wording for wording in Wording.objects.filter(pk__in=near).select_related("entry")}
    found = [rows[pk] for pk in near if pk in rows and not was_asked_before(probe, rows[pk])]
    return [_Near(wording, compare(probe, wording, fresh)) for wording in found]


def _spoken_of(near: _Near, word: Word | None) -> _Near:
    """The same, as a strong engine sees it if it was asked about this answer."""
    if word is None or (word.wording, word.answer) != (near.wording.pk, near.wording.entry.answer):
        return near
    return replace(near, agreement=word.agreement)


# What was asked longer ago is seldom mistaken for what is asked now.
_BEFORE = 5


def was_asked_before(probe: Probe, wording: Wording) -> bool:
    """Is the wording nearer to something that this conversation asked before than to what it asks now? Then
    it is of that: the next question about one subject has an answer much like the last one's where the model
    is weak, and that proves nothing."""
    said = [turn["content"] for turn in probe.turns[:-1] if turn["role"] == "user"][-_BEFORE:]
    if not said:
        return False
    vectors = embed([text.casefold() for text in (wording.question, probe.question, probe.resolved, *said)])
    if vectors is None:
        return False
    likenesses = (vectors[1:] @ vectors[0]).tolist()
    return max(likenesses[2:]) > max(likenesses[:2])


def compare(probe: Probe, wording: Wording, fresh: Answer) -> Agreement:
    """What a fresh answer to this question says of the answer that the wording is paired with."""
    return agreement.judge(stored_answer(wording.entry), fresh, asked(probe, wording))


def stored_answer(entry: Entry) -> Answer:
    vector = entry.answer_vector
    return Answer(entry.answer, None if vector is None else np.asarray(vector, dtype=np.float32))


def asked(mine: Probe | Wording, other: Probe | Wording) -> Asked:
    """How two questions compare, for comparing their answers."""
    prints, others = _prints(mine), _prints(other)
    return Asked(
        compare_prints(prints, others),
        written_out=mine.dependent or other.dependent,
        same=mine.exact_key == other.exact_key,
        texts=(mine.resolved or mine.question, other.resolved or other.question),
        words=agreement.words_of(prints.meaning, others.meaning),
        near=overlap_of(prints.meaning, others.meaning).near,
    )


def _prints(one: Probe | Wording) -> Prints:
    return one.prints if isinstance(one, Probe) else Prints.from_json(one.fingerprint)


def note(probe: Probe, generation: Generation, found: Found, shared: bool) -> Wording | None:
    """Remember that this question was served this entry for its likeness: a suspect pairing of its own, on
    which the reader's verdict falls, and not on the wording that it was like. Returns it; None where nothing
    may be kept."""
    wording = lifecycle.learn(probe, generation, found.entry, State.SUSPECT, Origin.HIT, shared)
    if wording is not None:
        generation.wording = wording
        Generation.objects.filter(pk=generation.pk).update(wording=wording)
    return wording
