import json
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from cacheadmin.evaluating import cases_of, plain
from inference.cache import probe
from inference.evaluation.signals import Report, evaluate, read
from inference.understanding.signals import detect


class Command(BaseCommand):
    help = "Says how well messages that take back something said before are told from those that don't."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--cases", type=Path, required=True, help="JSONL: id, lang, label, invalidates, history, text"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        cases = cases_of(options["cases"], read)
        # As the workers do.
        report = evaluate(cases, partial(detect, vectors=probe.vectors()))
        self.stdout.write(json.dumps(report, indent=2) if options["json"] else "\n".join(_lines(report)))


def _lines(report: Report) -> list[str]:
    rows = {**report["by_lang"], **report["by_label"], "overall": report["overall"]}
    columns = list(report["overall"])
    lines = [f"{'':<14}" + "".join(f"{column:>21}" for column in columns)]
    return lines + [
        f"{name:<14}" + "".join(f"{plain(value):>21}" for value in row.values()) for name, row in rows.items()
    ]
