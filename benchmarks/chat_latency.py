"""How long a person waits, over a real websocket: for answers from the exact layer and for generated ones.

Every question is asked twice in one run, by different people: the first time the model answers, the second
time the cache does, so that each hit is compared with what the same answer took to compute. Then 50 people
ask cached questions at the same moment, again and again.
"""

import argparse
import asyncio
import sys
from contextlib import AsyncExitStack
from statistics import median
from typing import Any

from benchmarks.person import Answer, Person, person
from benchmarks.report import percentile, report, show, spread, target
from benchmarks.running import running

TOPICS = (
    *(
        "rain",
        "snow",
        "wind",
        "fog",
        "thunder",
        "a rainbow",
        "a volcano",
        "an earthquake",
        "a glacier",
        "a desert",
    ),
    *(
        "a river",
        "a lake",
        "an island",
        "a forest",
        "a coral reef",
        "the moon",
        "a comet",
        "a planet",
        "gravity",
        "friction",
    ),
    *("magnetism", "electricity", "sound", "light", "heat", "ice", "steam", "iron", "copper", "gold"),
    *("salt", "sugar", "bread", "cheese", "honey", "coffee", "tea", "rice", "wheat", "cotton"),
    *(
        "wool",
        "silk",
        "paper",
        "glass",
        "a bridge",
        "a lighthouse",
        "a windmill",
        "a compass",
        "a telescope",
        "a microscope",
    ),
)
FORMS = (
    "In one short sentence, what is {}?",
    "In one short sentence, why is {} useful or important?",
    "In one short sentence, what is special about {}?",
    "In one short sentence, how would you describe {} to a child?",
)
QUESTIONS = [form.format(topic) for form in FORMS for topic in TOPICS]
CROWD = 50
_EACH = 18  # a person may send 20 messages a minute


async def one_by_one(address: str, questions: list[str]) -> list[Answer]:
    """Ask them one after the other, with a new person whenever one has asked enough."""
    answers = []
    for start in range(0, len(questions), _EACH):
        async with person(address) as someone:
            for question in questions[start : start + _EACH]:
                answers.append(await someone.ask(question))
                _progress(len(answers), len(questions))
    return answers


async def all_at_once(address: str, questions: list[str], rounds: int) -> tuple[list[Answer], list[str]]:
    """A crowd asks in the same moment, `rounds` times; returns answers and errors."""
    answers: list[Answer] = []
    errors: list[str] = []
    async with AsyncExitStack() as sockets:
        crowd: list[Person] = [await sockets.enter_async_context(person(address)) for _ in range(CROWD)]
        for number in range(rounds):
            asked = [questions[(number * CROWD + at) % len(questions)] for at in range(CROWD)]
            results = await asyncio.gather(
                *(who.ask(what) for who, what in zip(crowd, asked, strict=True)), return_exceptions=True
            )
            for result in results:
                if isinstance(result, Answer):
                    answers.append(result)
                else:
                    errors.append(repr(result))
            await asyncio.sleep(0.5)
    return answers, errors


def _progress(done: int, of: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done}/{of}", end="" if done < of else "\n", file=sys.stderr, flush=True)


async def measure(address: str, questions: list[str], rounds: int) -> dict[str, Any]:
    await one_by_one(address, ["Say hello."])  # the first forward pass warms the engine up
    generated = await one_by_one(address, questions)
    hits = await one_by_one(address, questions)
    # An answer that reached the length limit is not stored; its question is no hit and is left out.
    pairs = [
        (slow, fast)
        for slow, fast in zip(generated, hits, strict=True)
        if slow.served_by == "model" and fast.served_by == "exact" and slow.text == fast.text
    ]
    cached = [what for what, hit in zip(questions, hits, strict=True) if hit.served_by == "exact"]
    crowd, errors = await all_at_once(address, cached, rounds)
    return {
        "questions": len(questions),
        "pairs": len(pairs),
        "generated": {
            "first_delta_ms": spread([slow.first_delta for slow, _ in pairs]),
            "done_ms": spread([slow.done for slow, _ in pairs]),
        },
        "exact": {
            "first_delta_ms": spread([fast.first_delta for _, fast in pairs]),
            "done_ms": spread([fast.done for _, fast in pairs]),
        },
        "times_sooner": {
            "median": round(median(slow.done / fast.done for slow, fast in pairs), 1),
            "p1": round(percentile([slow.done / fast.done for slow, fast in pairs], 0.01), 1),
        },
        "crowd": {
            "sockets": CROWD,
            "rounds": rounds,
            "errors": errors,
            "not_from_cache": sum(one.served_by != "exact" for one in crowd),
            "first_delta_ms": spread([one.first_delta for one in crowd]),
            "done_ms": spread([one.done for one in crowd]),
        },
    }


def targets(found: dict[str, Any]) -> list[dict[str, Any]]:
    first = found["exact"]["first_delta_ms"]["p50"]
    sooner = found["times_sooner"]["median"]
    crowd = found["crowd"]
    return [
        target("hit: send to first delta, p50 ms", first, "<= 25 ms", first <= 25),
        target("hit: done sooner than generated, median of pairs", sooner, ">= 20x", sooner >= 20),
        target("50 sockets at once: errors", len(crowd["errors"]), "0", not crowd["errors"]),
        target(
            "50 sockets at once: done, p99 ms",
            crowd["done_ms"]["p99"],
            "< 250 ms",
            crowd["done_ms"]["p99"] < 250,
        ),
    ]


def lines(found: dict[str, Any]) -> list[str]:
    rows = [("generated", found["generated"]), ("exact hit", found["exact"]), ("50 at once", found["crowd"])]
    return [
        f"{name:12}first delta p50 {of['first_delta_ms']['p50']} p99 {of['first_delta_ms']['p99']} ms, "
        f"done p50 {of['done_ms']['p50']} p99 {of['done_ms']['p99']} ms (n={of['done_ms']['n']})"
        for name, of in rows
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chat_latency", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="under a minute: 16 questions instead of 200")
    parser.add_argument("--url", help="measure a stack that runs already, instead of starting one")
    chosen = parser.parse_args()
    questions = QUESTIONS[:: len(QUESTIONS) // 16][:16] if chosen.quick else QUESTIONS
    rounds = 2 if chosen.quick else 8
    if chosen.url:
        found = asyncio.run(measure(chosen.url.rstrip("/"), questions, rounds))
    else:
        with running() as address:
            found = asyncio.run(measure(address, questions, rounds))
    show(report("chat_latency", found, targets(found), quick=chosen.quick), chosen.json, lines)


if __name__ == "__main__":
    main()
