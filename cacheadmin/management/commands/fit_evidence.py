import json
from collections import Counter
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cacheadmin.evaluating import cases_of
from inference.cache import evidence
from inference.evaluation.cases import read
from inference.evaluation.fit_evidence import (
    NothingToAsk,
    answers,
    crossed,
    enough,
    figures,
    fitted,
    rows_of,
    shifted,
    without_answer,
)


class Command(BaseCommand):
    help = (
        "Fits what the cache makes of all evidence for a question in other words, to case files with `fresh` "
        "and `third`, and says what each half of the cases gets from the weights of the other half."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", type=Path, nargs="+", help="JSONL, one case a line")
        parser.add_argument("--write", action="store_true", help="over the weights in use")

    def handle(self, *args: Any, **options: Any) -> None:
        files = [cases_of(path, read) for path in options["files"]]
        try:
            rows = [row for cases in files for row in rows_of(cases)]
        except NothingToAsk as problem:
            raise CommandError(str(problem)) from problem
        without = sum((without_answer(cases) for cases in files), Counter[str]())
        weights = {}
        for lang in sorted({row.lang for row in rows}):
            ours = [row for row in rows if row.lang == lang]
            answered = crossed(ours)
            found = fitted(ours)
            # By the weights of the other half, and by those that are written.
            needed = max(enough(answered, without), enough(answers(ours, found), without))
            self.stdout.write(json.dumps({lang: {"needed": round(needed, 4), **figures(answered)}}))
            weights[lang] = shifted(found, needed)
        if options["write"]:
            evidence.WEIGHTS.write_text(json.dumps(weights, indent=1) + "\n", encoding="utf-8")
