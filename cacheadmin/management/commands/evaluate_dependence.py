import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cacheadmin.evaluating import cases_of, plain, show_progress
from inference.embedding import EmbedderUnavailable, embedder
from inference.evaluation.cases import Case
from inference.evaluation.dependence import Message, evaluate_cases, evaluate_messages, read


class Command(BaseCommand):
    help = (
        "Says how well questions that lean on their conversation are told from those that don't, and how "
        "well they are written out."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--cases", type=Path, required=True, help="JSONL: messages, or cache cases")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        rows = cases_of(options["cases"], read)
        current = embedder()
        if current is None:
            raise CommandError("Resolved questions are compared by their vectors, and EMBEDDER is none.")
        messages = [row for row in rows if isinstance(row, Message)]
        cases = [row for row in rows if isinstance(row, Case)]
        try:
            found = (
                evaluate_messages(messages, current, show_progress)
                if messages
                else evaluate_cases(cases, current, show_progress)
            )
        except EmbedderUnavailable as problem:
            raise CommandError(str(problem)) from problem
        self.stdout.write(json.dumps(found, indent=2) if options["json"] else "\n".join(_lines(found)))


def _lines(found: dict[str, Any]) -> list[str]:
    groups = found.get("by_lang", found.get("by_class", {}))
    rows = {**groups, "overall": found["overall"]}
    columns = list(found["overall"])
    lines = [f"{'':<20}" + "".join(f"{column:>18}" for column in columns)]
    for name, row in rows.items():
        lines.append(f"{name:<20}" + "".join(f"{plain(row.get(column)):>18}" for column in columns))
    if "milliseconds" in found:
        lines.append(f"{found['milliseconds']} ms a message")
    return lines
