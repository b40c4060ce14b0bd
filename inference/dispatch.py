"""Sending work to the queues. A task is named by a generation's id and nothing else."""

from uuid import UUID

import structlog
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

from config.celery import app

from . import metrics

log = structlog.get_logger(__name__)


def _send(task: str, generation: UUID, queue: str, countdown: float | None, *args: object) -> None:
    """A broker that can't be reached is no error here: the generation stays pending in the database and
    the reaper sends it again."""
    try:
        app.send_task(
            f"inference.tasks.{task}",
            (str(generation), *args),
            queue=queue,
            countdown=countdown,
            retry=False,
            ignore_result=True,
        )
    except (KombuError, RedisError, OSError) as error:
        log.warning("dispatch_failed", task=task, generation=str(generation), error=str(error))
        metrics.STAGE_ERRORS.labels(stage="dispatch").inc()


def answer(generation: UUID) -> None:
    _send("answer", generation, "answer", None)


def generate(generation: UUID) -> None:
    _send("generate", generation, "generate", None)


def check_follower(generation: UUID, position: str, seconds: float) -> None:
    _send("check_follower", generation, "answer", seconds, position)
