"""Valkey and Postgres going away and coming back. What people typed is never lost."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from chat import protocol
from chat.models import Message
from tests.faults.conftest import ALIAS
from tests.fragile import FragileStack
from tests.websocket import questions, records
from tests.websocket.client import Tab, guest, stack_client
from tests.websocket.freezing import frozen

Break = Callable[[FragileStack], Any]


def restart_valkey(stack: FragileStack) -> None:
    stack.restart_valkey()


def empty_valkey(stack: FragileStack) -> None:
    stack.stop_valkey(emptied=True)
    stack.start_valkey()


def restart_postgres(stack: FragileStack) -> None:
    stack.restart_postgres()


def crash_postgres(stack: FragileStack) -> None:
    stack.restart_postgres(crash=True)


@pytest.mark.parametrize("fault", [restart_valkey, empty_valkey, restart_postgres, crash_postgres])
async def test_in_the_middle_of_an_answer(fragile: FragileStack, fault: Break) -> None:
    """The answer is completed, whole, to the socket that was open all the time; and talk goes on over it."""
    async with guest(fragile) as person, person.tab() as chat, person.tab() as other:
        question = questions.long()
        accepted = await chat.say(question)
        await chat.first_words(accepted.generation)
        await asyncio.to_thread(fault, fragile)
        answer = await chat.whole(accepted.generation)
        row = await records.generation(accepted.generation)
        assert answer.done and answer.done.status == row.status == "complete"
        assert answer.text == row.text and row.completion_tokens > 80
        assert (await message(accepted.message)).text == question

        await other.expect(protocol.Accepted, generation=accepted.generation)
        following = await keep_saying(chat, questions.short())
        assert (await chat.whole(following.generation)).text
        heard = await other.expect(protocol.Accepted, client_id=following.client_id)
        assert heard == following


@pytest.mark.parametrize("fault", [empty_valkey, restart_postgres])
async def test_between_two_messages(fragile: FragileStack, fault: Break) -> None:
    async with stack_client(fragile) as chat:
        first = await chat.say(questions.short())
        await chat.whole(first.generation)
        await asyncio.to_thread(fault, fragile)
        second = await keep_saying(chat, "And what is it known for?", conversation=first.conversation)
        answer = await chat.whole(second.generation)
        assert answer.done and answer.done.status == "complete"


async def test_postgres_is_away(fragile: FragileStack) -> None:
    text = questions.short()
    async with stack_client(fragile) as chat:
        await asyncio.to_thread(fragile.stop_postgres)
        client_id = str(uuid4())
        error = await chat.refused("message.send", client_id=client_id, text=text)
        assert (error.code, error.retryable, error.client_id) == ("unavailable", True, client_id)
        assert await chat.is_open()
        await asyncio.to_thread(fragile.start_postgres)
        accepted = await keep_saying(chat, text, client_id=client_id)
        await chat.whole(accepted.generation)
        mine = Message.objects.using(ALIAS).filter(client_id=client_id)
        assert [message.text for message in await records.look(lambda: list(mine))] == [text]


async def test_valkey_is_away(fragile: FragileStack) -> None:
    """There is no broker then: the message is kept, and answered once there is one again."""
    async with stack_client(fragile) as chat:
        await asyncio.to_thread(fragile.stop_valkey)
        accepted = await chat.say(questions.short())
        assert await chat.is_open()
        async with stack_client(fragile) as newcomer:
            assert await newcomer.is_open()
        await asyncio.to_thread(fragile.start_valkey)
        answer = await chat.whole(accepted.generation)
        assert answer.done and answer.done.status == "complete" and answer.text


@pytest.mark.parametrize(
    "earlier",
    [
        pytest.param({"status": "pending", "claimed_by": ""}, id="not claimed"),
        pytest.param({"status": "running", "looked_up": False, "claimed_by": "answer"}, id="being looked up"),
    ],
)
async def test_bookkeeping_that_a_crash_took_back_is_done_again(
    fragile: FragileStack, earlier: dict[str, Any]
) -> None:
    """Workers may commit asynchronously: then a crash can undo the claim of an answer under way."""
    async with stack_client(fragile) as chat:
        accepted = await chat.say(questions.long())
        await chat.first_words(accepted.generation)
        with frozen(fragile):
            await records.change(accepted.generation, **earlier, text="")
        answer = await chat.whole(accepted.generation)
        assert answer.done and answer.done.status == "complete"
        row = await records.generation(accepted.generation)
        assert answer.text == row.text and row.completion_tokens > 80


async def keep_saying(chat: Tab, text: str, **fields: Any) -> protocol.Accepted:
    """What a page does: the same frame again, until it is accepted."""
    client_id = fields.pop("client_id", None) or str(uuid4())
    for _ in range(60):
        await chat.send("message.send", client_id=client_id, text=text, **fields)
        frame = await chat.until(lambda frame: getattr(frame, "client_id", None) == client_id)
        if isinstance(frame, protocol.Accepted):
            return frame
        assert isinstance(frame, protocol.Error) and (frame.code, frame.retryable) == ("unavailable", True)
        await asyncio.sleep(0.5)
    raise AssertionError(f"Refused for ever: {frame}")


async def message(pk: UUID) -> Message:
    return await records.look(lambda: Message.objects.using(ALIAS).get(pk=pk))
