"""Someone at a websocket, as the page speaks to it, with a stopwatch."""

import json
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import websockets
from websockets.asyncio.client import ClientConnection


@dataclass(frozen=True)
class Answer:
    """One question's way, in milliseconds since it was sent."""

    text: str
    served_by: str
    status: str
    first_delta: float
    done: float
    server: dict[str, Any]


class Person:
    """A guest with a browser session of their own."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def ask(self, text: str) -> Answer:
        """Ask in a new conversation. Raises RuntimeError for an error frame."""
        frame = {"type": "message.send", "client_id": uuid.uuid4().hex, "conversation": None, "text": text}
        started, first, answer = time.perf_counter(), 0.0, ""
        await self.socket.send(json.dumps(frame))
        while True:
            got = json.loads(await self.socket.recv())
            now = (time.perf_counter() - started) * 1000
            match got["type"]:
                case "generation.delta":
                    first = first or now
                    answer += got["text"]
                case "generation.snapshot":
                    answer = got["text"]
                case "generation.done":
                    return Answer(answer, got["served_by"], got["status"], first, now, got["timings"])
                case "error":
                    raise RuntimeError(f"{got['code']}: {got['message']}")


@asynccontextmanager
async def person(address: str) -> AsyncIterator[Person]:
    """A new guest, connected."""
    async with httpx.AsyncClient(base_url=address, trust_env=False, timeout=30) as browser:
        (await browser.get("/")).raise_for_status()
        cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    url = address.replace("http", "ws", 1) + "/ws/chat/"
    headers = {"Cookie": cookies, "Origin": address}
    async with websockets.connect(url, additional_headers=headers, proxy=None) as socket:
        yield Person(socket)
