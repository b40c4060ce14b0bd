"""Celery tasks of the console."""

from uuid import UUID

from celery import shared_task

from . import flushing, sampling, tallies, tuning


@shared_task
def count_hours() -> None:
    tallies.count_hours()


@shared_task
def calibrate() -> None:
    tuning.recalibrate()


@shared_task
def sample_load() -> None:
    sampling.sample()


@shared_task
def flush(batch: str) -> None:
    flushing.go_on(UUID(batch))
