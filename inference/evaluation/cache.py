"""How the cache decides on a file of cases: live code and live policy, in a scope that is thrown away."""

import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
from django.db import connection
from django.utils import timezone

from inference import scopes
from inference.cache import decision, learning, lifecycle, probe
from inference.cache.agreement import Answer
from inference.cache.decision import Decided
from inference.cache.probe import Probe
from inference.models import Generation, Outcome, Scope, Session, Status
from inference.understanding.cacheability import Cacheability, classify
from inference.understanding.turns import Turns

from .cases import Case

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""

Decide = Callable[[Probe], Decided]
Item = TypeVar("Item")

# The app of scopes that are thrown away.
MEASURING = "evaluation"
# Stands for the answer of a case that has none; it is in no language.
NO_ANSWER = "—"


@dataclass
class Figures:
    """A gray hit is a hit. `near_right`: not served, but the case's own seed was what would be proved.
    Shares are None where there is nothing to take a share of."""

    n: int = 0
    right_hits: int = 0
    wrong_hits: int = 0
    gray: int = 0
    near_right: int = 0
    misses: int = 0
    right_rejects: int = 0
    precision: float | None = None
    recall: float | None = None
    reachable: float | None = None
    false_hit_rate: float | None = None

    def share(self, hits: int, rejects: int, false_hits: int) -> "Figures":
        """Fill in the shares, given how many cases expect a hit or a reject, and how many of these hit."""
        self.precision = _share(self.right_hits, self.right_hits + self.wrong_hits)
        self.recall = _share(self.right_hits, hits)
        self.reachable = _share(self.right_hits + self.near_right, hits)
        self.false_hit_rate = _share(false_hits, rejects)
        return self


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


@dataclass(frozen=True)
class Asked:
    """One lookup: what was decided, which entries would have been right, and how long it took."""

    case: Case
    decided: Decided
    right: frozenset[uuid.UUID]
    milliseconds: float


@dataclass
class World:
    """The throw-away scope. `entries` is the entry of each case's seed, `learned` of each case's probe."""

    scope: Scope
    entries: dict[str, uuid.UUID] = field(default_factory=dict)
    learned: dict[str, uuid.UUID] = field(default_factory=dict)

    def read(self, turns: Turns) -> Probe:
        """As a new conversation asks it."""
        return probe.read(self.scope, uuid.uuid4(), turns)


def evaluate(
    cases: Sequence[Case], *, warm: bool = False, progress: Progress = lambda *_: None
) -> dict[str, Any]:
    """The figures of design section 7, as one JSON-ready object. Whatever happens, the scope is deleted.

    `warm` adds two blocks: "warm", and "reworded", what the third wordings get before anything was learned. A
    case's own probe is most often nearly its seed's words where it expects a reject, and in far other words
    where it expects a hit; its third wording is in other words either way."""
    with throw_away() as world:
        store(world, cases, progress)
        asked = [_ask(world, case, case.probe) for case in watched("probes", cases, progress)]
        report = _report(asked)
        if warm:
            reworded = [(case, case.third) for case in cases if case.third]
            thirds = [_ask(world, *one) for one in watched("reworded", reworded, progress)]
            report["reworded"] = _report(thirds)
            for one in watched("answers", asked, progress):
                _answer(world, one)
            wordings = [(case, case.probe) for case in cases]
            wordings += [(case, case.third) for case in cases if case.third and case.expect == "hit"]
            again = [_ask(world, *one) for one in watched("again", wordings, progress)]
            report["warm"] = _report(again)
        return report


def evaluate_by(
    ways: Mapping[str, Decide], cases: Sequence[Case], progress: Progress = lambda *_: None
) -> dict[str, Any]:
    """The figures of every way of deciding, on the same stored seeds."""
    with throw_away() as world:
        store(world, cases, progress)
        return {
            name: _report([_ask(world, case, case.probe, way) for case in watched(name, cases, progress)])
            for name, way in ways.items()
        }


def watched(what: str, items: Sequence[Item], progress: Progress) -> Iterator[Item]:
    """The items, one after another, while `progress` is told how far it is."""
    for at, item in enumerate(items):
        progress(what, at, len(items))
        yield item
    progress(what, len(items), len(items))


# --- the throw-away scope -----------------------------------------------------------------------------


@contextmanager
def throw_away() -> Iterator[World]:
    """A scope of its own for as long as the block lasts."""
    _sweep()
    scope = scopes.for_measuring(MEASURING)
    try:
        yield World(scope)
    finally:
        if not connection.in_atomic_block:
            connection.close()  # an interrupted statement may have left it unusable
        _delete(scope)


def _sweep() -> None:
    """Delete what a killed run left behind."""
    for scope in Scope.objects.filter(app=MEASURING, created_at__lt=timezone.now() - timedelta(hours=12)):
        _delete(scope)


def _delete(scope: Scope) -> None:
    sessions = set(scope.generations.values_list("session", flat=True))
    sessions |= set(scope.entries.values_list("session", flat=True))
    Session.objects.filter(pk__in=sessions).delete()
    scope.delete()


def store(world: World, cases: Sequence[Case], progress: Progress) -> None:
    """Store every seed as a shared, active entry; equal questions in equal contexts are one."""
    known: dict[str, uuid.UUID] = {}
    session = Session.objects.create(pk=uuid.uuid4())
    for case in watched("seeds", cases, progress):
        read = probe.read(world.scope, session.pk, case.seed[:-1])
        if read.exact_key not in known:
            # A stand-in is like nothing, so that nothing follows from how like it a question is.
            answer = learning.answer_of(case.answer) if case.answer else Answer(NO_ANSWER, None)
            content_class = classify(case.seed[:-1]).content_class
            planted = lifecycle.plant(read, session, answer.text, content_class, answer.vector)
            known[read.exact_key] = planted.entry_id
        world.entries[case.id] = known[read.exact_key]


# --- asking ---------------------------------------------------------------------------------------------


def _ask(world: World, case: Case, turns: Turns, decide: Decide = decision.decide) -> Asked:
    started = time.perf_counter()
    decided = decide(world.read(turns))
    milliseconds = (time.perf_counter() - started) * 1000
    learned = world.learned.get(case.id)
    right = {learned} if learned else set()
    if case.expect == "hit":
        right.add(world.entries[case.id])
    return Asked(case, decided, frozenset(right), milliseconds)


_KEPT = Cacheability("fact", True, True, timedelta(hours=24), timedelta(days=7), "a case")


def _answer(world: World, asked: Asked) -> None:
    """What happens live when the fresh answer to a question is there: it is observed and kept."""
    if asked.decided.served or not asked.case.fresh:
        return
    session = Session.objects.create(pk=uuid.uuid4())
    read = probe.read(world.scope, session.pk, asked.case.probe)
    generation = Generation.objects.create(
        session=session,
        scope=world.scope,
        question={"turns": list(asked.case.probe)},
        exact_key=read.exact_key,
        status=Status.COMPLETE,
        text=asked.case.fresh,
        total_ms=0,
    )
    decision.record(generation, asked.decided, asked.milliseconds)
    wording = learning.keep(read, generation, _KEPT)
    if wording is not None and wording.entry_id not in world.entries.values():
        world.learned[asked.case.id] = wording.entry_id


# --- counting ---------------------------------------------------------------------------------------------


def _report(asked: Sequence[Asked]) -> dict[str, Any]:
    groups: dict[str, list[Asked]] = defaultdict(list)
    for one in asked:
        groups[f"{one.case.lang}/{one.case.kind}"].append(one)
    times = [one.milliseconds for one in asked] or [0.0]
    return {
        "overall": asdict(figures(asked)),
        "by_class": {name: asdict(figures(groups[name])) for name in sorted(groups)},
        "latency_ms": {
            "p50": round(float(np.percentile(times, 50)), 2),
            "p99": round(float(np.percentile(times, 99)), 2),
        },
    }


def figures(asked: Sequence[Asked]) -> Figures:
    """Count the outcomes of these lookups."""
    counted, hits, false_hits = Figures(n=len(asked)), 0, 0
    for one in asked:
        expects_hit = one.case.expect == "hit"
        hits += expects_hit
        served = one.decided.served
        if served:
            right = served.entry in one.right
            counted.right_hits += right and expects_hit
            counted.right_rejects += right and not expects_hit  # its own fresh answer, not the seed's
            counted.wrong_hits += not right
            false_hits += not right and not expects_hit
            counted.gray += one.decided.outcome == Outcome.GRAY
        elif not expects_hit:
            counted.right_rejects += 1
        elif one.right & {near.entry for near in one.decided.near}:
            counted.near_right += 1
        else:
            counted.misses += 1
    return counted.share(hits, len(asked) - hits, false_hits)
