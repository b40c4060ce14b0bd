"""Asking a server over HTTP: streams of JSON events, patience with a busy server, and two kinds of refusal.

What the server or the way to it is to blame for (429, 5xx, no connection, silence, a stream that breaks off)
is EngineUnavailable; what the request is to blame for (other 4xx, an answer nobody can read) is EngineFailed.
"""

import asyncio
import email.utils
import json
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any

import httpx2

from inference.engines.base import EngineFailed, EngineUnavailable

Json = dict[str, Any]

# Waits between attempts: about 0.5, 1, 2 ... s, each shortened by chance to as little as half, so that
# those who were turned away together don't come back together.
FIRST_WAIT = 0.5
LONGEST_WAIT = 8.0
# A server that asks for more patience than a person has is called unavailable at once.
LONGEST_RETRY_AFTER = 20.0
# Statuses that say "later": time-out, conflict, too early, too many requests, and all of 5xx.
_LATER = frozenset({408, 409, 425, 429})


class _Later(Exception):
    """It didn't work and may the next time; `after`: seconds the server asked for."""

    def __init__(self, problem: str, after: float | None = None) -> None:
        super().__init__(problem)
        self.after = after


class Endpoint:
    """The server at `url`. Time limits in seconds: `connect` until it accepts, `silence` between two signs
    of life. `attempts` counts the first one too. To be used on one event loop."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str = "",
        connect: float = 5.0,
        silence: float = 60.0,
        attempts: int = 3,
    ) -> None:
        parts = httpx2.URL(url)
        if parts.scheme not in ("http", "https") or not parts.host:
            raise ValueError(f"An engine's address must begin with http:// or https://, not {url!r}")
        self.url = str(parts.copy_with(userinfo=b"")).rstrip("/")
        self._attempts = max(1, attempts)
        self._client = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            auth=(parts.username, parts.password) if parts.username and not api_key else None,
            timeout=httpx2.Timeout(silence, connect=connect),
            # Many long streams at once are the rule here; a limit would make them wait for each other.
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def get_text(self, url: str) -> str:
        """The body at `url`, asked for once. Raises EngineUnavailable, EngineFailed."""
        try:
            return (await self._send("GET", url, None)).text
        except _Later as problem:
            raise self._unavailable(problem) from problem

    async def ask(self, method: str, url: str, body: Json | None = None) -> Json:
        """The JSON object at `url`. Raises EngineUnavailable, EngineFailed (Refused with its status, such as
        404 for what the server doesn't offer)."""
        for attempt in range(1, self._attempts + 1):
            try:
                response = await self._send(method, url, body)
                return _object(response.text)
            except _Later as problem:
                await self._wait(attempt, problem)
        raise AssertionError("the last attempt returns or raises")

    async def events(
        self, url: str, body: Json, *, answers: Callable[[Json], bool]
    ) -> AsyncGenerator[Json, None]:
        """The events that the server streams, up to `[DONE]` or its end. Tried again while no event has come
        for which `answers` is true, that is, no part of the answer: from then on a break is a break.
        Raises EngineUnavailable, EngineFailed. Closing it closes the connection."""
        for attempt in range(1, self._attempts + 1):
            begun = False
            try:
                async with aclosing(self._events_once(url, body)) as events:
                    async for event in events:
                        begun = begun or answers(event)
                        yield event
                return
            except _Later as problem:
                if begun:
                    raise self._unavailable(problem) from problem
                await self._wait(attempt, problem)

    async def _events_once(self, url: str, body: Json) -> AsyncGenerator[Json, None]:
        try:
            async with self._client.stream("POST", url, json=body) as response:
                if response.is_error:
                    await response.aread()
                _raise_for(response)
                events = aiter(httpx2.EventSource(response))
                async for event in events:
                    if event.data == "[DONE]":
                        await _read_out(events)
                        return
                    yield _event(event.data)
        except httpx2.SSEError as problem:
            raise EngineFailed(f"The server sent no stream of events: {problem}") from problem
        except httpx2.HTTPError as problem:
            raise _Later(_words(problem)) from problem

    async def _send(self, method: str, url: str, body: Json | None) -> httpx2.Response:
        try:
            response = await self._client.request(method, url, json=body)
        except httpx2.HTTPError as problem:
            raise _Later(_words(problem)) from problem
        _raise_for(response)
        return response

    async def _wait(self, attempt: int, problem: _Later) -> None:
        """Before the next attempt; raises EngineUnavailable when there is to be none."""
        wait = min(FIRST_WAIT * 2 ** (attempt - 1), LONGEST_WAIT) * random.uniform(0.5, 1)
        if problem.after is not None:
            wait = max(wait, problem.after)
        if attempt == self._attempts or wait > LONGEST_RETRY_AFTER:
            raise self._unavailable(problem) from problem
        await asyncio.sleep(wait)

    def _unavailable(self, problem: _Later) -> EngineUnavailable:
        return EngineUnavailable(f"{self.url}: {problem}")


async def _read_out(events: AsyncIterator[object]) -> None:
    """Reads a finished stream to its very end, if that is there: the connection can then be used again."""
    with suppress(TimeoutError, httpx2.HTTPError):
        async with asyncio.timeout(0.05):
            async for _ in events:
                pass


class Refused(EngineFailed):
    """The server answered with a 4xx that asking again won't change. `status` is its number."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(f"The server refused ({status}): {problem}")
        self.status = status


def _raise_for(response: httpx2.Response) -> None:
    status = response.status_code
    if status < 300:
        return
    said = _said(response.text) if response.is_error else "it sends elsewhere"
    if status >= 500 or status in _LATER:
        raise _Later(f"status {status}: {said}", _retry_after(response.headers))
    raise Refused(status, said)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds from a Retry-After header, which gives seconds or a date."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    with suppress(ValueError):
        return max(0.0, float(value))
    with suppress(ValueError):
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    return None


def _event(data: str) -> Json:
    """One event of a stream; some servers announce there, under status 200, that they failed."""
    event = _object(data)
    error = event.get("error")
    if not error:
        return event
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, int) and 400 <= code < 500 and code not in _LATER:
        raise Refused(code, _said(data))
    raise _Later(_said(data))


def _object(text: str) -> Json:
    try:
        found = json.loads(text)
    except ValueError as problem:
        raise EngineFailed(f"The server sent something else than JSON: {text[:200]!r}") from problem
    if not isinstance(found, dict):
        raise EngineFailed(f"The server sent no JSON object: {text[:200]!r}")
    return found


def _said(text: str) -> str:
    """The server's own words in an error body, in a line."""
    with suppress(ValueError):
        body = json.loads(text)
        error = body.get("error", body) if isinstance(body, dict) else body
        text = str(error.get("message", error) if isinstance(error, dict) else error)
    return " ".join(text.split())[:300] or "no reason given"


def _words(problem: Exception) -> str:
    """httpx's time-outs have no text of their own."""
    return f"{type(problem).__name__} {problem}".strip()
