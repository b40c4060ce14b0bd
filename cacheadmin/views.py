"""What other systems may tell the cache."""

import json
from typing import Any

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from inference import bearer
from inference.sources import UnknownSource

from .invalidating import invalidate

_WHY = {401: "Show the token: Authorization: Bearer …", 403: "This is not the token."}


class _Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


# Whoever has the token is no browser that could be tricked into sending a cookie.
@csrf_exempt
@require_POST
def source_changed(request: HttpRequest) -> JsonResponse:
    """`{"key", "version"}` in JSON (version may be left out): this source has changed. Answers `{"key",
    "version", "entries"}`, entries being how many are served no more; or `{"error"}` with 400, 401 (no token
    shown), 403 (a wrong one) or 404 (no such source, or nobody may tell)."""
    try:
        _authorise(request)
        key, version = _told(request.body)
        done = invalidate(key, version, f"http {request.META.get('REMOTE_ADDR', '')}".strip())
    except _Refused as refused:
        answer = JsonResponse({"error": refused.message}, status=refused.status)
        if refused.status == 401:
            answer["WWW-Authenticate"] = "Bearer"
        return answer
    except UnknownSource:
        return JsonResponse({"error": "No answer was ever made from a source of this key."}, status=404)
    except ValueError as problem:
        return JsonResponse({"error": str(problem)}, status=400)
    return JsonResponse({"key": done.key, "version": done.version, "entries": done.entries})


def _authorise(request: HttpRequest) -> None:
    if not settings.SOURCES_TOKEN:
        raise _Refused(404, "Nobody may tell of sources here: SOURCES_TOKEN is not set.")
    status = bearer.status(request.headers.get("Authorization", ""), settings.SOURCES_TOKEN)
    if status != 200:
        raise _Refused(status, _WHY[status])


def _told(body: bytes) -> tuple[str, str]:
    try:
        told: Any = json.loads(body)
    except (ValueError, RecursionError) as problem:
        raise _Refused(400, "The body is not JSON.") from problem
    if not isinstance(told, dict) or set(told) - {"key", "version"} or "key" not in told:
        raise _Refused(400, 'The body is {"key": …} or {"key": …, "version": …}.')
    if not all(isinstance(value, str) for value in told.values()):
        raise _Refused(400, "key and version are texts.")
    return told["key"], told.get("version", "")
