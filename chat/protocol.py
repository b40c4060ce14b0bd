"""The websocket's frames: every one that may come in, every one that may go out, and nothing else.

Incoming frames are validated here; outgoing ones are built only here.
"""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from inference.ending import Ending
from inference.ending import Invalidated as Told

from .models import Message


def _is_storable(text: str) -> bool:
    """Postgres keeps neither a NUL nor half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in text


def _storable(text: str) -> str:
    if not _is_storable(text):
        raise ValueError("contains a NUL character or half of a surrogate pair")
    return text


Text = Annotated[str, AfterValidator(_storable)]
ClientId = Annotated[Text, Field(min_length=1, max_length=64)]
Seq = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Frame(BaseModel):
    model_config = ConfigDict(extra="ignore")


# --- from the client ----------------------------------------------------------------------------


class Send(Frame):
    type: Literal["message.send"]
    client_id: ClientId
    conversation: UUID | None = None
    text: Text
    parent: UUID | None = None


class Regenerate(Frame):
    type: Literal["message.regenerate"]
    client_id: ClientId
    message: UUID


class Edit(Frame):
    type: Literal["message.edit"]
    client_id: ClientId
    message: UUID
    text: Text


class Stop(Frame):
    type: Literal["generation.stop"]
    generation: UUID
    seen: Seq


class Resume(Frame):
    type: Literal["generation.resume"]
    generation: UUID
    after: Seq = 0


class Ping(Frame):
    type: Literal["ping"]


ClientFrame = Annotated[Send | Regenerate | Edit | Stop | Resume | Ping, Field(discriminator="type")]
_client_frame: TypeAdapter[Send | Regenerate | Edit | Stop | Resume | Ping] = TypeAdapter(ClientFrame)


# --- to the client ------------------------------------------------------------------------------


class Accepted(Frame):
    type: Literal["message.accepted"] = "message.accepted"
    client_id: str
    conversation: UUID
    message: UUID
    reply: UUID
    generation: UUID


class Snapshot(Frame):
    """Replaces what the client holds of this generation."""

    type: Literal["generation.snapshot"] = "generation.snapshot"
    generation: UUID
    text: str
    seq: int


class Delta(Frame):
    type: Literal["generation.delta"] = "generation.delta"
    generation: UUID
    seq: int
    text: str


class Usage(Frame):
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0


class Timings(Frame):
    """Milliseconds since the question was accepted (lookup_ms: spent looking)."""

    queue_ms: float | None = None
    lookup_ms: float | None = None
    first_token_ms: float | None = None
    total_ms: float | None = None


class Done(Frame):
    type: Literal["generation.done"] = "generation.done"
    generation: UUID
    status: str
    served_by: str
    entry: UUID | None = None
    usage: Usage = Usage()
    timings: Timings = Timings()


class Invalidated(Frame):
    """So many entries are used no more in this conversation; without one, in all: the version was bumped."""

    type: Literal["cache.invalidated"] = "cache.invalidated"
    conversation: UUID | None
    signal: str
    entries: int


class Error(Frame):
    type: Literal["error"] = "error"
    code: str
    message: str
    retryable: bool = False
    client_id: str | None = None


class Pong(Frame):
    type: Literal["pong"] = "pong"


# What a failed generation tells the person, by its error code. All of these may be tried again.
FAILURES = {
    "busy": "Too many questions are waiting for the model. Try again in a moment.",
    "engine_unavailable": "The model is not running at the moment. Your question is kept; try again shortly.",
    "engine_failed": "The model could not answer this. Try again, or ask differently.",
    "internal": "Something went wrong on our side. Your question is kept; try again.",
}


def failure(code: str, client_id: str | None) -> Error:
    message = FAILURES.get(code, FAILURES["internal"])
    return Error(code=code or "internal", message=message, retryable=True, client_id=client_id)


def accepted(client_id: str, reply: Message) -> Accepted:
    """For the message whose answer `reply` is."""
    assert reply.parent_id is not None and reply.generation_id is not None
    return Accepted(
        client_id=client_id,
        conversation=reply.conversation_id,
        message=reply.parent_id,
        reply=reply.pk,
        generation=reply.generation_id,
    )


def done(generation: UUID, ending: Ending) -> Done:
    return Done(
        generation=generation,
        status=ending.status,
        served_by=ending.served_by,
        entry=UUID(ending.entry) if ending.entry else None,
        usage=Usage(
            prompt_tokens=ending.prompt_tokens,
            cached_tokens=ending.cached_tokens,
            completion_tokens=ending.completion_tokens,
        ),
        timings=Timings(
            queue_ms=ending.queue_ms,
            lookup_ms=ending.lookup_ms,
            first_token_ms=ending.first_token_ms,
            total_ms=ending.total_ms,
        ),
    )


def invalidated(conversation: UUID, told: Told) -> Invalidated:
    return Invalidated(conversation=conversation, signal=told.signal, entries=told.entries)


ServerFrame = Accepted | Snapshot | Delta | Done | Invalidated | Error | Pong


class Refused(Exception):
    """A request that is not carried out, with what the person is told about it."""

    def __init__(self, code: str, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.code, self.message, self.retryable = code, message, retryable

    def frame(self, client_id: str | None = None) -> Error:
        return Error(code=self.code, message=self.message, retryable=self.retryable, client_id=client_id)


class BadFrame(Refused):
    """A frame that could not be read; `client_id` is what could be made out of it."""

    def __init__(self, code: str, message: str, client_id: str | None = None) -> None:
        super().__init__(code, message)
        self.client_id = client_id


def parse(data: Any) -> Send | Regenerate | Edit | Stop | Resume | Ping:
    """A client frame from decoded JSON. Raises BadFrame, which says what is wrong with it."""
    if not isinstance(data, dict):
        raise BadFrame("invalid_frame", "A frame must be a JSON object.")
    raw_id = data.get("client_id")
    client_id = raw_id[:64] if isinstance(raw_id, str) and _is_storable(raw_id) else None
    try:
        return _client_frame.validate_python(data)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_context=False)[0]
        if first["type"].startswith("union_tag"):
            raise BadFrame(
                "unknown_type", f"Unknown frame type {data.get('type')!r:.60}.", client_id
            ) from None
        where = ".".join(str(part) for part in first["loc"][1:]) or "frame"
        raise BadFrame("invalid_frame", f"{where}: {first['msg']}", client_id) from None


def encode(frame: ServerFrame) -> str:
    """The frame as JSON text."""
    return frame.model_dump_json()
