import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from inference.embedding import EmbedderUnavailable, embedder
from inference.evaluation.cases import BadCase, Case
from inference.evaluation.dependence import Message, evaluate_cases, evaluate_messages, read


class Command(BaseCommand):
    help = (
        "Says how well questions that lean on their conversation are told from those that don't, and how "
        "well "
        "they are written out."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--cases", type=Path, required=True, help="JSONL: messages, or cache cases")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            rows = read(options["cases"])
        except (OSError, BadCase) as problem:
            raise CommandError(str(problem)) from problem
        if not rows:
            raise CommandError(f"{options['cases']} has no cases.")
        current = embedder()
        if current is None:
            raise CommandError("Resolved questions are compared by their vectors, and EMBEDDER is none.")
        messages = [row for row in rows if isinstance(row, Message)]
        cases = [row for row in rows if isinstance(row, Case)]
        try:
            found = (
                evaluate_messages(messages, current, _progress)
                if messages
                else evaluate_cases(cases, current, _progress)
            )
        except EmbedderUnavailable as problem:
            raise CommandError(str(problem)) from problem
        self.stdout.write(json.dumps(found, indent=2) if options["json"] else "\n".join(_lines(found)))


def _progress(what: str, done: int, total: int) -> None:
    bar = "█" * (30 * done // max(1, total))
    sys.stderr.write(f"\r{what:>10} {bar:<30} {done}/{total}" + ("\n" if done == total else ""))
    sys.stderr.flush()


def _lines(found: dict[str, Any]) -> list[str]:
    groups = found.get("by_lang", found.get("by_class", {}))
    rows = {**groups, "overall": found["overall"]}
    columns = list(found["overall"])
    lines = [f"{'':<20}" + "".join(f"{column:>18}" for column in columns)]
    for name, row in rows.items():
        lines.append(f"{name:<20}" + "".join(f"{_plain(row.get(column)):>18}" for column in columns))
    if "milliseconds" in found:
        lines.append(f"{found['milliseconds']} ms a message")
    return lines


def _plain(value: Any) -> str:
    return "–" if value is None else format(value, ".3f") if isinstance(value, float) else str(value)
