"""Who may read the figures, and where a worker tells them: Prometheus comes and asks."""

import ipaddress
import threading
from collections.abc import Callable, Iterable, Mapping
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import structlog
from django.conf import settings
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE

from . import bearer, metrics

log = structlog.get_logger(__name__)


def may_read(address: str, authorization: str, *, forwarded: bool) -> int:
    """200 if whoever asks from `address` may read the figures, else the status that says why not: 401 (no
    token shown) or 403. With METRICS_TOKEN whoever shows it may; without one only this machine, and nobody on
    whose behalf a proxy asks."""
    if settings.METRICS_TOKEN:
        return bearer.status(authorization, settings.METRICS_TOKEN)
    return 200 if _is_loopback(address) and not forwarded else 403


def was_forwarded(environ: Mapping[str, Any]) -> bool:
    """Did a proxy pass this request on? By the headers (in WSGI's names) that proxies add."""
    return any(
        name.startswith("HTTP_X_FORWARDED") or name in ("HTTP_FORWARDED", "HTTP_VIA", "HTTP_X_REAL_IP")
        for name in environ
    )


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


# --- of a worker ------------------------------------------------------------------------------------


def listen() -> int | None:
    """Tell what this worker counts on METRICS_PORT, of loopback only unless there is a METRICS_TOKEN. Returns
    the port; None where it tells nothing itself: no port is set, the web processes tell it too, or another
    process has the port."""
    if not settings.METRICS_PORT or metrics.are_shared():
        return None
    host = settings.METRICS_HOST if settings.METRICS_TOKEN else "127.0.0.1"
    try:
        server = make_server(host, settings.METRICS_PORT, _answer, _Server, _Quiet)
    except OSError as error:
        log.warning("metrics_not_told", port=settings.METRICS_PORT, error=str(error))
        return None
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server.server_port


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """A scrape every few seconds is nothing to note."""


def _answer(environ: dict[str, Any], start: Callable[..., object]) -> Iterable[bytes]:
    allowed = may_read(
        environ.get("REMOTE_ADDR", ""),
        environ.get("HTTP_AUTHORIZATION", ""),
        forwarded=was_forwarded(environ),
    )
    if allowed == 200 and environ.get("PATH_INFO") != "/metrics":
        allowed = 404
    if allowed != 200:
        words = {401: "401 Unauthorized", 403: "403 Forbidden", 404: "404 Not Found"}
        start(words[allowed], [("Content-Type", "text/plain"), ("WWW-Authenticate", "Bearer")])
        return [b""]
    start("200 OK", [("Content-Type", CONTENT_TYPE), ("Cache-Control", "no-store")])
    return [metrics.exposition()]
