"""A flush as an operator's action: written down when it begins, kept up with every batch, gone on with
later."""

from collections.abc import Callable
from dataclasses import asdict
from uuid import UUID

from inference.cache import flush
from inference.cache.flush import Preview, Selection

from .models import Action, AuditRecord, Status


class NothingToResume(LookupError):
    """There is no flush of this id that was begun and not finished."""


def begin(selection: Selection, found: Preview, actor: str, reason: str) -> AuditRecord:
    """The record of a flush that is about to run. Entries that come to be from now on are not meant."""
    return AuditRecord.objects.create(
        action=Action.FLUSH,
        actor=actor,
        reason=reason,
        selection=selection.of_now().to_json(),
        before=asdict(found),
        status=Status.RUNNING,
    )


def unfinished(batch: UUID) -> AuditRecord:
    """Raises NothingToResume."""
    record = AuditRecord.objects.filter(batch=batch, action=Action.FLUSH).exclude(status=Status.DONE).first()
    if record is None:
        raise NothingToResume(batch)
    return record


def run(record: AuditRecord, size: int, pause: float, progress: Callable[[int], object]) -> int:
    """Delete what the record's selection says. Returns how many entries are left, which somebody was serving
    all the time. Whatever ends it early, the record says how far it came."""
    selection = Selection.from_json(record.selection)

    def count(deleted: int) -> None:
        record.entries += deleted
        record.save(update_fields=["entries", "updated_at"])
        progress(deleted)

    record.status = Status.INTERRUPTED
    try:
        flush.flush(selection, batch=size, pause=pause, progress=count)
        left = selection.entries().count()
        record.after = {"entries": left}
        record.status = Status.INTERRUPTED if left else Status.DONE
    finally:
        record.save()
    return left
