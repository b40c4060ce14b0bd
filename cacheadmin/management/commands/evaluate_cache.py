import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from cacheadmin.evaluating import cases_of, plain, show_progress
from inference import embedding
from inference.evaluation.ablation import ablate
from inference.evaluation.cache import evaluate
from inference.evaluation.cases import read


class Command(BaseCommand):
    help = (
        "Stores the seeds of a case file in a throw-away scope, looks every probe up with the live code and "
        "the live policy, and says how often that was right."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--cases", type=Path, required=True, help="JSONL, one case a line")
        parser.add_argument(
            "--warm", action="store_true", help="learn from the cases' fresh answers, ask again"
        )
        parser.add_argument(
            "--ablate",
            action="store_true",
            help="say what comes of parts of the decision, one more each time",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        cases = cases_of(options["cases"], read)
        embedding.warm_up()
        if options["ablate"]:
            found = blocks = ablate(cases, show_progress)
        else:
            found = evaluate(cases, warm=options["warm"], progress=show_progress)
            blocks = {"cold": found} | {name: found[name] for name in ("reworded", "warm") if name in found}
        shown = (
            json.dumps(found, indent=2)
            if options["json"]
            else "\n\n".join(map(_block, blocks, blocks.values()))
        )
        self.stdout.write(shown)


_COLUMNS = ("n", "right_hits", "wrong_hits", "gray", "near_right", "misses", "right_rejects")
_SHARES = ("precision", "recall", "reachable", "false_hit_rate")


def _block(name: str, found: dict[str, Any]) -> str:
    head = f"{name:<24}" + "".join(f"{column:>15}" for column in (*_COLUMNS, *_SHARES))
    rows = {**found["by_class"], "overall": found["overall"]}
    latency = found["latency_ms"]
    return "\n".join(
        [
            head,
            *(f"{title:<24}" + _row(row) for title, row in rows.items()),
            f"latency: p50 {latency['p50']} ms, p99 {latency['p99']} ms",
        ]
    )


def _row(row: dict[str, Any]) -> str:
    counts = "".join(f"{row[column]:>15}" for column in _COLUMNS)
    return counts + "".join(f"{plain(row[share]):>15}" for share in _SHARES)
