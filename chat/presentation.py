"""How conversations and messages are put in front of a reader: rendered, dated, timed, in words."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from uuid import UUID

from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from inference.models import Cause, Generation, Invalidation, ServedBy

from .models import Conversation, Message, Role
from .rendering import render
from .services import Row, corrections_of, feedback_of

CACHED = frozenset({ServedBy.EXACT, ServedBy.FUZZY, ServedBy.SEMANTIC, ServedBy.GRAY})

_FAILURES = {
    "busy": gettext_lazy("Too many people are asking at the moment."),
    "engine_unavailable": gettext_lazy("The model can't be reached at the moment."),
    "too_long": gettext_lazy("This conversation no longer fits into what the model can read."),
}


_UNDERSTOOD = {
    Cause.CORRECTION: gettext_lazy(
        "Understood as a correction; earlier cached answers of this chat are no longer used."
    ),
    Cause.REJECTION: gettext_lazy(
        "Understood as dropping what was said; earlier cached answers of this chat are no longer used."
    ),
    Cause.RESTATEMENT: gettext_lazy(
        "Understood as a change of mind; earlier cached answers of this chat are no longer used."
    ),
}


@dataclass(frozen=True)
class Correction:
    """The quiet line under a question that was read as taking something back."""

    id: int
    message: UUID
    text: str
    undone: bool


def correction(message: UUID, found: Invalidation) -> Correction:
    text = _UNDERSTOOD.get(Cause(found.cause), "")
    return Correction(found.pk, message, str(text), found.undone_at is not None)


@dataclass(frozen=True)
class Article:
    """One message as the page shows it, with its place among its siblings."""

    row: Row
    verdict: str = ""
    correction: Correction | None = None

    @property
    def message(self) -> Message:
        return self.row.message

    @property
    def generation(self) -> Generation | None:
        return self.row.message.generation

    @property
    def is_question(self) -> bool:
        return self.message.role == Role.USER

    @property
    def many(self) -> bool:
        return len(self.row.siblings) > 1

    @property
    def count(self) -> int:
        return len(self.row.siblings)

    @property
    def text(self) -> str:
        """What was written: a question as typed, an answer as its Markdown."""
        return self.generation.text if self.generation else self.message.text

    @cached_property
    def html(self) -> SafeString:
        return render(self.text)

    @property
    def status(self) -> str:
        return self.generation.status if self.generation else ""

    @property
    def is_open(self) -> bool:
        return self.generation is not None and self.generation.is_open

    @property
    def from_cache(self) -> bool:
        return self.generation is not None and self.generation.served_by in CACHED

    @property
    def truncated(self) -> bool:
        return (
            self.generation is not None
            and self.status == "complete"
            and self.generation.finish_reason == "length"
        )

    @property
    def duration(self) -> str:
        """How long the answer took, in words; empty where that isn't known."""
        milliseconds = self.generation.total_ms if self.generation else None
        return "" if milliseconds is None else in_words(milliseconds)

    @property
    def failure(self) -> str:
        """Why a failed answer failed, as far as a reader can make use of it."""
        code = self.generation.error_code if self.generation else ""
        return str(_FAILURES.get(code, _("Something went wrong while answering.")))


def articles(rows: Sequence[Row]) -> list[Article]:
    """`rows` as the page shows them, with the reader's own verdicts, and what was read off their
    questions."""
    messages = [row.message for row in rows]
    verdicts: Mapping[UUID, str] = feedback_of(messages)
    read = corrections(messages)
    return [Article(row, verdicts.get(row.message.id, ""), read.get(row.message.id)) for row in rows]


def corrections(messages: Iterable[Message]) -> dict[UUID, Correction]:
    """The lines under these messages, by the id of the message."""
    return {pk: correction(pk, found) for pk, found in corrections_of(messages).items()}


def in_words(milliseconds: float) -> str:
    """A duration for reading: 12 ms, 2.3 s, 1 min 5 s."""
    if milliseconds < 999.5:
        return _("%(count)d ms") % {"count": max(1, round(milliseconds))}
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return _("%(count).1f s") % {"count": seconds}
    minutes, rest = divmod(round(seconds), 60)
    return _("%(minutes)d min %(seconds)d s") % {"minutes": minutes, "seconds": rest}


def title_of(conversation: Conversation) -> str:
    return conversation.title.strip() or _("Untitled")


# --- the list of conversations ------------------------------------------------------------------


@dataclass(frozen=True)
class Listed:
    """A line in the list; `heading` is set on the first line of each span of time."""

    conversation: Conversation
    title: str
    heading: str = ""


def _age(moment: datetime, now: datetime) -> str:
    """Spans that are right in every time zone, since the server doesn't know the reader's."""
    age = now - moment
    if age < timedelta(hours=24):
        return _("Last 24 hours")
    if age < timedelta(days=7):
        return _("Last 7 days")
    if age < timedelta(days=30):
        return _("Last 30 days")
    return _("Earlier")


def listed(conversations: Iterable[Conversation], before: Conversation | None = None) -> list[Listed]:
    """Lines for `conversations`, newest first; `before` is the one listed just above them, if any."""
    now = timezone.now()
    heading = _age(before.updated_at, now) if before else ""
    lines = []
    for conversation in conversations:
        own = _age(conversation.updated_at, now)
        lines.append(Listed(conversation, title_of(conversation), own if own != heading else ""))
        heading = own
    return lines


def found_in_words(count: int) -> str:
    return ngettext("%(count)d conversation", "%(count)d conversations", count) % {"count": count}
