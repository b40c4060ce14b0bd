"""What the commands that measure on files have in common."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from django.core.management.base import CommandError

from inference.evaluation.jsonl import BadCase

Case = TypeVar("Case")


def cases_of(path: Path, read: Callable[[Path], list[Case]]) -> list[Case]:
    """What `read` finds in the file. Raises CommandError where it can't be read, and where it has none."""
    try:
        cases = read(path)
    except (OSError, BadCase) as problem:
        raise CommandError(str(problem)) from problem
    if not cases:
        raise CommandError(f"{path} has no cases.")
    return cases


def show_progress(what: str, done: int, total: int) -> None:
    """A bar on standard error, drawn again at every hundredth."""
    if done == total or done % max(1, total // 100) == 0:
        bar = "█" * (30 * done // max(1, total))
        sys.stderr.write(f"\r{what:>10} {bar:<30} {done}/{total}" + ("\n" if done == total else ""))
        sys.stderr.flush()


def plain(figure: object) -> str:
    """A figure of a table: a share with three places, a count as it is, a dash where there is none."""
    return "–" if figure is None else format(figure, ".3f") if isinstance(figure, float) else str(figure)
