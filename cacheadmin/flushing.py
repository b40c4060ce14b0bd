"""A flush as an operator's action: written down when it begins, kept up with every batch, gone on with
later. Whoever runs it looks at the record between two batches, so that it can be ended from anywhere."""

from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import F, Q
from django.utils import timezone

from inference import workers
from inference.cache import flush
from inference.cache.flush import Preview, Selection

from . import audit
from .models import Action, AuditRecord, Status

# A batch takes some hundredths of a second, and the pause after it two tenths.
SILENT = timedelta(seconds=45)


class NothingToResume(LookupError):
    """There is no flush of this id that was begun and not finished."""


class Ended(Exception):
    """Somebody ended the flush, or it is this process that ends."""


def begin(selection: Selection, found: Preview, actor: AbstractBaseUser | str, reason: str) -> AuditRecord:
    """The record of a flush that is about to run. Entries that come to be from now on are not meant."""
    return AuditRecord.objects.create(
        **audit.of(actor),
        action=Action.FLUSH,
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


def open_ones() -> list[AuditRecord]:
    """Flushes that were begun and are not done, newest first."""
    return list(
        AuditRecord.objects.filter(action=Action.FLUSH).exclude(status=Status.DONE).order_by("-id")[:20]
    )


def silent(record: AuditRecord) -> bool:
    """Is it said to be running, and was not heard of for too long?"""
    return record.status == Status.RUNNING and timezone.now() - record.updated_at > SILENT


def take(batch: UUID) -> bool:
    """Have this flush to go on with, if it was interrupted or its worker is gone; of two who try one gets
    it."""
    gone = Q(status=Status.INTERRUPTED) | Q(status=Status.RUNNING, updated_at__lt=timezone.now() - SILENT)
    mine = AuditRecord.objects.filter(gone, batch=batch, action=Action.FLUSH)
    return bool(mine.update(status=Status.RUNNING, updated_at=timezone.now()))


def end(batch: UUID) -> bool:
    """Let it end after the batch it is at. What is deleted stays deleted."""
    running = AuditRecord.objects.filter(batch=batch, action=Action.FLUSH, status=Status.RUNNING)
    return bool(running.update(status=Status.INTERRUPTED, updated_at=timezone.now()))


def go_on(batch: UUID) -> None:
    """Run a flush that was begun or taken, until it is done or ended."""
    record = AuditRecord.objects.filter(batch=batch, action=Action.FLUSH, status=Status.RUNNING).first()
    if record is not None:
        try:
            run(record, flush.BATCH, flush.PAUSE_SECONDS, _unless_leaving)
        except Ended:
            return


def _unless_leaving(_deleted: int) -> None:
    if workers.leaving.is_set():
        raise Ended


def run(record: AuditRecord, size: int, pause: float, progress: Callable[[int], object]) -> int:
    """Delete what the record's selection says. Returns how many entries are left, which somebody was serving
    all the time. Whatever ends it early, the record says how far it came. Raises Ended."""
    selection = Selection.from_json(record.selection)
    mine = AuditRecord.objects.filter(pk=record.pk)
    mine.update(status=Status.RUNNING, updated_at=timezone.now())

    def count(deleted: int) -> None:
        mine.update(entries=F("entries") + deleted, updated_at=timezone.now())
        record.refresh_from_db(fields=["entries", "status"])
        if record.status != Status.RUNNING:
            raise Ended
        progress(deleted)

    status, after = Status.INTERRUPTED, {}
    try:
        flush.flush(selection, batch=size, pause=pause, progress=count)
        left = selection.entries().count()
        after = {"entries": left}
        status = Status.INTERRUPTED if left else Status.DONE
    finally:
        # Somebody else may have brought it to its end meanwhile.
        mine.exclude(status=Status.DONE).update(status=status, after=after, updated_at=timezone.now())
        record.refresh_from_db()
    return left
