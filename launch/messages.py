"""`python -m launch.messages`: compile the translations (locale/*/LC_MESSAGES/*.po) that changed.

With Babel, since gettext's msgfmt is not everywhere.
"""

import sys
from pathlib import Path

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from launch.options import REPOSITORY


def compile_messages(locale: Path) -> list[Path]:
    """Write each .mo file that is missing or older than its .po file. Returns those written."""
    written = []
    for source in sorted(locale.glob("*/LC_MESSAGES/*.po")):
        target = source.with_suffix(".mo")
        if target.exists() and target.stat().st_mtime >= source.stat().st_mtime:
            continue
        with source.open("rb") as readable:
            catalog = read_po(readable, locale=source.parent.parent.name, abort_invalid=True)
        with target.open("wb") as writable:
            write_mo(writable, catalog)
        written.append(target)
    return written


if __name__ == "__main__":
    for path in compile_messages(REPOSITORY / "locale"):
        print(f"Compiled {path.relative_to(REPOSITORY)}", file=sys.stderr)
