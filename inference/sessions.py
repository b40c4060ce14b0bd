"""The life of a session: it is open while somebody asks in it, ends by word, after a time without a question,
or with its conversation, and is begun anew by the next question."""

from datetime import timedelta
from uuid import UUID

import redis
import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from . import farewells, stopping, stream
from .cache import coalesce, lifecycle
from .models import (
    OPEN,
    Decision,
    Entry,
    Generation,
    Invalidation,
    Observation,
    Session,
    Summary,
    Verdict,
    Wording,
)

log = structlog.get_logger(__name__)

# To the minute is enough, and spares most questions a write.
_TOUCH_AFTER = timedelta(minutes=1)
_BATCH = 200


def touched(session_id: UUID) -> Session | None:
    """The session as a question finds it, active now; None if there is none. One that had ended is open
    again, in another epoch, so that nothing from before its end comes back."""
    session = Session.objects.filter(pk=session_id).only("epoch", "last_active", "ended_at").first()
    if session is None:
        return None
    now = timezone.now()
    if session.ended_at is not None:
        Session.objects.filter(pk=session_id, ended_at__isnull=False).update(
            ended_at=None, epoch=F("epoch") + 1, last_active=now
        )
        session.refresh_from_db(fields=["epoch"])
    elif now - session.last_active > _TOUCH_AFTER:
        Session.objects.filter(pk=session_id).update(last_active=now)
    return session


def end(session_id: UUID) -> int:
    """Freeze what is the session's own, and let the engines go of what they have read of it. Returns how many
    entries there were."""
    farewells.tell(session_id)
    session = Session.objects.filter(pk=session_id).first()
    return lifecycle.end_session(session) if session else 0


def end_idle() -> int:
    """End the sessions in which nobody has asked for SESSION_IDLE_SECONDS; returns how many. One that
    somebody asks in meanwhile is left."""
    before = timezone.now() - timedelta(seconds=settings.SESSION_IDLE_SECONDS)
    ended = 0
    idle = Q(ended_at=None, last_active__lt=before)
    while batch := list(
        Session.objects.filter(idle).order_by("last_active").values_list("pk", flat=True)[:_BATCH]
    ):
        ended += sum(_end_if_idle(session_id, idle) for session_id in batch)
    return ended


@transaction.atomic
def _end_if_idle(session_id: UUID, idle: Q) -> bool:
    session = Session.objects.select_for_update(no_key=True).filter(idle, pk=session_id).first()
    if session is None:
        return False
    lifecycle.end_session(session)
    transaction.on_commit(lambda: farewells.tell(session_id))
    return True


# --- forgetting -------------------------------------------------------------------------------------

_DELETED = "It was compared with something that has been deleted."


def forget(session_id: UUID) -> None:
    """Delete the session with all that hangs on it, and what is told of it elsewhere."""
    mine = Generation.objects.filter(session=session_id)
    for generation in mine.filter(status__in=OPEN):
        _abandon(generation)
    written = list(mine.values_list("pk", flat=True))
    with transaction.atomic():
        # Held against whoever is about to store something of it: afterwards there is nothing to store it for.
        session = Session.objects.select_for_update().filter(pk=session_id).first()
        if session is not None:
            _withdraw_verdicts(session)
            _forget_elsewhere(session)
            session.delete()
    transaction.on_commit(lambda: _forget_outside(session_id, written))


def _abandon(generation: Generation) -> None:
    """Nobody reads this any longer; those who follow it compute for themselves."""
    coalesce.disband(generation)
    try:
        stopping.stop(generation.pk, 0)
    except redis.RedisError as error:
        # Whoever writes it finds out when it wants to end it: deleting must not depend on Valkey.
        log.warning("stop_not_told", generation=str(generation.pk), error=str(error))


def _withdraw_verdicts(session: Session) -> None:
    """What was said in it of pairings that outlive it counts no longer, for nor against them: the verdicts go
    with it, and a state that nothing stands for any more could be changed by nobody."""
    said = Observation.objects.filter(generation__session=session)
    judged = Q(pk__in=said.exclude(verdict=Verdict.UNCLEAR).values("wording"))
    gone_with_it = Q(session=session) | Q(entry__session=session)
    outliving = list(Wording.objects.filter(judged).exclude(gone_with_it).order_by("pk").only("pk"))
    said.update(verdict=Verdict.UNCLEAR)
    for wording in outliving:  # in one order: two that are forgotten at once don't wait for each other
        lifecycle.weigh(wording)
    for doubted in Invalidation.objects.filter(session=session).values_list("doubted", flat=True):
        lifecycle.trust_entry(doubted)


def _forget_elsewhere(session: Session) -> None:
    """In rows of other sessions: the words in which a lookup was explained, and the questions that the model
    reads in the place of theirs, also in short."""
    entries = Entry.objects.filter(session=session).values("pk")
    wordings = Wording.objects.filter(Q(session=session) | Q(entry__in=entries)).values("pk")
    for about in (Q(entry__in=entries), Q(wording__in=wordings)):  # each by an index of its own
        Decision.objects.exclude(generation__session=session).filter(about).update(reason=_DELETED)
    theirs = Generation.objects.filter(entry__session=session).exclude(session=session)
    read = theirs.exclude(model_question="")
    Summary.objects.filter(session__in=read.values("session")).delete()
    read.update(model_question="")


def _forget_outside(session_id: UUID, written: list[UUID]) -> None:
    farewells.tell(session_id)
    stream.forget(written)
