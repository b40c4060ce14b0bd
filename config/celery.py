"""Celery: `answer` looks up, `generate` computes. Both are thread pools: an engine must not be forked."""

import os

from celery import Celery
from celery.signals import setup_logging, worker_init, worker_ready

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")

app = Celery("reprise")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect
def _configure_logging(**_: object) -> None:
    """Our own logging instead of Celery's, so that all processes write alike."""
    from config.logging import configure

    configure()


@worker_init.connect
def _configure_tracing(**_: object) -> None:
    from config import tracing

    tracing.configure("reprise-worker")


@worker_init.connect
def _spare_flushes(**_: object) -> None:
    """Workers don't wait for the disk: should Postgres (not a worker) crash, the last half second of their
    work is as if it had not happened yet, and the reaper sends it again. What people type is stored by the
    web processes, which do wait."""
    from django.db import connections

    options = connections["default"].settings_dict["OPTIONS"]
    options["options"] = f"{options.get('options', '')} -c synchronous_commit=off".strip()


@worker_ready.connect
def _settle(**_: object) -> None:
    from config.garbage import settle

    settle()
