"""Conversations in which somebody takes something back, against a cache that other sessions warmed on the
branch that was taken back: is anything from that branch still served?

`python -m benchmarks.correction_replay --json [--quick]`. `correction_scripts.jsonl` holds 60 conversations,
30 for each language (plan switches, changed conditions, rejections, late references, undo), and 60 controls
in which nothing is taken back. For each script two or three sessions first go the other way: the same
beginning, and then the same follow-up questions and some in other words, without the correction. One more of
those measures how often the follow-ups come from the cache there: the baseline. Then the script itself is
replayed by somebody else: an answer after the correction is stale if it is served from an entry that was
there before the correction. Everything is asked over the websocket of a stack of its own.
"""

import argparse
import asyncio
import json
import re
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.person import Answer, person
from benchmarks.report import report, show, target
from benchmarks.running import running

SCRIPTS = Path(__file__).with_name("correction_scripts.jsonl")
# Answers that end by themselves are kept; the model needs few words for these.
SETTINGS = {
    "SYSTEM_PROMPT": "Answer in one short sentence of at most ten words.",
    "MAX_TOKENS": "48",
    "MAX_MESSAGES_PER_MINUTE": "1000",
    "QUEUE_LIMIT": "64",
    "LOG_LEVEL": "WARNING",
}
AT_ONCE = 6
CACHED = ("exact", "fuzzy", "semantic", "gray")
STALE_GOAL, NEEDLESS_GOAL = 0, 2
T = TypeVar("T")


@dataclass
class Replayed:
    """One script, after it was played: the answers to its correction and to what followed, and how many of
    those were `stale`."""

    kind: str
    lang: str
    understood: bool
    served_before: int
    follow_ups: int
    cached_after: int
    stale: list[str] = field(default_factory=list)
    restored: bool | None = None


async def play(address: str, turns: Sequence[str]) -> list[Answer]:
    """One conversation, by somebody new."""
    async with person(address) as someone:
        return await someone.converse(turns)


async def replay(address: str, script: dict[str, Any], warmed: set[str]) -> Replayed:
    """The script itself, by somebody new. `warmed`: the entries of the sessions that went the other way."""
    async with person(address) as someone:
        before = await someone.converse(script["before"])
        there = warmed | {answer.entry for answer in before if answer.entry}
        correction = await someone.ask(script["correction"], before[-1].conversation)
        undone = script["kind"] == "undo"
        if undone:
            await someone.undo(correction.conversation)
            again = await play(address, script["before"])
        after = await someone.converse(script["after"], correction.conversation)
    # Between a correction and a late reference to it lie questions about something else.
    about = [after[at] for at in script.get("late", range(len(after)))]
    answers = about if undone else [correction, *about]
    cached = [answer for answer in answers if answer.served_by in CACHED]
    stale = [] if undone else [answer for answer in cached if answer.entry in there]
    return Replayed(
        script["kind"],
        script["lang"],
        correction.signal is not None,
        sum(answer.served_by in CACHED for answer in before),
        len(answers),
        len(cached),
        [f"{answer.asked} → {answer.text}" for answer in stale],
        again[-1].served_by in CACHED if undone and before[-1].served_by in CACHED else None,
    )


async def measure(address: str, scripts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    changing = [script for script in scripts if script["kind"] != "control"]
    controls = [script for script in scripts if script["kind"] == "control"]
    warmed: dict[str, set[str]] = defaultdict(set)

    async def warm(script: dict[str, Any]) -> list[list[Answer]]:
        played = [await play(address, turns) for turns in script["others"]]
        warmed[script["id"]] |= {one.entry for answers in played for one in answers if one.entry}
        return played

    first = await _side_by_side([lambda script=script: warm(script) for script in changing])
    again = await _side_by_side(
        [lambda script=script: play(address, script["others"][-1]) for script in changing]
    )
    everything = set().union(*warmed.values())
    done = await _side_by_side(
        [lambda script=script: replay(address, script, everything) for script in changing]
    )
    asides = await _side_by_side(
        [lambda script=script: play(address, script["turns"]) for script in controls]
    )
    follow_ups = [
        answer.served_by in CACHED
        for script, answers in zip(changing, again, strict=True)
        for answer in answers[len(script["before"]) :]
    ]
    stored = [bool(answer.entry) for played in first for answers in played for answer in answers]
    needless = [
        answer.asked
        for answers in asides
        if any(one.signal for one in answers)
        for answer in answers
        if answer.signal
    ]
    return {
        "warming": {"answers": len(stored), "stored": sum(stored)},
        "without_a_correction": _share(follow_ups),
        "scripts": len(done),
        "understood": sum(one.understood for one in done),
        "not_understood": [
            script["correction"] for script, one in zip(changing, done, strict=True) if not one.understood
        ],
        "corrected_turns_from_the_cache": sum(one.served_before for one in done),
        "by_kind": _by_kind(done),
        "stale": [line for one in done for line in one.stale],
        "restored_by_undo": _share([one.restored for one in done if one.restored is not None]),
        "controls": len(asides),
        "needlessly_invalidated": sum(any(one.signal for one in answers) for answers in asides),
        "needless": needless,
    }


def _by_kind(done: Iterable[Replayed]) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for one in done:
        found[f"{one.lang}/{one.kind}"].update(
            scripts=1, answers=one.follow_ups, cached=one.cached_after, stale=len(one.stale)
        )
    return {kind: dict(counts) for kind, counts in sorted(found.items())}


def _share(hits: Sequence[bool]) -> dict[str, Any]:
    return {"n": len(hits), "cached": sum(hits), "share": round(sum(hits) / len(hits), 3) if hits else None}


async def _side_by_side(acts: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    room = asyncio.Semaphore(AT_ONCE)

    async def one(act: Callable[[], Awaitable[T]]) -> T:
        async with room:
            return await act()

    return list(await asyncio.gather(*(one(act) for act in acts)))


def _targets(found: dict[str, Any]) -> list[dict[str, Any]]:
    stale, needless = len(found["stale"]), found["needlessly_invalidated"]
    return [
        target("stale answers after a correction", stale, f"= {STALE_GOAL}", stale <= STALE_GOAL),
        target(
            f"needless invalidations in {found['controls']} conversations without a correction",
            needless,
            f"<= {NEEDLESS_GOAL}",
            needless <= NEEDLESS_GOAL,
        ),
    ]


def _quick(scripts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first of each kind in each language."""
    kept: dict[str, dict[str, Any]] = {}
    for script in scripts:
        kept.setdefault(re.sub(r"-\d+$", "", script["id"]), script)
    return list(kept.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="one script of each kind, under a minute")
    options = parser.parse_args()
    scripts = [json.loads(line) for line in SCRIPTS.read_text(encoding="utf-8").splitlines()]
    with running(**SETTINGS) as address:
        found = asyncio.run(measure(address, _quick(scripts) if options.quick else scripts))
    show(report("correction_replay", found, _targets(found)), options.json, _lines)


def _lines(found: dict[str, Any]) -> list[str]:
    return [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in found.items()]


if __name__ == "__main__":
    main()
