import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cacheadmin.evaluating import cases_of
from inference.cache import followup
from inference.evaluation.cases import read
from inference.evaluation.fit_evidence import NothingToAsk
from inference.evaluation.fit_followup import conversations, crossed, fitted, measured, other_of, same_of


class Command(BaseCommand):
    help = (
        "Fits when two questions at the same moment of a conversation count as the same: to the third "
        "wordings of case files, against the next questions of conversations."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", type=Path, nargs="+", help="JSONL, one case with `third` a line")
        parser.add_argument(
            "--conversations", type=Path, nargs="+", required=True, help="JSONL, cases or messages"
        )
        parser.add_argument("--write", action="store_true", help="over the weights in use")

    def handle(self, *args: Any, **options: Any) -> None:
        cases = [case for path in options["files"] for case in cases_of(path, read)]
        talks = [talk for path in options["conversations"] for talk in cases_of(path, conversations)]
        try:
            rows = measured([*same_of(cases), *other_of(talks)])
        except NothingToAsk as problem:
            raise CommandError(str(problem)) from problem
        weights = {}
        for lang in sorted({row.lang for row in rows}):
            ours = [row for row in rows if row.lang == lang]
            if len({row.pair.same for row in ours}) == 2:
                self.stdout.write(json.dumps({lang: crossed(ours)}))
                weights[lang] = fitted(ours)
        if options["write"]:
            followup.WEIGHTS.write_text(json.dumps(weights, indent=1) + "\n", encoding="utf-8")
