"""Celery tasks: an id in, one function called."""

import threading
from typing import Any
from uuid import UUID

import structlog
from celery import Task, shared_task
from celery.signals import celeryd_after_setup, worker_ready, worker_shutdown, worker_shutting_down

from . import (
    dispatch,
    embedding,
    farewells,
    live_ledger,
    pipeline,
    reaper,
    rules,
    scraping,
    sessions,
    summaries,
    trail,
    workers,
)
from . import engine as engines
from .cache import books, coalesce, eviction, gray, refresh, verifier
from .engine import engine

log = structlog.get_logger(__name__)


@shared_task(bind=True)
def answer(self: "Task[Any, Any]", generation_id: str) -> None:
    with trail.stage("answer", generation_id, trail.carried_by(self.request)):
        pipeline.answer(generation_id)


@shared_task(bind=True)
def generate(self: "Task[Any, Any]", generation_id: str) -> None:
    with trail.stage("generate", generation_id, trail.carried_by(self.request)):
        pipeline.generate(generation_id)


@shared_task
def summarise(summary_id: str) -> None:
    summaries.write(int(summary_id))


@shared_task
def check_follower(generation_id: str, position: str) -> None:
    coalesce.check(UUID(generation_id), position)


@shared_task
def reap() -> None:
    reaper.reap()
    reaper.clear_seats()


@celeryd_after_setup.connect
def _take_seat(sender: str, instance: Any, **_: object) -> None:
    """Besides the queue that all engines serve, have one of this worker's own."""
    queues = instance.app.amqp.queues
    if dispatch.SHARED in queues.consume_from:
        queues.select_add(workers.take_seat(sender))


@shared_task
def evict() -> None:
    eviction.evict()


@shared_task
def end_idle_sessions() -> None:
    sessions.end_idle()


@shared_task
def refresh_entries() -> None:
    refresh.refresh()


@shared_task
def observe(check_id: str) -> None:
    gray.observe(int(check_id))


@shared_task
def observe_waiting() -> None:
    gray.send_waiting()


@worker_ready.connect
def _open_for_work(sender: Any, **_: object) -> None:
    """Announce this worker's queues; a generate worker only after its engine is loaded."""
    scraping.listen()
    for queue in {*sender.app.amqp.queues.consume_from} - {workers.own_seat()}:
        threading.Thread(target=_serve, args=(queue,), name=f"announce-{queue}", daemon=True).start()


def _serve(queue: str) -> None:
    rules.version()  # as this process runs them, whatever a deploy makes of the files later
    if queue != dispatch.SHARED:
        if queue == "answer":
            # Their models load now, and not while somebody waits.
            verifier.warm_up()
            embedding.warm_up()
            threading.Thread(target=books.keep, args=(workers.leaving,), name="books").start()
        log.info("worker_ready", queue=queue)
        workers.keep_announcing(queue)
        return
    while not workers.leaving.is_set():
        try:
            held = engine()
        except Exception:
            log.exception("engine_not_loaded")
            workers.leaving.wait(5)
            continue
        embedding.warm_up()
        log.info("worker_ready", queue=queue, seat=workers.own_seat())
        threading.Thread(
            target=live_ledger.keep_publishing, args=(held,), name="publish-ledger", daemon=True
        ).start()
        workers.keep_announcing(queue, farewells.Listener(held.end_session).hear)


@worker_shutdown.connect
def _let_go(**_: object) -> None:
    engines.close()


@worker_shutting_down.connect
def _close(**_: object) -> None:
    workers.leaving.set()
