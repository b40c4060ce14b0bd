import argparse
import json
import math
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from cacheadmin.evaluating import show_progress
from cacheadmin.logs import counting, share, talks_of
from inference.evaluation import replaying, worth
from inference.evaluation.worth import Prices


class Command(BaseCommand):
    help = (
        "Is a cache worth it for this traffic? Says how many questions of a log had an equivalent earlier in "
        "it, by class and language, and, given prices, what answering those from the cache saves and what "
        "the cache costs. Nothing is generated; the log is stored in a throw-away scope. JSONL, one "
        'conversation a line: {"turns": [{"role", "content"}, ...]}; answers may be missing.'
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="JSONL, one conversation a line, oldest first")
        money = parser.add_argument_group("prices, all in one currency")
        money.add_argument("--price", type=_amount, help="of 1,000 tokens (of answers, with --prompt-price)")
        money.add_argument("--prompt-price", type=_amount, help="of 1,000 tokens of prompts")
        money.add_argument(
            "--cache-cost", type=_amount, default=0.0, help="of running the cache for the period; default: 0"
        )
        money.add_argument(
            "--questions", type=_amount, help="asked in the period; default: as many as are in the log"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        talks = talks_of(options["file"])
        asked = replaying.replay(talks, progress=show_progress)
        how, tokens = counting()
        found = {
            "conversations": len(talks),
            "tokens_counted_by": how,
            **worth.assess(asked, tokens, _prices(options)),
        }
        as_json = options["json"]
        self.stdout.write(
            json.dumps(found, indent=2, ensure_ascii=False) if as_json else "\n".join(_lines(found))
        )


def _amount(text: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no amount.") from error
    if not (math.isfinite(value) and value >= 0):
        raise argparse.ArgumentTypeError(f"{text} is not an amount from 0 on.")
    return value


def _prices(options: dict[str, Any]) -> Prices | None:
    price = options["price"]
    if price is None:
        return None
    prompt = price if options["prompt_price"] is None else options["prompt_price"]
    return Prices(prompt, price, options["cache_cost"], options["questions"])


_COLUMNS = ("questions", "cacheable", "equivalent", "served", "open")


def _lines(found: dict[str, Any]) -> list[str]:
    lines = [f"{'':<20}" + "".join(f"{name:>12}" for name in _COLUMNS) + "   had an equivalent"]
    rows = {**found["by_language_and_class"], "all": found}
    lines += [
        f"{name:<20}" + "".join(f"{row[one]:>12}" for one in _COLUMNS) + f"   {share(row['share'])}"
        for name, row in rows.items()
    ]
    lines += ["", f"Worth it? {found['advice']['verdict']}. {found['advice']['text']}"]
    return lines + _money(found["money"])


def _money(money: dict[str, Any] | None) -> list[str]:
    if money is None:
        return ["With --price it is told what that saves."]
    lines = [
        f"{money['questions']:.0f} questions cost {money['spent_without']:.2f} without a cache; "
        f"{money['saved']:.2f} of that is saved, the cache costs {money['cache_costs']:.2f}: "
        f"{'gains' if money['worth_it'] else 'loses'} {abs(money['gain']):.2f}."
    ]
    if money["cache_costs"] and money["break_even_questions"] is not None:
        lines.append(f"It pays from {money['break_even_questions']} questions on.")
    return lines
