"""What the commands that change something have in common: who acts, how one is asked, how long it takes."""

import argparse
import getpass
import re
import socket
import sys
from datetime import timedelta
from pathlib import Path

from django.core.management.base import CommandError
from tqdm import tqdm

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def actor() -> str:
    """The account that runs this command, for the record."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = "unknown"
    return f"{name}@{socket.gethostname()}"[:200]


def confirm(question: str) -> None:
    """Raises CommandError unless the person at the terminal says yes, or where there is none to ask."""
    if not sys.stdin.isatty():
        raise CommandError("Nobody is there to ask: say --yes, or --dry-run to look first.")
    if input(f"{question} [yes/no] ").strip().lower() not in ("y", "yes"):
        raise CommandError("Nothing was done.")


def bar(total: int, done: int = 0) -> "tqdm[None]":
    """A progress bar of entries on standard error."""
    return tqdm(total=total, initial=done, unit="entries", file=sys.stderr, dynamic_ncols=True)


def age(text: str) -> timedelta:
    """An option's value such as 90s, 15m, 12h, 7d, 2w."""
    found = re.fullmatch(r"(\d{1,6})([smhdw])", text.strip().lower())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no age; write 90s, 15m, 12h, 7d or 2w.")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def text_of(path: Path) -> str:
    """What a UTF-8 file says. Raises CommandError."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise CommandError(f"{path} can't be read: {problem}") from problem
