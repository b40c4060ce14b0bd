"""A guest who signs up or logs in keeps the conversations of this browser."""

from typing import Any
from uuid import UUID

from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver
from django.http import HttpRequest

from .models import Owner
from .owners import GUEST_KEY
from .services import adopt_guest


@receiver(user_logged_in)
def _adopt(sender: object, request: HttpRequest, user: Any, **_: object) -> None:
    """allauth logs in whoever has just signed up, so that this one signal covers both."""
    guest = request.session.pop(GUEST_KEY, None) if hasattr(request, "session") else None
    if guest:
        adopt_guest(UUID(guest), Owner(user_id=user.pk))
