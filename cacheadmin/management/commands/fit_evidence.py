import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cacheadmin.evaluating import cases_of
from inference.cache import evidence
from inference.evaluation.cases import read
from inference.evaluation.fit_evidence import NothingToAsk, crossed, fitted, rows_of


class Command(BaseCommand):
    help = (
        "Fits what the cache makes of all evidence for a question in other words, to case files with `fresh` "
        "and `third`, and says what each half of the cases gets from the weights of the other half."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", type=Path, nargs="+", help="JSONL, one case a line")
        parser.add_argument("--write", action="store_true", help="over the weights in use")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            rows = [row for path in options["files"] for row in rows_of(cases_of(path, read))]
        except NothingToAsk as problem:
            raise CommandError(str(problem)) from problem
        weights = {}
        for lang in sorted({row.lang for row in rows}):
            ours = [row for row in rows if row.lang == lang]
            self.stdout.write(json.dumps({lang: crossed(ours)}))
            weights[lang] = fitted(ours)
        if options["write"]:
            evidence.WEIGHTS.write_text(json.dumps(weights, indent=1) + "\n", encoding="utf-8")
