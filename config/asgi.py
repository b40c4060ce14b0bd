"""Web entry point: HTTP by Django, websockets by Channels, both behind the session cookie."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")
django_application = get_asgi_application()

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.urls import path  # noqa: E402

from cacheadmin.live import ConsoleConsumer  # noqa: E402
from chat.consumers import ChatConsumer  # noqa: E402
from chat.origin import SameOrigin  # noqa: E402
from config import logging, tracing  # noqa: E402
from config.garbage import settle  # noqa: E402

logging.configure()
tracing.configure("reprise-web")

application = ProtocolTypeRouter(
    {
        "http": django_application,
        "websocket": SameOrigin(
            AuthMiddlewareStack(
                URLRouter(
                    [path("ws/chat/", ChatConsumer.as_asgi()), path("ws/console/", ConsoleConsumer.as_asgi())]
                )
            )
        ),
    }
)

settle()
