"""Asking a running Reprise whether it would answer a question."""

import http.client
import json
import urllib.error
import urllib.request

# Loopback is never to be reached through a proxy that the environment names.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def missing(address: str) -> str | None:
    """None if GET {address}/healthz is 200, else in words what is missing."""
    try:
        with _opener.open(f"{address}/healthz", timeout=10):
            return None
    except urllib.error.HTTPError as error:
        return _words(error)
    except (OSError, http.client.HTTPException):
        return "web"


def _words(error: urllib.error.HTTPError) -> str:
    text = error.read(2000).decode(errors="replace").strip()
    try:
        found = json.loads(text)["missing"]
    except (ValueError, KeyError, TypeError):
        return text.splitlines()[0][:200] if text else f"status {error.code}"
    return ", ".join(map(str, found)) if isinstance(found, list) else str(found)
