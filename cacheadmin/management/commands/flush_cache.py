from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from cacheadmin import flushing
from cacheadmin.asking import actor, age, bar, confirm
from cacheadmin.models import AuditRecord
from inference.cache import flush
from inference.cache.flush import Preview, Selection
from inference.models import State

_LEFT = 3


class Command(BaseCommand):
    help = (
        "Deletes the cache's entries that all given options hold for, in batches with pauses in between. "
        "Says how many there are and asks first. Exit status: 0 done (or nothing to do, or --dry-run), 1 "
        "refused, 3 some are left which were in use all the time, 130 or 143 interrupted; then --resume "
        "goes on."
    )

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        # --version is ours, and not Django's.
        return super().create_parser(prog_name, subcommand, conflict_handler="resolve", **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        which = parser.add_argument_group("which entries")
        which.add_argument("--scope", help="beginning of the scope's hash")
        which.add_argument("--version", metavar="KNOWLEDGE", help="knowledge version of the scope")
        which.add_argument("--class", dest="content_class", help="content class, such as fact or business")
        which.add_argument("--source", metavar="KEY", help="made from this source")
        which.add_argument("--age", type=age, help="at least so old: 90s, 15m, 12h, 7d, 2w")
        which.add_argument("--state", choices=State.values)
        which.add_argument("--session", type=UUID, help="born in this conversation")
        which.add_argument("--pattern", help="asked like this; * is anything, ? one character")
        which.add_argument("--all", action="store_true", help="every entry; can't go with the others")
        how = parser.add_argument_group("how")
        how.add_argument("--dry-run", action="store_true", help="only count")
        how.add_argument("--yes", action="store_true", help="don't ask")
        how.add_argument("--batch", type=int, default=flush.BATCH, help=f"default: {flush.BATCH}")
        how.add_argument(
            "--pause",
            type=float,
            default=flush.PAUSE_SECONDS,
            help=f"seconds between two batches, default: {flush.PAUSE_SECONDS}",
        )
        how.add_argument("--why", default="", help="for the record")
        how.add_argument("--resume", type=UUID, metavar="ID", help="go on with a flush that was interrupted")

    def handle(self, *args: Any, **options: Any) -> None:
        if not 1 <= options["batch"] <= 10_000 or not 0 <= options["pause"] <= 60:
            raise CommandError("--batch is from 1 to 10000, --pause from 0 to 60 seconds.")
        record = self._resumed(options["resume"]) if options["resume"] else None
        selection = Selection.from_json(record.selection) if record else _selection(options)
        found = flush.count(selection)
        self.stdout.write("\n".join(_lines(found)))
        if options["dry_run"] or not (found.entries or record):
            return
        if not options["yes"]:
            confirm(f"Delete {found.entries} entries?")
        record = record or flushing.begin(selection, found, actor(), options["why"])
        self._run(record, found.entries, options)

    def _resumed(self, batch: UUID) -> AuditRecord:
        try:
            return flushing.unfinished(batch)
        except flushing.NothingToResume as problem:
            raise CommandError(f"No flush {batch} was begun and not finished.") from problem

    def _run(self, record: AuditRecord, total: int, options: dict[str, Any]) -> None:
        try:
            with bar(record.entries + total, record.entries) as progress:
                left = flushing.run(record, options["batch"], options["pause"], progress.update)
        except (KeyboardInterrupt, SystemExit):
            self.stderr.write(f"Interrupted after {record.entries} entries. Go on: --resume {record.batch}")
            raise
        self.stdout.write(f"Deleted {record.entries} entries, record {record.batch}.")
        if left:
            raise CommandError(f"{left} are left, in use. Try: --resume {record.batch}", returncode=_LEFT)


def _selection(options: dict[str, Any]) -> Selection:
    names = ("scope", "version", "content_class", "source", "state", "session", "pattern")
    before = timezone.now() - options["age"] if options["age"] is not None else None
    try:
        selection = Selection(**{name: options[name] for name in names}, before=before)
    except ValueError as problem:
        raise CommandError(str(problem)) from problem
    nothing = selection.is_everything and before is None
    if options["all"] != nothing:
        raise CommandError("Say which entries, or --all (and then nothing else); --help lists the options.")
    return selection


def _lines(found: Preview) -> list[str]:
    lines = [f"{found.entries} entries"]
    for name, counts in (("state", found.by_state), ("class", found.by_class), ("scope", found.by_scope)):
        lines += [f"  {name:<6} {n:>9}  {value}" for value, n in list(counts.items())[:20]]
    return lines
