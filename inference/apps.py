from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate, post_save


class InferenceConfig(AppConfig):
    name = "inference"
    verbose_name = "Inference and cache"

    def ready(self) -> None:
        from inference import checks, metrics  # noqa: F401  (registers the checks)
        from inference.cache import vectors
        from inference.models import Cause, Observation, Outcome

        post_migrate.connect(vectors.ensure_indexes, sender=self)
        # Verdicts come from many places; all of them are rows.
        post_save.connect(_count_verdict, sender=Observation)
        metrics.declare([*Cause.values, "source", "version", "flush"], Outcome.values)


def _count_verdict(instance: Any, created: bool, **_: object) -> None:
    from inference import metrics

    if created:
        metrics.OBSERVATIONS.labels(source=instance.source, verdict=instance.verdict).inc()
