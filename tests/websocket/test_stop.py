"""generation.stop: at once, and what is kept is what was seen."""

import asyncio

import pytest

from chat import protocol
from inference import stream
from inference.models import Entry, Generation
from tests.stack import Stack
from tests.websocket import questions, records
from tests.websocket.client import guest, stack_client
from tests.websocket.freezing import frozen


async def position(generation: Generation) -> int:
    at = await asyncio.to_thread(stream.position_of, generation.pk)
    assert at is not None
    return int(at.partition("-")[0])


async def test_in_the_middle_what_was_seen_is_kept(stack: Stack) -> None:
    async with guest(stack) as person, person.tab() as chat, person.tab() as watching:
        accepted = await chat.say(questions.long())
        id = accepted.generation
        seen = (await chat.first_words(id)).seq
        await chat.send("generation.stop", generation=id, seen=seen)
        answer = await chat.whole(id)
        row = await records.generation(id)
        assert row.status == "stopped" and answer.done and answer.done.status == "stopped"
        assert answer.text == row.text == answer.text_at(seen) != ""
        await watching.resume(id)
        assert (await watching.whole(id)).text == row.text
        assert not await records.look(Entry.objects.filter(generations=id).exists)


async def test_it_takes_no_more_than_one_token(stack: Stack) -> None:
    async with stack_client(stack) as chat:
        accepted = await chat.say(questions.long())
        id = accepted.generation
        await chat.first_words(id)
        with frozen(stack):
            row = await records.generation(id)
            written = await position(row)
            await chat.send("generation.stop", generation=id, seen=1)
            assert await chat.is_open()  # the request has been passed on by now
        answer = await chat.whole(id)
        assert answer.deltas[-1].seq <= written + 1
        assert answer.text == answer.text_at(1)


@pytest.mark.parametrize("settled", [False, True])
async def test_in_the_queue_before_anything_was_written(stack: Stack, settled: bool) -> None:
    """While it is still being looked up as well as when it waits for the engine."""
    async with stack_client(stack) as chat:
        with frozen(stack):
            for _ in range(5):
                accepted = await chat.say(questions.long())
                if settled:
                    await records.eventually(lambda pk=accepted.generation: records.is_waiting(pk))
                await chat.send("generation.stop", generation=accepted.generation, seen=0)
                answer = await chat.whole(accepted.generation)
                assert answer.done and answer.done.status == "stopped"
                row = await records.generation(accepted.generation)
                assert (answer.text, row.text, row.status) == ("", "", "stopped")
        await chat.hear(questions.short())
        assert (await records.generation(accepted.generation)).status == "stopped"


async def test_twice(stack: Stack) -> None:
    async with stack_client(stack) as chat:
        accepted = await chat.say(questions.long())
        id = accepted.generation
        await chat.first_words(id)
        with frozen(stack):
            await chat.send("generation.stop", generation=id, seen=1)
            await chat.send("generation.stop", generation=id, seen=2)
            assert await chat.is_open()
        answer = await chat.whole(id)
        assert answer.text == answer.text_at(1) == (await records.generation(id)).text


async def test_after_the_end_it_changes_nothing(stack: Stack) -> None:
    async with stack_client(stack) as chat:
        accepted = await chat.say(questions.short())
        answer = await chat.whole(accepted.generation)
        await chat.send("generation.stop", generation=accepted.generation, seen=0)
        assert await chat.is_open() and not chat.frames
        row = await records.generation(accepted.generation)
        assert (row.status, row.text) == ("complete", answer.text)
        await chat.resume(accepted.generation)
        assert (await chat.whole(accepted.generation)).text == answer.text


async def test_from_another_tab(stack: Stack) -> None:
    async with guest(stack) as person, person.tab() as one, person.tab() as other:
        accepted = await one.say(questions.long())
        await one.first_words(accepted.generation)
        await other.send("generation.stop", generation=accepted.generation, seen=1)
        done = await one.expect(protocol.Done, generation=accepted.generation)
        assert done.status == "stopped"
