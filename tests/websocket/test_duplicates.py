"""The same client_id is one message, however often and over whichever socket it comes."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from chat import protocol
from chat.models import Conversation, Message
from tests.stack import Stack
from tests.websocket import questions, records
from tests.websocket.client import Tab, guest, stack_client
from tests.websocket.freezing import frozen


async def messages(client_id: str) -> int:
    return await records.look(lambda: Message.objects.filter(client_id=client_id).count())


async def test_over_one_socket(stack: Stack) -> None:
    async with stack_client(stack) as chat:
        client_id, text = str(uuid4()), questions.long()
        with frozen(stack):
            for _ in range(3):
                await chat.send("message.send", client_id=client_id, text=text)
            first, *others = [await chat.expect(protocol.Accepted) for _ in range(3)]
        assert others == [first, first]
        answer = await chat.whole(first.generation)  # which came once: an Answer bears nothing twice
        assert answer.text == (await records.generation(first.generation)).text
        assert await messages(client_id) == 1


async def test_after_the_answer_it_is_shown_again(stack: Stack) -> None:
    async with stack_client(stack) as chat:
        client_id, text = str(uuid4()), questions.short()
        first = await chat.say(text, client_id=client_id)
        answer = await chat.whole(first.generation)
        chat.answers.clear()
        assert await chat.say("Something else", client_id=client_id) == first
        again = await chat.whole(first.generation)
        assert (again.text, again.done) == (answer.text, answer.done)


async def test_over_two_sockets_at_once(stack: Stack) -> None:
    async with guest(stack) as person, person.tab() as one, person.tab() as other:
        for _ in range(5):
            client_id, text = str(uuid4()), questions.long()
            with frozen(stack):
                first, second = await asyncio.gather(
                    one.say(text, client_id=client_id), other.say(text, client_id=client_id)
                )
                assert first == second
                assert await messages(client_id) == 1
                same_title = Conversation.objects.filter(title__startswith=text[:40])
                assert await records.look(same_title.count) == 1
                for tab in (one, other):
                    await tab.send("generation.stop", generation=first.generation, seen=0)
                    await tab.whole(first.generation)
                one.frames.clear()
                other.frames.clear()


async def test_after_the_connection_broke_before_the_answer_came(stack: Stack) -> None:
    async with guest(stack) as person:
        client_id, text = str(uuid4()), questions.long()
        async with person.tab() as tab:
            await tab.send("message.send", client_id=client_id, text=text)
            tab.socket.transport.abort()
        async with person.tab() as tab:
            accepted = await tab.say(text, client_id=client_id)
            answer = await tab.whole(accepted.generation)
        assert answer.text == (await records.generation(accepted.generation)).text
        assert await messages(client_id) == 1


@pytest.mark.parametrize("type", ["message.edit", "message.regenerate"])
async def test_siblings_too(stack: Stack, type: str) -> None:
    async def act(tab: Tab, client_id: str) -> protocol.Accepted:
        fields: dict[str, Any] = {"text": edited} if type == "message.edit" else {}
        return await tab.request(type, client_id=client_id, message=first.message, **fields)

    async with guest(stack) as person, person.tab() as one, person.tab() as other:
        edited = questions.short()
        first = await one.say(questions.short())
        await one.whole(first.generation)
        client_id = str(uuid4())
        accepted, again = await asyncio.gather(act(one, client_id), act(other, client_id))
        assert accepted == again == await act(one, client_id)
        replies = Message.objects.filter(conversation=first.conversation, role="assistant")
        assert await records.look(replies.count) == 2


async def test_two_persons_may_choose_the_same(stack: Stack) -> None:
    async with stack_client(stack) as ann, stack_client(stack) as bob:
        client_id = str(uuid4())
        hers = await ann.say(questions.short(), client_id=client_id)
        his = await bob.say(questions.short(), client_id=client_id)
        assert hers.conversation != his.conversation
        await ann.whole(hers.generation)
        await bob.whole(his.generation)
