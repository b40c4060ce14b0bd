"""A person's browser without the browser: a session cookie, and tabs with a websocket each."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

import httpx
from pydantic import TypeAdapter
from websockets.asyncio.client import ClientConnection, connect

from chat import protocol
from tests.stack import Stack

# A busy machine with two cores, and a model that may have to be waited for.
PATIENCE_SECONDS = 60.0
F = TypeVar("F", bound=protocol.Frame)

_server_frame: TypeAdapter[Any] = TypeAdapter(protocol.ServerFrame)


@dataclass
class Answer:
    """What a page holds of a generation. It takes a delta only if it is the next one: so a piece that is
    doubled or lost fails whichever test happens to see it."""

    text: str = ""
    seq: int = 0
    deltas: list[protocol.Delta] = field(default_factory=list)
    snapshots: list[protocol.Snapshot] = field(default_factory=list)
    done: protocol.Done | None = None

    def take(self, frame: protocol.Delta | protocol.Snapshot | protocol.Done) -> None:
        assert self.done is None, f"{frame} behind the end"
        if isinstance(frame, protocol.Done):
            self.done = frame
        elif isinstance(frame, protocol.Snapshot):
            self.text, self.seq = frame.text, frame.seq
            self.snapshots.append(frame)
        else:
            assert frame.seq == self.seq + 1, f"delta {frame.seq} behind {self.seq}"
            self.text, self.seq = self.text + frame.text, frame.seq
            self.deltas.append(frame)

    def text_at(self, seq: int) -> str:
        """What was on the screen at `seq`, of an answer that came in deltas only."""
        return "".join(delta.text for delta in self.deltas if delta.seq <= seq)


class Tab:
    """One connected socket. Frames that were not asked for yet wait in `frames`, but for deltas and
    snapshots: of those the answers are built up while they come in."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.frames: list[protocol.Frame] = []
        self.answers: dict[UUID, Answer] = {}

    async def send(self, type: str, **fields: Any) -> None:
        await self.send_raw(json.dumps({"type": type, **fields}, default=str))

    async def send_raw(self, message: str | bytes) -> None:
        await self.socket.send(message)

    async def expect(self, kind: type[F], within: float = PATIENCE_SECONDS, **values: Any) -> F:
        """The next frame of this kind with these values; others wait. Raises TimeoutError."""

        def fits(frame: protocol.Frame) -> bool:
            return isinstance(frame, kind) and all(getattr(frame, k) == v for k, v in values.items())

        frame = await self.until(fits, within)
        assert isinstance(frame, kind)
        return frame

    async def until(
        self, fits: Callable[[protocol.Frame], bool], within: float = PATIENCE_SECONDS
    ) -> protocol.Frame:
        for frame in self.frames:
            if fits(frame):
                self.frames.remove(frame)
                return frame
        async with _deadline(within, self):
            while not fits(frame := await self._receive()):
                if not isinstance(frame, protocol.Delta | protocol.Snapshot):
                    self.frames.append(frame)
            return frame

    async def _receive(self) -> protocol.Frame:
        raw = json.loads(await self.socket.recv())
        frame: protocol.Frame = _server_frame.validate_python(raw)
        assert frame.model_dump(mode="json") == raw, "a frame has exactly the fields of the protocol"
        if isinstance(frame, protocol.Delta | protocol.Snapshot | protocol.Done):
            self.answers.setdefault(frame.generation, Answer()).take(frame)
        return frame

    # --- what a page does -------------------------------------------------------------------------

    async def say(self, text: str, conversation: UUID | None = None, **fields: Any) -> protocol.Accepted:
        """Send a message, and wait until it is accepted. AssertionError with the error frame if refused."""
        return await self.request(
            "message.send", text=text, conversation=conversation, **{"parent": None, **fields}
        )

    async def request(self, type: str, **fields: Any) -> protocol.Accepted:
        client_id = str(fields.pop("client_id", None) or uuid.uuid4())
        await self.send(type, client_id=client_id, **fields)
        frame = await self.until(lambda frame: getattr(frame, "client_id", None) == client_id)
        assert isinstance(frame, protocol.Accepted), frame
        return frame

    async def refused(self, type: str, **fields: Any) -> protocol.Error:
        """Send what is answered by an error."""
        await self.send(type, **fields)
        return await self.expect(protocol.Error)

    async def first_words(self, generation: UUID) -> Answer:
        """Until something of this answer is on the screen."""
        answer = self.answers.setdefault(generation, Answer())
        if not answer.text:
            await self.until(lambda _: bool(answer.text))
        return answer

    async def whole(self, generation: UUID, within: float = PATIENCE_SECONDS) -> Answer:
        """Until this answer is over."""
        await self.expect(protocol.Done, within, generation=generation)
        return self.answers[generation]

    async def hear(self, text: str, conversation: UUID | None = None) -> Answer:
        """Say something, and read the whole answer."""
        accepted = await self.say(text, conversation)
        return await self.whole(accepted.generation)

    async def resume(self, generation: UUID, after: int = 0, text: str = "") -> None:
        """Go on with an answer of which `text` is held, up to seq `after`."""
        self.answers[generation] = Answer(text, after)
        await self.send("generation.resume", generation=generation, after=after)

    async def is_open(self) -> bool:
        await self.send("ping")
        await self.expect(protocol.Pong)
        return True


class Person:
    """Someone with a browser: cookies, and as many tabs as they like."""

    def __init__(self, stack: Stack, http: httpx.AsyncClient) -> None:
        self.stack, self.http = stack, http

    @asynccontextmanager
    async def tab(self, *, origin: str | None = None, **options: Any) -> AsyncIterator[Tab]:
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.http.cookies.jar)
        headers = {"Cookie": cookies} if cookies else {}
        async with connect(
            self.stack.ws_url,
            origin=self.stack.url if origin is None else origin,
            additional_headers=headers,
            proxy=None,
            close_timeout=1,  # frames that nobody read would hold up the farewell
            **options,
        ) as socket:
            yield Tab(socket)

    async def log_in(self, username: str, password: str) -> None:
        await self._submit("/accounts/login/", login=username, password=password)

    async def log_out(self) -> None:
        await self._submit("/accounts/logout/")

    async def _submit(self, path: str, **fields: str) -> None:
        await self.http.get(path)
        token = {"csrfmiddlewaretoken": self.http.cookies["csrftoken"]}
        referrer = {"Referer": f"{self.stack.url}{path}"}
        answer = await self.http.post(path, data=fields | token, headers=referrer)
        assert answer.url.path != path, f"The form at {path} was not accepted."


@asynccontextmanager
async def stranger(stack: Stack) -> AsyncIterator[Person]:
    """A browser that has never been here."""
    async with httpx.AsyncClient(base_url=stack.url, follow_redirects=True, trust_env=False) as http:
        yield Person(stack, http)


@asynccontextmanager
async def guest(stack: Stack) -> AsyncIterator[Person]:
    """A browser that has opened the chat page."""
    async with stranger(stack) as person:
        (await person.http.get("/")).raise_for_status()
        yield person


@asynccontextmanager
async def stack_client(stack: Stack) -> AsyncIterator[Tab]:
    """A guest with one tab."""
    async with guest(stack) as person, person.tab() as tab:
        yield tab


@asynccontextmanager
async def _deadline(seconds: float, tab: Tab) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        waiting = "\n".join(str(frame)[:200] for frame in tab.frames[-10:])
        raise AssertionError(f"The frame did not come within {seconds} s. Others did:\n{waiting}") from None
