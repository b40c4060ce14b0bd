"""Doubtful answers prove themselves: what was served is asked for once more in the background, and compared.

A hit through a pairing or an entry that is not proved yet, and a small share of all others, leaves a `Check`.
A worker that holds an engine takes it up while no person waits for one, and lets go as soon as one does: the
same question in the same context, answered without the cache, by no Generation, so that nobody reads it, none
follows it, and nothing counts or keeps it. The verdict is an Observation on the pairing.
"""

import random
import threading
import time
from dataclasses import dataclass
from datetime import timedelta

import redis
import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from inference import compute, dispatch, metrics, prompting, scopes, sources, versions, workers
from inference.engine import engine
from inference.engines.base import Delta, EngineFailed, EngineUnavailable, Request
from inference.history import born_wordings
from inference.models import OVER, Check, Entry, Generation, Session, State, Wording
from inference.redis import client

from . import agreement, engine_judge, lifecycle, provenance
from .agreement import Agreement, Answer
from .learning import answer_of, asked, stored_answer
from .lookup import Found
from .standing import Witness

log = structlog.get_logger(__name__)

# How often a running check looks for people who wait: that and one step of the engine is what it costs them.
_LOOK_SECONDS = 0.1
# A check that people have interrupted so often, or that has waited so long, is dropped: there will be others.
_TRIES = 20
_WAITS = timedelta(hours=1)
# Whoever has had one for so long is gone.
_SILENT = timedelta(minutes=10)
# Of those that had to wait so many are sent again at once.
AT_ONCE = 4


# --- leaving a check ----------------------------------------------------------------------------------


def watch(generation: Generation, pairing: Wording | None, found: Found) -> Check | None:
    """`generation` was just served `found`, which is `pairing` where that has a row of its own. Leave a check
    if there is doubt, or by chance, and the budget of this minute allows it. Returns it; None without."""
    wording = pairing.pk if pairing is not None else found.wording
    suspect = not found.proved or (pairing is not None and pairing.state == State.SUSPECT)
    if not suspect and random.random() >= settings.OBSERVE_SHARE:
        return None
    try:
        if not _is_left():
            return None
        check, new = Check.objects.get_or_create(wording_id=wording, defaults={"generation": generation})
        if not new:
            return None
        if not _take():
            check.delete()
            return None
    except redis.RedisError as error:
        log.warning("budget_unknown", error=str(error))
        return None
    transaction.on_commit(lambda: dispatch.observe(check.pk))
    return check


def _budget() -> str:
    return f"observe:{int(time.time() // 60)}"


def _is_left() -> bool:
    """May anything more be observed in this minute? Raises redis.RedisError."""
    if settings.OBSERVE_PER_MINUTE <= 0:
        return False
    return int(client().get(_budget()) or 0) < settings.OBSERVE_PER_MINUTE


def _take() -> bool:
    """Take one of this minute's, which all workers share. False if there was none left. Raises
    redis.RedisError."""
    pipe = client().pipeline()
    pipe.incr(key := _budget())
    pipe.expire(key, 120)
    return int(pipe.execute()[0]) <= settings.OBSERVE_PER_MINUTE


# --- taking one up ------------------------------------------------------------------------------------

# One at a time in each process: people's questions find all other threads free.
_busy = threading.Lock()


def observe(check_id: int) -> Agreement | None:
    """Ask anew and let the verdict count. None where nothing came of it: a person was there first, it is done
    or being done, or what it was about has changed meanwhile."""
    if not _busy.acquire(blocking=False):
        return None
    try:
        check = None if are_people_there() else _claim(check_id)
        return _observe(check) if check is not None else None
    finally:
        _busy.release()


def send_waiting() -> int:
    """Send those again that had to wait, drop those that waited for too long; returns how many were sent."""
    now = timezone.now()
    Check.objects.filter(Q(created_at__lt=now - _WAITS) | Q(tries__gte=_TRIES)).delete()
    if dispatch.is_anyone_waiting():
        return 0
    # The youngest have their first task still on its way.
    due = _free(Check.objects.filter(created_at__lt=now - timedelta(seconds=settings.OBSERVE_EVERY_SECONDS)))
    waiting = list(due.order_by("tries", "created_at").values_list("pk", flat=True)[:AT_ONCE])
    for check in waiting:
        dispatch.observe(check)
    return len(waiting)


def waiting(most: int) -> int:
    """How many checks nobody has taken up, counted to `most`."""
    return _free(Check.objects.all()).values("pk")[:most].count()


def are_people_there() -> bool:
    """Does anybody wait for an engine, or for an answer that this process is writing?"""
    return dispatch.is_anyone_waiting() or dispatch.written_here() > settings.OBSERVE_BESIDE


def _free(checks: QuerySet[Check]) -> QuerySet[Check]:
    return checks.filter(Q(claimed_by="") | Q(claimed_at__lt=timezone.now() - _SILENT))


def _claim(check_id: int) -> Check | None:
    mine = _free(Check.objects.filter(pk=check_id))
    if not mine.update(claimed_by=workers.name(), claimed_at=timezone.now(), tries=F("tries") + 1):
        return None
    rows = Check.objects.select_related("generation__scope")
    return rows.filter(pk=check_id, claimed_by=workers.name()).first()


def _observe(check: Check) -> Agreement | None:
    try:
        fresh = _ask(check)
        if fresh is None:
            return None  # claimed no longer: somebody waits, or this worker is going
        return _conclude(check, fresh)
    except (EngineUnavailable, EngineFailed) as error:
        log.warning("not_observed", check=check.pk, error=str(error))
        metrics.STAGE_ERRORS.labels(stage="check").inc()
        _let_go(check)
        return None


def _let_go(check: Check) -> None:
    Check.objects.filter(pk=check.pk, claimed_by=check.claimed_by).update(claimed_by="", claimed_at=None)


# --- asking -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Fresh:
    """A fresh answer, and what it was made from. `usable`: it is whole, and of the scope it was asked in."""

    text: str
    made: list[provenance.Made]
    usable: bool


def _ask(check: Check) -> _Fresh | None:
    """The engine's answer to the question that was served; None when it had to be broken off."""
    generation = check.generation
    generation.reuse = ""  # in full, whatever became of it then
    made = sources.with_knowledge(generation.sources)
    prompt = prompting.build(generation)
    request = Request(
        id=f"check-{check.pk}",
        turns=prompt.turns,
        sampling=compute.sampling(generation.scope),
        cancelled=_Interruption(),
        cache_salt=generation.cache_salt,
    )
    text, finished = "", None
    for event in engine().stream(request):
        if isinstance(event, Delta):
            text += event.text
        else:
            finished = event
    if finished is not None:
        metrics.computed(finished.prompt_tokens, finished.cached_tokens, finished.completion_tokens)
    if finished is None or finished.reason == "cancelled":
        _let_go(check)
        return None
    whole = finished.reason == "stop" and not finished.prompt_cut
    in_scope = prompt.in_scope and scopes.is_answered_by(generation.scope, engine().identity())
    return _Fresh(text.replace("\x00", ""), made, whole and in_scope)


class _Interruption:
    """Asked by the engine between tokens: must the check give way?"""

    def __init__(self) -> None:
        self._looked_at = float("-inf")
        self._found = False

    def __call__(self) -> bool:
        if workers.leaving.is_set():
            return True
        if not self._found and time.monotonic() - self._looked_at >= _LOOK_SECONDS:
            self._found, self._looked_at = are_people_there(), time.monotonic()
        return self._found


# --- comparing, and writing it down -------------------------------------------------------------------


def _conclude(check: Check, fresh: _Fresh) -> Agreement | None:
    """Compare, and let the verdict count if all is still what it was: the scope is asked in, the session was
    not corrected, its sources have not changed, and pairing and answer are there as they were served."""
    pairing = Wording.objects.select_related("entry").filter(pk=check.wording_id).first()
    judged = None
    if fresh.usable and fresh.text.strip() and pairing is not None:
        judged = _judge(check, pairing, fresh.text)
    with versions.held():
        mine = Check.objects.filter(pk=check.pk, claimed_by=check.claimed_by)
        gone = not mine.delete()[0]
        if judged is None or gone or pairing is None or not _stands(check.generation, pairing, fresh.made):
            return None
        lifecycle.observe(
            check.generation_id,
            Witness.GRAY,
            judged.verdict,
            pairing,
            reasons=judged.reasons,
            fresh=fresh.text,
        )
    return judged


def _judge(check: Check, pairing: Wording, fresh: str) -> Agreement:
    compared = compare(pairing, answer_of(fresh))
    generation, answers = check.generation, (pairing.entry.answer, fresh)
    turns, salt = generation.question["turns"], generation.cache_salt
    return engine_judge.settle(compared, turns, answers, salt, _Interruption())


def compare(pairing: Wording, fresh: Answer) -> Agreement:
    """What a fresh answer to the pairing's question says of its entry's answer, given how that question
    compares with the one that the entry is the answer to."""
    born = born_wordings([pairing.entry_id]).get(pairing.entry_id, pairing)
    return agreement.judge(stored_answer(pairing.entry), fresh, asked(pairing, born))


def _stands(generation: Generation, pairing: Wording, made: list[provenance.Made]) -> bool:
    """Is everything that the verdict is about as it was? Call it in a transaction: it stays so to its end."""
    session = Session.objects.select_for_update(no_key=True).filter(pk=generation.session_id).first()
    if session is None or session.epoch != generation.epoch:
        return False
    if not scopes.is_current(generation.scope, generation.sources) or not provenance.hold(made):
        return False
    entry = Entry.objects.select_for_update(no_key=True).filter(pk=pairing.entry_id).first()
    if entry is None or entry.answer != pairing.entry.answer or entry.state in OVER:
        return False
    return Wording.objects.filter(pk=pairing.pk).exclude(state__in=OVER).exists()
