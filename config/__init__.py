"""How the project is put together. Imports the Celery app so that tasks find it in every process."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
