import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from cacheadmin.evaluating import cases_of, show_progress
from inference.evaluation import agreement, cases


class Command(BaseCommand):
    help = (
        "Fits the weights by which answers are compared, to the part `tune` of files of answer pairs and to "
        "every second case of case files. Measure the others with evaluate_agreement."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("pairs", type=Path, nargs="+", help="JSONL, one pair of answers a line")
        parser.add_argument("--cases", type=Path, nargs="*", default=[], help="JSONL, as for evaluate_cache")
        parser.add_argument("--write", action="store_true", help="put the weights where the cache reads them")

    def handle(self, *args: Any, **options: Any) -> None:
        pairs = [pair for path in options["pairs"] for pair in cases_of(path, agreement.read)]
        for path in options["cases"]:
            pairs += agreement.of_cases(cases_of(path, cases.read))
        weights = agreement.fit(pairs, show_progress)
        self.stdout.write(json.dumps(weights, indent=1, sort_keys=True))
        if options["write"]:
            agreement.write(weights)
