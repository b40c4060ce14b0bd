"""Celery: `answer` looks up, `generate` computes. Both are thread pools: an engine must not be forked."""

import os

from celery import Celery
from celery.signals import setup_logging

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")

app = Celery("reprise")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect
def _configure_logging(**_: object) -> None:
    """Our own logging instead of Celery's, so that all processes write alike."""
    from config.logging import configure

    configure()
