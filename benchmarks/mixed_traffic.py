"""What the cache saves on mixed traffic: 600 questions drawn by Zipf's law from 60 intents in six wordings
each, a fifth of them follow-ups, 15% asked once, in two languages, through the running stack over websockets.

Each served answer is held against the labels. What is saved is set against a perfect cache, which would serve
whatever was answered before. Two models answer, each with the cache off (a sample) and on: the bundled one,
and one that gives written answers (see `benchmarks.written_model`).
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks import written_model
from benchmarks.mixed_books import Asked, Books, read, saved, summary
from benchmarks.mixed_questions import Talk, draw, sample
from benchmarks.person import person
from benchmarks.report import report, show, spread, target
from benchmarks.running import running
from launch.embedded import Embedded

SETTINGS = {
    "SYSTEM_PROMPT": "Answer in one short sentence.",
    "MAX_TOKENS": "64",
    # A few sockets ask for as many people.
    "MAX_MESSAGES_PER_MINUTE": "100000",
    "LOG_LEVEL": "WARNING",
}
SOCKETS = 4
WARM_UP = ("Hello.", "Hello again.")
SAVED_GOAL, LATENCY_GOAL = 0.70, 0.60


# --- asking ---------------------------------------------------------------------------------------------


async def ask_all(address: str, talks: list[Talk]) -> list[Asked]:
    """All conversations, SOCKETS at a time, each in its order, the next as soon as one is over."""
    rest, asked = iter(talks), list[Asked]()
    count = sum(map(len, talks))

    async def keep_asking() -> None:
        async with person(address) as someone:
            for first in WARM_UP:
                await someone.ask(first)
            for talk in rest:
                conversation = None
                for question in talk:
                    answer = await someone.ask(question.text, conversation)
                    conversation = answer.conversation
                    asked.append(Asked(question, answer.generation, answer.done))
                    _progress(len(asked), count)

    await asyncio.gather(*(keep_asking() for _ in range(SOCKETS)))
    return asked


def _progress(done: int, of: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done}/{of}", end="" if done < of else "\n", file=sys.stderr, flush=True)


def answered(talks: list[Talk], **settings: str) -> Books:
    """The books of a new stack that has answered them."""
    with tempfile.TemporaryDirectory(prefix="reprise-benchmark-", ignore_cleanup_errors=True) as folder:
        var_dir = Path(folder) / "var"
        try:
            with running(VAR_DIR=str(var_dir), **SETTINGS | settings) as address:
                asked = asyncio.run(ask_all(address, talks))
                return read(Embedded(var_dir).environment()["DATABASE_URL"], asked)
        finally:
            Embedded(var_dir).discard()


# --- measuring ------------------------------------------------------------------------------------------


@contextmanager
def _model(name: str) -> Iterator[dict[str, str]]:
    """The settings by which this model answers."""
    if name == "bundled":
        yield {"ENGINE": "torch"}
    else:
        with written_model.serving() as settings:
            yield settings


def measure(name: str, talks: list[Talk], plain: int, rows: Path | None) -> dict[str, Any]:
    with _model(name) as settings:
        off = answered(sample(talks, plain), CACHE_ENABLED="0", **settings)
        on = answered(talks, CACHE_ENABLED="1", **settings)
    if rows:
        _write(rows, name, on)
    before, after = (mean(row.waited for row in books.rows) for books in (off, on))
    return {
        **summary(on),
        "wrong": len(on.wrong),
        "saved_of_perfect": saved(on),
        "waited_ms": {
            "off": {"mean": round(before, 1), **spread([row.waited for row in off.rows])},
            "on": {"mean": round(after, 1), **spread([row.waited for row in on.rows])},
            "served": spread([row.waited for row in on.rows if row.served] or [0.0]),
        },
        "latency_saved": round(1 - after / before, 4),
    }


def _write(path: Path, name: str, books: Books) -> None:
    """Every question with what the books say of it, as lines of JSON."""
    with path.open("a", encoding="utf-8") as file:
        for row in books.rows:
            known = {"model": name, "repeated": row.repeated, "waited": row.waited, "books": dict(row.books)}
            print(json.dumps(vars(row.question) | known, ensure_ascii=False, default=str), file=file)


def targets(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for name, of in found["models"].items() for one in _targets(name, of)]


def _targets(name: str, of: dict[str, Any]) -> list[dict[str, Any]]:
    share, latency = of["saved_of_perfect"], of["latency_saved"]
    curve = share["curve_tokens"]
    half = len(curve) // 2
    early, late = mean(curve[:half]), mean(curve[half:])
    return [
        target(f"{name}: wrong answers served", of["wrong"], "0", of["wrong"] == 0),
        target(
            f"{name}: tokens saved, of a perfect cache",
            share["tokens"],
            ">= 0.70",
            share["tokens"] >= SAVED_GOAL,
        ),
        target(
            f"{name}: seconds saved, of a perfect cache",
            share["seconds"],
            ">= 0.70",
            share["seconds"] >= SAVED_GOAL,
        ),
        target(f"{name}: that share, second half less first", late - early, "> 0", late > early),
        target(f"{name}: mean latency, less than off", latency, ">= 0.60", latency >= LATENCY_GOAL),
    ]


def lines(found: dict[str, Any]) -> list[str]:
    rows = [f"{found['questions']} questions, seed {found['seed']}"]
    for name, of in found["models"].items():
        share, waited = of["saved_of_perfect"], of["waited_ms"]
        rows += [
            f"{name}: {of['served_by']}; {of['repeated']} repeated, {of['wrong']} wrong",
            f"  saved of a perfect cache: tokens {share['tokens']:.0%}, seconds {share['seconds']:.0%}; "
            f"tokens by stretch {', '.join(f'{one:.0%}' for one in share['curve_tokens'])}",
            f"  mean wait {waited['off']['mean']} ms off, {waited['on']['mean']} ms on",
            *(f"  {count:4} {why}" for why, count in of["computed_again_because"].items()),
        ]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixed_traffic", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="about a minute: 60 questions, written answers")
    parser.add_argument("--questions", type=int, default=600)
    parser.add_argument("--plain", type=int, default=90, help="how many of them with the cache off too")
    parser.add_argument("--model", choices=["bundled", "written"], help="only this one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=Path, help="append what became of each question to this file")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.questions, chosen.plain, chosen.model = 60, 12, chosen.model or "written"
    talks = draw(chosen.questions, chosen.seed)
    names = [chosen.model] if chosen.model else ["bundled", "written"]
    found = {
        "questions": sum(map(len, talks)),
        "seed": chosen.seed,
        "models": {name: measure(name, talks, chosen.plain, chosen.rows) for name in names},
    }
    show(report("mixed_traffic", found, targets(found), quick=chosen.quick), chosen.json, lines)


if __name__ == "__main__":
    main()
