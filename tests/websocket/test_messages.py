"""Frames that ask: message.send, message.edit, message.regenerate; and what comes back."""

import asyncio
import time
from uuid import UUID, uuid4

from django.db import transaction

from chat import protocol
from chat.models import Message
from inference import service
from inference.models import Generation
from tests.stack import Stack
from tests.websocket import questions, records
from tests.websocket.client import guest, stack_client


async def message(pk: UUID) -> Message:
    return await records.look(lambda: Message.objects.select_related("generation").get(pk=pk))


async def test_a_new_message_opens_a_conversation(stack: Stack) -> None:
    async with stack_client(stack) as chat:
        text = questions.long()
        accepted = await chat.say(text)
        answer = await chat.whole(accepted.generation)
        question, reply = await message(accepted.message), await message(accepted.reply)
        assert (question.text, question.role, question.parent_id) == (text, "user", None)
        assert (reply.parent_id, reply.generation_id) == (question.pk, accepted.generation)
        assert question.conversation_id == reply.conversation_id == accepted.conversation
        assert reply.generation and reply.generation.text == answer.text != ""


async def test_the_next_message_continues_at_the_tip(stack: Stack) -> None:
    async with stack_client(stack) as chat:
        first = await chat.say(questions.short())
        await chat.whole(first.generation)
        second = await chat.say("And of the country north of it?", first.conversation)
        await chat.whole(second.generation)
        assert second.conversation == first.conversation
        assert (await message(second.message)).parent_id == first.reply
        asked = (await records.generation(second.generation)).question["turns"]
        assert [turn["role"] for turn in asked] == ["user", "assistant", "user"]


async def test_a_message_with_a_parent_branches_there(stack: Stack) -> None:
    async with stack_client(stack) as chat:
        first = await chat.say(questions.short())
        await chat.whole(first.generation)
        second = await chat.say("Why?", first.conversation)
        await chat.whole(second.generation)
        branch = await chat.say("Since when?", first.conversation, parent=first.reply)
        await chat.whole(branch.generation)
        assert (await message(branch.message)).parent_id == first.reply
        asked = (await records.generation(branch.generation)).question["turns"]
        assert [turn["content"] for turn in asked][2:] == ["Since when?"]


async def test_an_edited_message_is_a_sibling_with_its_own_answer(stack: Stack) -> None:
    async with stack_client(stack) as chat:
        before, after = questions.short(), questions.short()
        first = await chat.say(before)
        await chat.whole(first.generation)
        edited = await chat.request("message.edit", message=first.message, text=after)
        await chat.whole(edited.generation)
        assert edited.conversation == first.conversation
        assert (await message(edited.message)).parent_id == (await message(first.message)).parent_id
        assert (await message(edited.message)).text == after
        assert (await message(first.message)).text == before
        assert edited.generation != first.generation


async def test_an_answer_is_regenerated_by_the_model_beside_the_earlier_one(stack: Stack) -> None:
    async with stack_client(stack) as chat:
        first = await chat.say(questions.short())
        earlier = await chat.whole(first.generation)
        for again in (first.reply, first.message):  # the answer is named, or the question
            second = await chat.request("message.regenerate", message=again)
            answer = await chat.whole(second.generation)
            assert answer.done and answer.done.served_by == "model"
            assert (second.message, second.conversation) == (first.message, first.conversation)
            assert second.reply != first.reply
        reply = await message(first.reply)
        assert reply.generation and reply.generation.text == earlier.text


async def test_only_own_words_are_edited(stack: Stack) -> None:
    async with stack_client(stack) as chat:
        first = await chat.say(questions.short())
        await chat.whole(first.generation)
        error = await chat.refused("message.edit", client_id="c1", message=first.reply, text="Lyon")
        assert (error.code, error.client_id) == ("invalid_frame", "c1")


async def test_pieces_come_numbered_from_one_and_the_end_says_how_it_went(stack: Stack) -> None:
    async with stack_client(stack) as chat:
        accepted = await chat.say(questions.long())
        answer = await chat.whole(accepted.generation)
        assert [delta.seq for delta in answer.deltas] == list(range(1, len(answer.deltas) + 1))
        assert len(answer.deltas) > 5 and not answer.snapshots
        done, row = answer.done, await records.generation(accepted.generation)
        assert done and (done.status, done.served_by, done.entry) == ("complete", "model", None)
        assert done.usage.prompt_tokens > 10 and 0 < done.usage.completion_tokens <= 48
        assert done.usage.cached_tokens <= done.usage.prompt_tokens
        times = done.timings
        assert None not in (times.queue_ms, times.lookup_ms, times.first_token_ms, times.total_ms)
        assert times.queue_ms <= times.first_token_ms <= times.total_ms  # type: ignore[operator]
        assert (done.usage.completion_tokens, times.total_ms) == (row.completion_tokens, row.total_ms)


async def test_a_stored_answer_streams_like_one_that_is_written_now(stack: Stack) -> None:
    question = questions.short()
    async with stack_client(stack) as ann, stack_client(stack) as bob:
        written = await ann.hear(question)
        assert written.done and written.done.served_by == "model" and written.done.entry
        stored = await bob.hear(question.upper())
        assert stored.text == written.text
        assert stored.deltas and not stored.snapshots
        assert stored.done and stored.done.served_by == "exact"
        assert (stored.done.entry, stored.done.status) == (written.done.entry, "complete")
        assert stored.done.timings.total_ms < written.done.timings.total_ms  # type: ignore[operator]


async def test_the_same_words_after_another_history_are_another_question(stack: Stack) -> None:
    async with stack_client(stack) as chat:
        for opening in (questions.short(), questions.short()):
            accepted = await chat.say(opening)
            await chat.whole(accepted.generation)
            answer = await chat.hear("How many people live there?", accepted.conversation)
            assert answer.done and answer.done.served_by == "model"


async def test_ping(stack: Stack) -> None:
    async with stack_client(stack) as chat:
        await chat.send("ping")
        await chat.expect(protocol.Pong)


async def test_nothing_is_worked_on_before_it_is_committed(stack: Stack) -> None:
    """A task that starts before its row is there finds nothing; only the reaper would send it again."""

    def ask_slowly() -> Generation:
        with transaction.atomic():
            asked = service.ask(uuid4(), [{"role": "user", "content": questions.short()}])
            time.sleep(0.5)
            return asked

    asked = await records.look(ask_slowly)
    done = await records.ended(asked.pk, within=25)  # sooner than the reaper
    assert done.status == "complete"


async def test_an_idle_socket_stays(stack: Stack) -> None:
    """For longer than a read waits at Valkey: what runs out there must not end the socket."""
    async with guest(stack) as person, person.tab() as tab:
        await asyncio.sleep(12)
        assert await tab.is_open()
