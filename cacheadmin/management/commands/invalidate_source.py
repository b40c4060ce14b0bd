from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cacheadmin.asking import actor, bar
from cacheadmin.invalidating import invalidate
from inference import sources
from inference.cache import flush
from inference.cache.flush import Selection
from inference.models import OVER, State


class Command(BaseCommand):
    help = (
        "Says that a source has changed: entries made from it are served no more from this moment, "
        "answers that are being made from it will not be stored, and then the rows are deleted in "
        "batches. Others stay."
    )

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        # --version is ours, and not Django's.
        return super().create_parser(prog_name, subcommand, conflict_handler="resolve", **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("key", metavar="KEY", help="of the source, as it was named when it was asked")
        parser.add_argument(
            "--version", default="", help="what it is now; entries made from this version stay"
        )
        parser.add_argument("--why", default="", help="for the record")
        parser.add_argument("--dry-run", action="store_true", help="only count")

    def handle(self, *args: Any, **options: Any) -> None:
        key, version = options["key"], options["version"]
        if options["dry_run"]:
            made = sources.derived(key, version).exclude(state__in=OVER)
            self.stdout.write(f"Would freeze {made.count()} entries made from {key}.")
            return
        try:
            done = invalidate(key, version, actor(), options["why"])
        except sources.UnknownSource as problem:
            raise CommandError(f"No answer was ever made from a source {key!r}.") from problem
        except ValueError as problem:
            raise CommandError(str(problem)) from problem
        self.stdout.write(f"Froze {done.entries} entries made from {key}.")
        frozen = Selection(source=key, state=State.FROZEN)
        with bar(frozen.entries().count()) as progress:
            deleted = flush.flush(frozen, progress=progress.update)
        self.stdout.write(f"Deleted {deleted}.")
