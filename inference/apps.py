from django.apps import AppConfig
from django.db.models.signals import post_migrate


class InferenceConfig(AppConfig):
    name = "inference"
    verbose_name = "Inference and cache"

    def ready(self) -> None:
        from inference import checks  # noqa: F401  (registers them)
        from inference.cache import vectors

        post_migrate.connect(vectors.ensure_indexes, sender=self)
