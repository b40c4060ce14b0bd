"""Celery tasks: an id in, one function called."""

import threading
from typing import Any
from uuid import UUID

import structlog
from celery import shared_task
from celery.signals import worker_ready, worker_shutting_down

from . import pipeline, reaper, workers
from .cache import coalesce
from .engine import engine

log = structlog.get_logger(__name__)


@shared_task
def answer(generation_id: str) -> None:
    pipeline.answer(generation_id)


@shared_task
def generate(generation_id: str) -> None:
    pipeline.generate(generation_id)


@shared_task
def check_follower(generation_id: str, position: str) -> None:
    coalesce.check(UUID(generation_id), position)


@shared_task
def reap() -> None:
    reaper.reap()


@worker_ready.connect
def _open_for_work(sender: Any, **_: object) -> None:
    """Announce this worker's queues; a generate worker only after its engine is loaded."""
    for queue in sender.app.amqp.queues.consume_from:
        threading.Thread(target=_serve, args=(queue,), name=f"announce-{queue}", daemon=True).start()


def _serve(queue: str) -> None:
    while queue == "generate" and not workers.leaving.is_set():
        try:
            engine()
            break
        except Exception:
            log.exception("engine_not_loaded")
            workers.leaving.wait(5)
    log.info("worker_ready", queue=queue)
    workers.keep_announcing(queue)


@worker_shutting_down.connect
def _close(**_: object) -> None:
    workers.leaving.set()
