"""Do doubtful answers prove themselves, and do wrong ones go?

`python -m benchmarks.gray --json [--quick]`. Of 300 entries 60 are wrong for the questions that hit them:
they are about another subject, of a figure that is out of date, or of the other direction (`gray_facts`).
Each was paired with its question as a mistaken comparison would have: as proved, with one verdict for it.
Then the questions are asked five times, each by somebody new, over the real lookup; a hit leaves a check,
which is asked of a model that knows the right answer and words it anew each time; what is not served is
answered and compared as a near. In the end: which wrong ones are still served, which right ones were
rejected, and what waits in review.
"""

import argparse
import os
import time
import uuid
from collections import Counter, defaultdict
from typing import Any

from benchmarks import written_model
from benchmarks.database import migrated
from benchmarks.gray_facts import Fact, Told, facts
from benchmarks.report import report, show, target

ROUNDS = 5
SETTINGS = {
    "OBSERVE_PER_MINUTE": "1000000",
    "OBSERVE_SHARE": "1.0",
    "QUEUE_LIMIT": "100000",
    "LOG_LEVEL": "ERROR",
    "SYSTEM_PROMPT": "Answer in one sentence.",
}
GONE_GOAL, REJECTED_GOAL = 0.95, 0.05


def measure(chosen: list[Fact], told: Told, rounds: int) -> dict[str, Any]:
    """Models may be imported only where Django is set up."""
    from inference.models import Verdict

    started = time.perf_counter()
    pairings = {fact.id: _stored(fact) for fact in chosen}
    stored = [fact for fact in chosen if pairings[fact.id] is not None]
    told.switch()
    verdicts: Counter[str] = Counter()
    for _ in range(rounds):
        for fact in stored:
            seen = _asked(fact, pairings[fact.id])
            verdicts[f"{'wrong' if fact.wrong else 'right'}/{seen or 'none'}"] += 1
    return {
        "entries": len(stored),
        "not_stored": len(chosen) - len(stored),
        "rounds": rounds,
        "verdicts": {f"{kind}/{v}": verdicts[f"{kind}/{v}"] for kind in ("right", "wrong") for v in
                     (*map(str, Verdict), "none")},
        "seconds": round(time.perf_counter() - started, 1),
        **_became(stored, {fact.id: pairings[fact.id] for fact in stored}),
    }  # fmt: skip


def _generation(question: str) -> Any:
    from inference import service

    turns = [{"role": "user", "content": question}]
    return service.ask(uuid.uuid4(), turns, opens=True)


def _answered(question: str) -> Any:
    """Asked by somebody new, and answered as the two workers do."""
    from inference import pipeline, workers
    from inference.models import Status

    workers.announce("generate")
    generation = _generation(question)
    pipeline.answer(str(generation.pk))
    generation.refresh_from_db()
    if generation.status == Status.PENDING:
        pipeline.generate(str(generation.pk))
        generation.refresh_from_db()
    return generation


def _stored(fact: Fact) -> Any:
    """The pairing of what hits it with its entry, both stored over the real path; None where that keeps
    none."""
    from inference.cache import lifecycle, probe
    from inference.cache.standing import Witness
    from inference.models import Origin, State, Verdict

    born = _answered(fact.question)
    if born.entry_id is None:
        return None
    if fact.asked == fact.question:
        return born.wording
    asking = _generation(fact.asked)
    asking.scope = born.scope
    asking.save(update_fields=["scope"])
    read = probe.read(born.scope, asking.session_id, asking.question["turns"])
    wording = lifecycle.learn(read, asking, born.entry_id, State.ACTIVE, Origin.NEAR, True)
    if wording is not None:
        lifecycle.observe(asking.pk, Witness.NEAR, Verdict.AGREE, wording)
    return wording


def _asked(fact: Fact, pairing: Any) -> str:
    """Asked once more; the verdict that came of it on its pairing, "" for none."""
    from inference.cache import gray
    from inference.models import Check, Observation

    generation = _answered(fact.asked)
    check = Check.objects.filter(generation=generation).first()
    if check is not None:
        gray.observe(check.pk)
    about = Observation.objects.filter(generation=generation, wording=pairing)
    seen = about.values_list("verdict", flat=True)
    return seen.first() or ""


def _became(stored: list[Fact], pairings: dict[str, Any]) -> dict[str, Any]:
    from cacheadmin import review
    from inference.cache import decision, probe
    from inference.models import State, Wording

    waiting = set(review.waiting().values_list("pk", flat=True))
    by_way: dict[str, Counter[str]] = defaultdict(Counter)
    served_wrong: list[str] = []
    for fact in stored:
        pairing = Wording.objects.select_related("entry", "scope").get(pk=pairings[fact.id].pk)
        found = decision.decide(
            probe.read(pairing.scope, uuid.uuid4(), [{"role": "user", "content": fact.asked}])
        ).served
        served = found is not None and found.entry == pairing.entry_id
        rejected = State.REJECTED in (pairing.state, pairing.entry.state)
        way = f"{fact.lang}/{fact.wrong or 'right'}"
        fate = "rejected" if rejected else str(pairing.state)
        by_way[way].update([fate], n=1, served=served, in_review=pairing.pk in waiting)
        if served and fact.wrong:
            served_wrong.append(fact.id)
    return {
        "by_kind": {way: dict(counts) for way, counts in sorted(by_way.items())},
        "wrong_still_served": served_wrong,
    }


def _sums(found: dict[str, Any]) -> tuple[float, float]:
    """The share of wrong ones that are served no more, and of right ones that were rejected."""
    right = [counts for way, counts in found["by_kind"].items() if way.endswith("/right")]
    wrong = [counts for way, counts in found["by_kind"].items() if not way.endswith("/right")]
    gone = 1 - sum(counts.get("served", 0) for counts in wrong) / max(1, sum(c["n"] for c in wrong))
    return gone, sum(c.get("rejected", 0) for c in right) / max(1, sum(c["n"] for c in right))


def _targets(found: dict[str, Any]) -> list[dict[str, Any]]:
    gone, rejected = _sums(found)
    return [
        target(
            f"wrong pairings no longer served after {found['rounds']} observations at most",
            gone,
            f">= {GONE_GOAL}",
            gone >= GONE_GOAL,
        ),
        target("right ones rejected", rejected, f"<= {REJECTED_GOAL}", rejected <= REJECTED_GOAL),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="40 entries and three rounds, about a minute")
    options = parser.parse_args()
    chosen = facts(2, 1) if options.quick else facts()
    told = Told(chosen)
    with written_model.serving(told, pace=0) as settings:
        os.environ |= settings | SETTINGS
        with migrated("gray", own=True):
            found = measure(chosen, told, 3 if options.quick else ROUNDS)
    show(report("gray", found, _targets(found)), options.json, _lines)


def _lines(found: dict[str, Any]) -> list[str]:
    return [f"{name}: {value}" for name, value in found.items()]


if __name__ == "__main__":
    main()
