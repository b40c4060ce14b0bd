"""Celery tasks of the console."""

from celery import shared_task

from . import tallies


@shared_task
def count_hours() -> None:
    tallies.count_hours()
