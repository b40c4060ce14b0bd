"""Signing up, in and out: what becomes of a guest's conversations, and of an account's open sockets."""

from typing import Any
from uuid import UUID

import structlog
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.dispatch import receiver
from django.http import HttpRequest
from redis.exceptions import RedisError

from .models import Owner
from .owners import GUEST_KEY
from .services import adopt_guest

log = structlog.get_logger(__name__)


@receiver(user_logged_in)
def _adopt(sender: object, request: HttpRequest, user: Any, **_: object) -> None:
    """A guest who signs up or logs in keeps the conversations of this browser. allauth logs in whoever has
    just signed up, so that this one signal covers both. The guest's other tabs notice and load anew."""
    guest = request.session.pop(GUEST_KEY, None) if hasattr(request, "session") else None
    if guest:
        adopt_guest(UUID(guest), Owner(user_id=user.pk))


@receiver(user_logged_out)
def _leave(sender: object, user: Any, **_: object) -> None:
    if user is not None:
        _close_sockets(Owner(user_id=user.pk))


def _close_sockets(owner: Owner) -> None:
    """A socket is opened as somebody and stays so. Another browser that is still signed in connects again."""
    try:
        async_to_sync(get_channel_layer().group_send)(owner.group, {"type": "owner.left"})
    except (RedisError, OSError) as error:
        log.warning("group_unavailable", error=str(error))
