"""What an entry was made from, and whether that has changed since it was read.

A source's row counts its changes. Whoever names a source remembers the count; whoever stores an answer made
from it holds the row until that is committed, so that a change comes either before, and the answer is not
stored, or after, and finds the entry.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from inference.models import DataSource, Entry, EntrySource

Made = dict[str, Any]
"""{"key", "version", "changes"}: a source as a generation keeps it."""


# Keys of the knowledge file, which is named by itself and not by whoever asks.
KNOWLEDGE = "knowledge:"


def named(made: Iterable[Made]) -> list[Made]:
    """Those of a generation's sources that whoever asked has named."""
    return [source for source in made if not source["key"].startswith(KNOWLEDGE)]


def read_now(named: Iterable[tuple[str, str]]) -> list[Made]:
    """These sources (key, version), each with the changes there were of it up to now."""
    versions = dict(named)
    if not versions:
        return []
    DataSource.objects.bulk_create([DataSource(key=key) for key in versions], ignore_conflicts=True)
    changes = dict(DataSource.objects.filter(key__in=versions).values_list("key", "changes"))
    return [
        {"key": key, "version": version, "changes": changes.get(key, 0)} for key, version in versions.items()
    ]


def hold(made: Sequence[Made]) -> bool:
    """Are all of these still what they were when they were read? If so they stay it to the end of the
    caller's transaction."""
    if not made:
        return True
    keys = [source["key"] for source in made]
    # FOR SHARE, which Django has no word for: many may store at once, none while the source changes.
    rows = DataSource.objects.raw(
        "SELECT * FROM inference_datasource WHERE key = ANY(%s) ORDER BY key FOR SHARE", [keys]
    )
    known = {row.key: row for row in rows}
    return all(source["key"] in known and _stands(known[source["key"]], source) for source in made)


def _stands(row: DataSource, source: Made) -> bool:
    """A change to the very version that was read is none."""
    return row.changes == source["changes"] or bool(row.version and row.version == source["version"])


def note(entry: Entry, made: Sequence[Made]) -> None:
    """Write down what this entry was made from."""
    EntrySource.objects.bulk_create(
        EntrySource(entry=entry, source_key=source["key"], version=source["version"]) for source in made
    )
