"""A conversation that is deleted, by its person or along with their account, takes along what it left in the
cache."""

from typing import Any

from django.db.models.signals import post_delete
from django.dispatch import receiver

from inference import service as inference

from .models import Conversation


@receiver(post_delete, sender=Conversation)
def _forget(instance: Conversation, **_: Any) -> None:
    inference.forget_session(instance.pk)
