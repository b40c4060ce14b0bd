from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from cacheadmin.asking import bar
from inference.cache import eviction


class Command(BaseCommand):
    help = (
        "Frees what the cache holds and serves nobody any more: entries that are frozen or have expired, "
        "and what is worth least where a cap is passed. The beat does the same every five minutes."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only count")

    def handle(self, *args: Any, **options: Any) -> None:
        due = eviction.overdue()
        if options["dry_run"]:
            self.stdout.write(f"Would free {due.over} frozen and {due.expired} expired entries.")
            return
        with bar(due.entries) as progress:
            freed = eviction.evict(progress.update)
        self.stdout.write(
            f"Freed {freed.over} frozen and {freed.expired} expired entries, "
            f"and {freed.least_worth} to fit the caps."
        )
