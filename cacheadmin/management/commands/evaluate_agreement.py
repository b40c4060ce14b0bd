import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from cacheadmin.evaluating import cases_of, plain, show_progress
from inference import embedding
from inference.evaluation.agreement import evaluate, read


class Command(BaseCommand):
    help = "Judges labelled pairs of answers with the live comparison, and says how often that was right."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--cases", type=Path, required=True, help="JSONL, one pair a line")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        cases = cases_of(options["cases"], read)
        embedding.warm_up()
        found = evaluate(cases, show_progress)
        if options["json"]:
            self.stdout.write(json.dumps(found, indent=2))
            return
        rows = {**found["by_part"], "overall": found["overall"]}
        self.stdout.write(_table(rows) + "\n\n" + _table(found["by_kind"]))
        self.stdout.write("called agree, and wrong: " + (", ".join(found["wrong"]) or "none"))


def _table(rows: dict[str, dict[str, Any]]) -> str:
    columns = list(next(iter(rows.values())))
    head = f"{'':<28}" + "".join(f"{column:>20}" for column in columns)
    lines = [
        f"{name:<28}" + "".join(f"{plain(row[column]):>20}" for column in columns)
        for name, row in rows.items()
    ]
    return "\n".join([head, *lines])
