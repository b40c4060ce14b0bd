"""Every error frame: its code, whose request it answers, and that the socket stays open."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import connection
from websockets.exceptions import ConnectionClosed, InvalidStatus

from chat import protocol
from launch.programs import web
from tests.services import services_of
from tests.stack import Stack
from tests.websocket import questions, records
from tests.websocket.client import Tab, guest, stack_client, stranger
from tests.websocket.freezing import frozen

NOBODYS = "0c2f5d0e-6a35-4a3e-9f0f-5d2f8f3b7a11"


@pytest.fixture
async def chat(stack: Stack) -> AsyncIterator[Tab]:
    async with stack_client(stack) as tab:
        yield tab


def send(**fields: Any) -> dict[str, Any]:
    return {"type": "message.send", "client_id": "c1", "text": "Hello", **fields}


@pytest.mark.parametrize(
    ("frame", "code", "client_id"),
    [
        (send(text="x" * 8_001), "too_long", "c1"),
        (send(text=""), "empty", "c1"),
        (send(text=" \n\t　"), "empty", "c1"),
        (send(text="a\0b"), "invalid_frame", "c1"),
        (send(text="\ud800"), "invalid_frame", "c1"),
        (send(text=7), "invalid_frame", "c1"),
        (send(text=None), "invalid_frame", "c1"),
        ({"type": "message.send", "client_id": "c1"}, "invalid_frame", "c1"),
        ({"type": "message.send", "text": "Hello"}, "invalid_frame", None),
        (send(client_id=""), "invalid_frame", None),
        (send(client_id=7), "invalid_frame", None),
        (send(client_id="x" * 65), "invalid_frame", None),
        (send(client_id="a\0b"), "invalid_frame", None),
        (send(client_id="\ud800"), "invalid_frame", None),
        (send(conversation="7"), "invalid_frame", "c1"),
        (send(conversation=NOBODYS), "not_found", "c1"),
        (send(parent=NOBODYS), "invalid_frame", "c1"),
        ({"type": "message.edit", "client_id": "c1", "message": NOBODYS, "text": "Hello"}, "not_found", "c1"),
        ({"type": "message.edit", "client_id": "c1", "message": NOBODYS}, "invalid_frame", "c1"),
        ({"type": "message.regenerate", "client_id": "c1", "message": NOBODYS}, "not_found", "c1"),
        ({"type": "message.regenerate", "client_id": "c1"}, "invalid_frame", "c1"),
        ({"type": "generation.stop", "generation": NOBODYS, "seen": 0}, "not_found", None),
        ({"type": "generation.stop", "generation": NOBODYS}, "invalid_frame", None),
        ({"type": "generation.stop", "generation": NOBODYS, "seen": -1}, "invalid_frame", None),
        ({"type": "generation.resume", "generation": NOBODYS, "after": 0}, "not_found", None),
        ({"type": "generation.resume", "generation": NOBODYS, "after": 2**63}, "invalid_frame", None),
        ({"type": "message.sned", "client_id": "c1"}, "unknown_type", "c1"),
        ({"type": ["ping"]}, "unknown_type", None),
        ({"client_id": "c1"}, "unknown_type", "c1"),
        ([], "invalid_frame", None),
        (None, "invalid_frame", None),
    ],
    ids=lambda value: json.dumps(value)[:60] if not isinstance(value, str) else value,
)
async def test_a_frame_that_makes_no_sense(chat: Tab, frame: Any, code: str, client_id: str | None) -> None:
    await chat.send_raw(json.dumps(frame))
    error = await chat.expect(protocol.Error)
    assert (error.code, error.retryable) == (code, False)
    if client_id:
        assert error.client_id == client_id
    assert error.message
    assert await chat.is_open()


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("", "invalid_frame"),
        ("{", "invalid_frame"),
        ("hello", "invalid_frame"),
        ("[" * 50_000, "invalid_frame"),
        ("1" * 5_000, "invalid_frame"),
        (b'{"type": "ping"}', "invalid_frame"),
        (b"\xff\xfe", "invalid_frame"),
        (json.dumps({"type": "ping", "padding": "x" * 64 * 1024}), "frame_too_large"),
        (json.dumps({"type": "ping", "padding": "雨" * 22 * 1024}, ensure_ascii=False), "frame_too_large"),
        (json.dumps({"type": "ping", "padding": "x" * 1_000_000}), "frame_too_large"),
    ],
    ids=lambda value: repr(value)[:40],
)
async def test_what_is_no_frame_at_all(chat: Tab, message: str | bytes, code: str) -> None:
    await chat.send_raw(message)
    error = await chat.expect(protocol.Error)
    assert error.code == code
    assert await chat.is_open()


async def test_the_longest_text_is_no_error(stack: Stack, chat: Tab) -> None:
    with frozen(stack):  # not to be answered: to read it takes the model a while
        accepted = await chat.say("雨" * 8_000)
        await chat.send("generation.stop", generation=accepted.generation, seen=0)
        await chat.whole(accepted.generation)


async def test_too_many_frames(chat: Tab) -> None:
    for _ in range(settings.MAX_FRAMES_PER_10_SECONDS + 1):
        await chat.send("ping")
    error = await chat.expect(protocol.Error)
    assert error.code == "too_many_frames"
    await (await chat.socket.ping())  # it is still there


async def test_too_many_open_answers(stack: Stack, chat: Tab) -> None:
    with frozen(stack):
        accepted = [await chat.say(questions.long()) for _ in range(settings.MAX_OPEN_GENERATIONS)]
        for type, fields in (
            ("message.send", {"text": questions.long()}),
            ("message.edit", {"text": questions.long(), "message": accepted[0].message}),
            ("message.regenerate", {"message": accepted[0].reply}),
        ):
            error = await chat.refused(type, client_id="one-too-many", **fields)
            assert (error.code, error.retryable, error.client_id) == ("too_many_open", True, "one-too-many")
        for one in accepted:
            await chat.send("generation.stop", generation=one.generation, seen=0)
            await chat.whole(one.generation)
    await chat.hear(questions.short())


class OnlyWeb(Stack):
    """One more web program beside those of the running stack, with settings of its own."""

    def start(self) -> None:
        self._commands = {"web": web()}
        super().start()


@pytest.fixture
def strict(stack: Stack, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stack]:
    environ = {"MAX_MESSAGES_PER_MINUTE": "20"}
    running = OnlyWeb(
        str(connection.settings_dict["NAME"]), tmp_path, services_of(request.config).embedded, environ
    )
    try:
        running.start()
        yield running
    finally:
        running.stop()


async def test_twenty_messages_a_minute_for_each_person(strict: Stack) -> None:
    question = questions.short()
    async with guest(strict) as ann, ann.tab() as tab, ann.tab() as other_tab:
        for _ in range(20):
            await tab.hear(question)
        for again in (tab, other_tab):
            error = await again.refused("message.send", client_id="twenty-one", text=question)
            assert (error.code, error.retryable, error.client_id) == ("rate_limited", True, "twenty-one")
            assert await again.is_open()
        async with stack_client(strict) as bob:
            await bob.hear(question)


async def test_who_has_no_session_is_told_so(stack: Stack) -> None:
    async with stranger(stack) as person, person.tab() as tab:
        error = await tab.expect(protocol.Error)
        assert error.code == "unauthenticated"
        with pytest.raises(ConnectionClosed) as closed:
            await tab.socket.recv()
        assert closed.value.rcvd and closed.value.rcvd.code == 4401


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:1", "null", ""])
async def test_a_page_of_another_origin_gets_no_socket(stack: Stack, origin: str) -> None:
    async with guest(stack) as person:
        with pytest.raises(InvalidStatus) as refused:
            async with person.tab(origin=origin):
                pass
        assert refused.value.response.status_code == 403


async def test_what_belongs_to_others_is_not_found(stack: Stack) -> None:
    """And a foreign id is answered word for word like one that never was."""
    async with guest(stack) as ann, ann.tab() as hers, guest(stack) as bob, bob.tab() as his:
        theirs = await hers.say(questions.short())
        answer = await hers.whole(theirs.generation)
        own = await his.say(questions.short())
        await his.whole(own.generation)

        def attempts(conversation: Any, message: Any, generation: Any) -> list[tuple[str, dict[str, Any]]]:
            return [
                ("message.send", {"text": "Hello", "conversation": conversation}),
                ("message.send", {"text": "Hello", "conversation": conversation, "parent": message}),
                ("message.send", {"text": "Hello", "conversation": own.conversation, "parent": message}),
                ("message.edit", {"text": "Hello", "message": message}),
                ("message.regenerate", {"message": message}),
                ("generation.stop", {"generation": generation, "seen": 0}),
                ("generation.resume", {"generation": generation, "after": 0}),
            ]

        foreign = attempts(theirs.conversation, theirs.message, theirs.generation)
        unknown = attempts(uuid4(), uuid4(), uuid4())
        for (type, fields), (_, others) in zip(foreign, unknown, strict=True):
            refused = await his.refused(type, client_id=str(uuid4()), **fields)
            never = await his.refused(type, client_id=str(uuid4()), **others)
            assert refused.code == "not_found"
            assert (refused.code, refused.message) == (never.code, never.message)
        assert theirs.generation not in his.answers
        assert (await records.generation(theirs.generation)).text == answer.text
        assert await his.is_open()
