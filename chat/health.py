"""Would a question be answered now? For load balancers, and for `make run`, which waits for it."""

import redis
from django.db import DatabaseError, InterfaceError, connection
from django.http import HttpRequest, JsonResponse

from inference import workers
from inference.redis import client


def missing() -> list[str]:
    """What a question would wait for in vain; empty when it would be answered."""
    gone = []
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM inference_generation LIMIT 1")
    except (DatabaseError, InterfaceError):
        gone.append("database")
    try:
        client().ping()
        gone += [f"{queue} worker" for queue in ("answer", "generate") if not workers.alive(queue)]
    except redis.RedisError:
        gone.append("valkey")
    return gone


def healthz(request: HttpRequest) -> JsonResponse:
    gone = missing()
    body = {"status": "ok" if not gone else "unavailable", "missing": gone}
    response = JsonResponse(body, status=503 if gone else 200, headers={"Cache-Control": "no-store"})
    # A 503 is the answer here, not an error of ours: while starting it would fill the log.
    setattr(response, "_has_been_logged", True)  # noqa: B010  (unknown to the stubs)
    return response
