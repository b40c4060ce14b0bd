"""A log of conversations run through the cache, in a scope that is thrown away: what would it have answered?

Every question is looked up by the live code. What is served is compared with the answer that the log has;
what is not counts as answered by the model with just that, and is stored. Nothing is generated, unless an
engine is given: then its answers take the place of the log's.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from django.utils import timezone

from inference.cache import decision, invalidation, learning, lifecycle, policy, probe, reuse
from inference.cache.decision import Decided
from inference.cache.probe import Probe
from inference.models import (
    Generation,
    Mode,
    Observation,
    Outcome,
    Policy,
    Session,
    Status,
    Wording,
)
from inference.understanding import corrections, signals
from inference.understanding.cacheability import Cacheability
from inference.understanding.language import language

from .cache import NO_ANSWER, Progress, World, throw_away, watched
from .conversations import Question, Talk

Engine = Callable[[Question], tuple[str, float]]
"""Answers a question; returns what it says and how many seconds that took."""

_SOURCE = "replay"


@dataclass(frozen=True)
class Asked:
    """One question of the log and what came of it. `verdict` is how the log's answer compares with the stored
    one that was served, or that was near; "" where there is nothing to compare."""

    question: Question
    language: str
    content_class: str
    outcome: str
    layer: str
    verdict: str
    lookup_ms: float
    seconds: float | None

    @property
    def served(self) -> bool:
        return self.outcome in decision.SERVED

    @property
    def has_equivalent(self) -> bool:
        """Was the same asked before, as far as can be told? Served, and nothing speaks against it; or near,
        and the answers agree."""
        return self.verdict == "agree" or (self.served and self.verdict != "disagree")


def replay(
    talks: Sequence[Talk],
    *,
    engine: Engine | None = None,
    live: Policy | None = None,
    trial: Policy | None = None,
    report: Callable[[Policy], object] = lambda _policy: None,
    progress: Progress = lambda *_: None,
) -> list[Asked]:
    """Every question of the conversations, in their order. `live` decides in the place of the live policies;
    `trial` is tried without effect, and `report` is called with it before all is thrown away."""
    with throw_away() as world:
        if live is not None:
            _copied(live, world, Mode.LIVE, 1)
        tried = _copied(trial, world, Mode.SHADOW, 2) if trial is not None else None
        asked = []
        for talk in watched("replay", talks, progress):
            asked += list(_talk(world, talk, engine))
        if tried is not None:
            report(tried)
        return asked


def _copied(row: Policy, world: World, mode: Mode, version: int) -> Policy:
    made = Policy.objects.create(
        scope=world.scope,
        content_class=row.content_class,
        version=version,
        mode=mode,
        high=row.high,
        low=row.low,
        near=row.near,
        consent=row.consent,
        likely=row.likely,
    )
    policy.forget()
    return made


def _talk(world: World, talk: Talk, engine: Engine | None) -> Iterator[Asked]:
    session = Session.objects.create(pk=uuid.uuid4(), topic=talk.turns[0]["content"])
    answers: dict[int, uuid.UUID] = {}
    for question in talk.questions():
        if engine is not None:
            text, seconds = engine(question)
            question = replace(question, answer=text, seconds=seconds)
        yield _ask(world, session, question, answers)


def _ask(world: World, session: Session, question: Question, answers: dict[int, uuid.UUID]) -> Asked:
    """Look it up, and do what is done live. `answers` are the generations so far, by turn."""
    generation = _generation(world, session, question)
    _take_back(generation, question, answers)
    answers[len(question.turns)] = generation.pk
    cacheability = reuse.judge(question.turns)
    started = time.perf_counter()
    read = probe.read(world.scope, session.pk, question.turns)
    decided = (
        decision.decide(read)
        if cacheability.stored
        else Decided(Outcome.BYPASS, "exact", cacheability.reason)
    )
    milliseconds = (time.perf_counter() - started) * 1000
    Generation.objects.filter(pk=generation.pk).update(exact_key=read.exact_key)
    generation.exact_key = read.exact_key
    if decided.served:
        verdict = _served(read, generation, question, decided, cacheability)
        decision.record(generation, decided, milliseconds)
    else:
        decision.record(generation, decided, milliseconds)
        verdict = _answered(read, generation, question, cacheability)
    return Asked(
        question=question,
        language=language(question.text) or "other",
        content_class=cacheability.content_class,
        outcome=decided.outcome,
        layer=decided.layer,
        verdict=verdict,
        lookup_ms=milliseconds,
        seconds=question.seconds,
    )


def _generation(world: World, session: Session, question: Question) -> Generation:
    session.refresh_from_db(fields=["epoch"])
    return Generation.objects.create(
        session=session,
        scope=world.scope,
        epoch=session.epoch,
        question={"turns": list(question.turns)},
        status=Status.COMPLETE,
        text=question.answer or NO_ANSWER,
        total_ms=1000 * (question.seconds or 0),
        finished_at=timezone.now(),
    )


def _take_back(generation: Generation, question: Question, answers: dict[int, uuid.UUID]) -> None:
    """As the pipeline heeds a correction: what was said so far is frozen."""
    past = question.turns[:-1]
    signal = signals.detect(past, question.text, vectors=probe.vectors())
    if signal.invalidates:
        taken = [answers[at] for at in corrections.subject_of(past) if at in answers]
        invalidation.corrected(generation, signal, taken, taken[-1] if taken else None)


def _served(
    read: Probe, generation: Generation, question: Question, decided: Decided, cacheability: Cacheability
) -> str:
    """Compare what was served with the log's answer, and note the verdict."""
    assert decided.found is not None
    found = decided.found
    Generation.objects.filter(pk=generation.pk).update(entry=found.entry, wording=found.wording)
    generation.wording_id, generation.entry_id = found.wording, found.entry
    if decided.layer != "exact":
        learning.note(read, generation, found, cacheability.shareable)
    wording = Wording.objects.select_related("entry").filter(pk=found.wording).first()
    if not question.answer or wording is None or wording.entry.answer == NO_ANSWER:
        return ""
    judged = learning.compare(read, wording, learning.answer_of(question.answer))
    Observation.objects.create(
        generation=generation, wording_id=generation.wording_id, verdict=judged.verdict, source=_SOURCE
    )
    return judged.verdict


def _answered(read: Probe, generation: Generation, question: Question, cacheability: Cacheability) -> str:
    """Store the log's answer, or learn from it; returns how it compared with what was near."""
    if not cacheability.stored:
        return ""
    if not question.answer:
        # Equal stand-ins prove nothing: it is only stored, so that it is found when it is asked again.
        lifecycle.admit(read, generation, cacheability, None)
        return ""
    wording = learning.keep(read, generation, cacheability)
    if wording is not None:
        Generation.objects.filter(pk=generation.pk).update(wording=wording, entry=wording.entry_id)
    said = Observation.objects.filter(generation=generation, source="near")
    return said.values_list("verdict", flat=True).first() or ""
