"""What every template may use: the reader's theme and whether guests may chat."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest

THEME_COOKIE = "theme"
THEMES = ("light", "dark")


def chat(request: HttpRequest) -> dict[str, Any]:
    """`theme` is empty where the system's own is to be followed. It comes from a cookie, not from a
    script, so that a page is never drawn in the wrong colours first."""
    theme = request.COOKIES.get(THEME_COOKIE, "")
    return {"theme": theme if theme in THEMES else "", "guest_chat": settings.GUEST_CHAT}
