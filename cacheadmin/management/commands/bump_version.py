from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cacheadmin.asking import actor, text_of
from cacheadmin.bumping import bump
from inference import versions
from inference.checks import HINT


class Command(BaseCommand):
    help = (
        "Switches to another knowledge version, and another system prompt if one is given, for every "
        "question that is asked from now on, in all processes at once. What was stored before is out of "
        "reach from then on; answers that are being written end as they began and are not stored. Open "
        "chats are told."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--knowledge", required=True, help="the version's name, such as 2026-12")
        parser.add_argument("--system-prompt", type=Path, help="a UTF-8 file; without it the prompt stays")
        parser.add_argument(
            "--back", action="store_true", help="return to a version that was in use before, and its entries"
        )
        parser.add_argument("--why", default="", help="for the record")
        parser.add_argument("--dry-run", action="store_true", help="only say what would change")

    def handle(self, *args: Any, **options: Any) -> None:
        prompt = options["system_prompt"] and text_of(options["system_prompt"]).strip()
        try:
            made = versions.plan(options["knowledge"], prompt, back=options["back"])
            for piece in made.changing:
                warning = f"The system prompt seems to change with every request: {piece!r}. {HINT}"
                self.stderr.write(self.style.WARNING(warning))
            if not options["dry_run"]:
                made = bump(options["knowledge"], prompt, actor(), options["why"], back=options["back"])
        except versions.WrongVersion as problem:
            raise CommandError(str(problem)) from problem
        self.stdout.write("\n".join(_lines(made, options["dry_run"])))


def _lines(made: versions.Bump, dry_run: bool) -> list[str]:
    would = "Would switch" if dry_run else "Switched"
    lines = [f"{would} from knowledge {made.before.knowledge} to {made.after.knowledge}."]
    if made.before.system_prompt != made.after.system_prompt:
        lines.append(f"System prompt: {made.after.system_prompt[:200]}")
    lines.append(f"Entries out of reach: {made.entries}. Answers being written, not stored: {made.open}.")
    if not dry_run:
        lines.append("Open chats were told." if made.told else "Open chats could not be told.")
        lines.append(f"To free the rows: manage.py flush_cache --version {made.before.knowledge}")
    return lines
