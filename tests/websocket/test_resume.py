"""generation.resume, at every point of an answer: nothing doubled, nothing lost."""

from contextlib import AsyncExitStack

from chat import protocol
from inference import stream
from inference.redis import client
from tests.stack import Stack
from tests.websocket import questions, records
from tests.websocket.client import Answer, guest, stack_client
from tests.websocket.freezing import frozen


async def test_at_every_point_of_an_answer_under_way(stack: Stack) -> None:
    async with guest(stack) as person, person.tab() as first, AsyncExitStack() as tabs:
        accepted = await first.say(questions.long())
        id = accepted.generation
        while (await first.first_words(id)).seq < 8:
            await first.expect(protocol.Delta, generation=id)
        with frozen(stack):
            held = first.answers[id]
            others = [await tabs.enter_async_context(person.tab()) for _ in range(held.seq + 1)]
            for after, tab in enumerate(others):
                await tab.resume(id, after, held.text_at(after))
        whole = await first.whole(id)
        assert whole.text == (await records.generation(id)).text
        for after, tab in enumerate(others):
            answer = await tab.whole(id)
            assert answer.text == whole.text, f"after {after}"
            assert after == 0 or not answer.snapshots


async def test_at_every_point_of_an_answer_that_is_over(stack: Stack) -> None:
    async with guest(stack) as person, person.tab() as first:
        accepted = await first.say(questions.long())
        whole = await first.whole(accepted.generation)
        async with person.tab() as tab:
            for after in [*range(whole.seq + 1), whole.seq + 1, 2**31 - 1]:
                await tab.resume(accepted.generation, after, whole.text_at(after))
                answer = await tab.whole(accepted.generation)
                assert (answer.text, answer.done) == (whole.text, whole.done), f"after {after}"
                assert answer.seq >= after


async def test_whoever_holds_more_than_there_is_gets_all_of_it(stack: Stack) -> None:
    async with guest(stack) as person, person.tab() as first, person.tab() as second:
        accepted = await first.say(questions.long())
        await first.first_words(accepted.generation)
        await second.resume(accepted.generation, 1_000_000, "from another world")
        snapshot = await second.expect(protocol.Snapshot, within=10, generation=accepted.generation)
        assert snapshot.text and "another world" not in snapshot.text
        assert (await second.whole(accepted.generation)).text == (await first.whole(accepted.generation)).text


async def test_a_reload_in_the_middle(stack: Stack) -> None:
    async with guest(stack) as person:
        async with person.tab() as before:
            accepted = await before.say(questions.long())
            seen = await before.first_words(accepted.generation)
        async with person.tab() as after:
            await after.resume(accepted.generation)
            answer = await after.whole(accepted.generation)
        assert answer.text == (await records.generation(accepted.generation)).text
        assert answer.text.startswith(seen.text) and len(answer.text) > len(seen.text)


async def test_a_socket_that_drops_stops_nothing(stack: Stack) -> None:
    async with guest(stack) as person:
        async with person.tab() as tab:
            accepted = await tab.say(questions.long())
            await tab.first_words(accepted.generation)
            tab.socket.transport.abort()
        done = await records.ended(accepted.generation)
        assert (done.status, done.completion_tokens > 1) == ("complete", True)
        page = await person.http.get(f"/c/{accepted.conversation}/")
        assert page.status_code == 200 and str(accepted.reply) in page.text
        async with person.tab() as tab:
            await tab.resume(accepted.generation)
            assert (await tab.whole(accepted.generation)).text == done.text


async def test_a_lost_end_is_read_in_the_database(stack: Stack) -> None:
    """The worker wrote the end down, and died before it could say so."""
    async with stack_client(stack) as chat:
        with frozen(stack):
            accepted = await chat.say(questions.long())
            row = await records.generation(accepted.generation)
            await records.eventually(lambda: records.is_waiting(row.pk))
            await records.change(row.pk, status="complete", text="It rains.", served_by="model")
            answer = await chat.whole(accepted.generation, within=20)
        assert answer.text == "It rains."
        assert answer.done and answer.done.status == "complete"


async def test_a_lost_stream_is_written_anew(stack: Stack) -> None:
    async with guest(stack) as person, person.tab() as first, person.tab() as second:
        accepted = await first.say(questions.long())
        id = accepted.generation
        answer = await first.first_words(id)
        if len(answer.deltas) < 3:  # what the second tab says it has, the first must have seen
            await first.until(lambda _: len(answer.deltas) >= 3)
        with frozen(stack):
            assert client().delete(stream._key(id)) == 1
            await second.resume(id, 3, first.answers[id].text_at(3))
        whole = await first.whole(id)
        assert whole.text == (await second.whole(id)).text == (await records.generation(id)).text


async def test_two_tabs_show_the_same_answer_growing(stack: Stack) -> None:
    async with (
        guest(stack) as person,
        person.tab() as one,
        person.tab() as other,
        stack_client(stack) as somebody_else,
    ):
        accepted = await one.say(questions.long())
        heard = await other.expect(protocol.Accepted)
        assert heard == accepted
        await other.resume(heard.generation)
        await other.first_words(heard.generation)
        growing: Answer = other.answers[heard.generation]
        assert growing.done is None and growing.text
        assert (await other.whole(heard.generation)).text == (await one.whole(accepted.generation)).text
        assert growing.deltas
        assert await somebody_else.is_open() and not somebody_else.frames


async def test_the_socket_answers_while_an_answer_is_under_way(stack: Stack) -> None:
    async with stack_client(stack) as chat:
        accepted = await chat.say(questions.long())
        await chat.first_words(accepted.generation)
        assert await chat.is_open()
        assert chat.answers[accepted.generation].done is None
        other = await chat.say(questions.short())
        await chat.whole(other.generation)
        await chat.whole(accepted.generation)
