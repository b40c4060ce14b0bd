"""A websocket is opened by our own pages only: browsers send cookies along with a stranger's as well."""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host

_PORTS = {"http": "80", "https": "443"}
Application = Callable[..., Awaitable[Any]]


def own(origin: str, host: str) -> bool:
    """Is `origin` (of the page that opens the socket) the site that answers to `host`, both as their headers
    say? Like Django's check of forms: the same host and port, or one of CSRF_TRUSTED_ORIGINS."""
    if not validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
        return False
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    try:
        page = urlsplit(origin)
        port = str(page.port or _PORTS[page.scheme])
    except (ValueError, KeyError):
        return False
    domain, host_port = split_domain_port(host)
    # Behind TLS that ends elsewhere a Host without port may mean either.
    return _bare(page.netloc) == domain and (port == host_port if host_port else port in _PORTS.values())


def _bare(netloc: str) -> str:
    return split_domain_port(netloc)[0]


class SameOrigin:
    """ASGI middleware: refuses the handshake (403) of a page that is not ours."""

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        headers = {name: value.decode("latin1") for name, value in scope["headers"]}
        inside = self.application
        if not own(headers.get(b"origin", ""), headers.get(b"host", "")):
            inside = WebsocketDenier()
        return await inside(scope, receive, send)
