import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cacheadmin.evaluating import cases_of, plain, show_progress
from inference.embedding import EmbedderUnavailable, embedder, warm_up
from inference.evaluation.cases import Case
from inference.evaluation.dependence import Message, evaluate_cases, evaluate_messages, read
from inference.evaluation.topics import after_others, followed_up, read_intents


class Command(BaseCommand):
    help = (
        "Says how well questions that lean on their conversation are told from those that don't, and how "
        "well they are written out."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--cases", type=Path, help="JSONL: messages, or cache cases")
        parser.add_argument(
            "--intents",
            type=Path,
            nargs="*",
            default=[],
            help="JSONL as in benchmarks/traffic: the odd lines, fitted to by nothing, one after the other",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["cases"] and not options["intents"]:
            raise CommandError("Name a file of messages or cases, or of intents.")
        rows = cases_of(options["cases"], read) if options["cases"] else []
        rows += [message for path in options["intents"] for message in one_after_the_other(path)]
        current = embedder()
        if current is None:
            raise CommandError("Resolved questions are compared by their vectors, and EMBEDDER is none.")
        warm_up()
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


def one_after_the_other(path: Path) -> list[Message]:
    intents = cases_of(path, read_intents)
    return [
        message
        for intent in intents[1::2]
        for message in (*after_others(intent, intents), *followed_up(intent))
    ]


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
