"""Who is asking: an account, or a guest tied to a browser session."""

import uuid
from collections.abc import Mapping
from typing import Any, Protocol

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.base import SessionBase

from .models import Owner

GUEST_KEY = "guest"


class HasUserAndSession(Protocol):
    """An HttpRequest, as far as it matters here."""

    user: Any
    session: SessionBase


def _owner(user: Any, session: SessionBase) -> Owner | None:
    if user is not None and user.is_authenticated:
        return Owner(user_id=user.pk)
    guest = session.get(GUEST_KEY)
    if settings.GUEST_CHAT and guest:
        return Owner(guest=uuid.UUID(guest))
    return None


def owner_of(request: HasUserAndSession, *, create: bool = False) -> Owner | None:
    """The owner behind a request; None when nobody who may chat. With `create` a guest id is put into the
    browser's session where guests may chat and there is none yet."""
    owner = _owner(request.user, request.session)
    if owner is None and create and settings.GUEST_CHAT:
        request.session[GUEST_KEY] = str(uuid.uuid4())
        owner = _owner(AnonymousUser(), request.session)
    return owner


def owner_of_scope(scope: Mapping[str, Any]) -> Owner | None:
    """The owner behind a websocket's ASGI scope (reads the session: call it where queries are allowed)."""
    return _owner(scope.get("user"), scope["session"])
