"""Someone at a websocket, as the page speaks to it, with a stopwatch."""

import json
import re
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import websockets
from websockets.asyncio.client import ClientConnection


@dataclass(frozen=True)
class Answer:
    """One question's way, in milliseconds since it was sent. `entry`: the cache's entry that it was answered
    from or became; `signal`: how it was understood as taking something back."""

    text: str
    served_by: str
    status: str
    first_delta: float
    done: float
    server: dict[str, Any]
    asked: str = ""
    conversation: str = ""
    entry: str | None = None
    signal: str | None = None
    generation: str = ""


class Person:
    """A guest with a browser session of their own."""

    def __init__(self, socket: ClientConnection, browser: httpx.AsyncClient) -> None:
        self.socket, self.browser = socket, browser

    async def converse(self, turns: Sequence[str], conversation: str | None = None) -> list[Answer]:
        """Ask one after the other, in a new conversation or going on with this one."""
        answers: list[Answer] = []
        for text in turns:
            answers.append(await self.ask(text, answers[-1].conversation if answers else conversation))
        return answers

    async def undo(self, conversation: str) -> None:
        """Undo what was understood as corrections in this conversation."""
        page = await self.browser.get(f"/c/{conversation}/corrections/")
        headers = {"X-CSRFToken": self.browser.cookies["csrftoken"], "HX-Request": "true"}
        headers["Referer"] = str(self.browser.base_url)
        for path in re.findall(r'hx-post="([^"]+)"', page.text):
            (await self.browser.post(path, headers=headers)).raise_for_status()

    async def ask(self, text: str, conversation: str | None = None) -> Answer:
        """Ask in a new conversation, or in this one. Raises RuntimeError for an error frame."""
        client_id = uuid.uuid4().hex
        frame = {"type": "message.send", "client_id": client_id, "conversation": conversation, "text": text}
        started, first, answer, signal = time.perf_counter(), 0.0, "", None
        generation = ""
        await self.socket.send(json.dumps(frame))
        while True:
            got = json.loads(await self.socket.recv())
            now = (time.perf_counter() - started) * 1000
            match got["type"]:
                case "message.accepted":
                    conversation, generation = got["conversation"], got["generation"]
                case "cache.invalidated":
                    signal = got["signal"]
                case "generation.delta":
                    first = first or now
                    answer += got["text"]
                case "generation.snapshot":
                    answer = got["text"]
                case "generation.done":
                    served = (got["served_by"], got["status"], first, now, got["timings"])
                    about = (text, conversation or "", got["entry"], signal, generation)
                    return Answer(answer, *served, *about)
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
            yield Person(socket, browser)
