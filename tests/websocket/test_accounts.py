"""Whose conversations a socket shows: of the account, on every device; of a guest, in one browser."""

from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from websockets.exceptions import ConnectionClosed

from chat import protocol
from chat.consumers import RESTART
from chat.models import Conversation
from tests.stack import Stack
from tests.websocket import questions, records
from tests.websocket.client import guest, stranger


@pytest.fixture
async def account() -> tuple[str, str]:
    name, password = f"ann-{uuid4().hex[:8]}", "correct horse battery"
    await records.look(lambda: User.objects.create_user(name, password=password))
    return name, password


async def test_one_account_in_two_browsers(stack: Stack, account: tuple[str, str]) -> None:
    async with stranger(stack) as desk, stranger(stack) as phone, guest(stack) as somebody:
        await desk.log_in(*account)
        await phone.log_in(*account)
        async with desk.tab() as one, phone.tab() as other, somebody.tab() as foreign:
            accepted = await one.say(questions.long())
            assert await other.expect(protocol.Accepted) == accepted
            await other.resume(accepted.generation)
            assert (await other.whole(accepted.generation)).text
            error = await foreign.refused("generation.resume", generation=accepted.generation, after=0)
            assert error.code == "not_found"


async def test_who_logs_in_is_the_account_in_new_sockets(stack: Stack, account: tuple[str, str]) -> None:
    async with guest(stack) as person:
        async with person.tab() as tab:
            before = await tab.say(questions.short())
            await tab.whole(before.generation)
        await person.log_in(*account)
        async with person.tab() as tab:
            accepted = await tab.say(questions.short())
            await tab.whole(accepted.generation)
        owner = await records.look(
            lambda: Conversation.objects.values_list("user__username", "guest").get(pk=accepted.conversation)
        )
        assert owner == (account[0], None)


async def test_a_socket_ends_when_its_account_signs_out(stack: Stack, account: tuple[str, str]) -> None:
    async with stranger(stack) as person:
        await person.log_in(*account)
        async with person.tab() as tab:
            await person.log_out()
            with pytest.raises(ConnectionClosed) as closed:
                await tab.expect(protocol.Pong)
            assert closed.value.rcvd is not None and closed.value.rcvd.code == RESTART
