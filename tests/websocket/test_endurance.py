"""Readers that don't read, conversations that don't end, sockets that come and go."""

import time
from uuid import UUID

from django.db import connection

from chat import protocol
from chat.models import Conversation, Message
from inference.models import Generation, Session
from tests.stack import Stack
from tests.websocket import questions, records
from tests.websocket.client import Person, guest, stack_client

_ROLES = ("user", "assistant")


def lengthen(conversation: Conversation, texts: list[str]) -> None:
    """Append to the conversation, in turns of user and assistant."""
    session = Session.objects.get(pk=conversation.pk)
    tip = conversation.leaf
    messages, generations = [], []
    for at, text in enumerate(texts):
        spoken = _ROLES[at % 2] == "assistant"
        generation = Generation(session=session, question={"turns": []}, status="complete", text=text)
        message = Message(
            conversation=conversation,
            parent=tip,
            role=_ROLES[at % 2],
            text="" if spoken else text,
            generation=generation if spoken else None,
            sender="somebody",
        )
        generations += [generation] if spoken else []
        messages.append(message)
        tip = message
    Generation.objects.bulk_create(generations)
    Message.objects.bulk_create(messages)
    Conversation.objects.filter(pk=conversation.pk).update(leaf=tip)


async def begin(person: Person, texts: list[str]) -> tuple[UUID, list[UUID]]:
    """A conversation of this person that goes on with these texts, and the answers among them."""
    async with person.tab() as tab:
        accepted = await tab.say(questions.short())
        await tab.whole(accepted.generation)
    await records.look(lambda: lengthen(Conversation.objects.get(pk=accepted.conversation), texts))
    answers = Generation.objects.filter(messages__conversation=accepted.conversation)
    made = answers.exclude(pk=accepted.generation).values_list("pk", flat=True)
    return accepted.conversation, await records.look(lambda: list(made))


async def test_who_reads_slowly_loses_nothing_and_holds_up_nobody(stack: Stack) -> None:
    """More than any buffer on the way holds is on its way to someone who reads nothing for a while."""
    long_text = "All work and no play. " * 50_000
    async with guest(stack) as person, stack_client(stack) as other:
        _, generations = await begin(person, ["Go on", long_text] * 16)
        async with person.tab(max_size=None, max_queue=1) as slow:
            for generation in generations:
                await slow.send("generation.resume", generation=generation, after=0)
            question = questions.long()
            await slow.send("message.send", client_id="slow", text=question)
            started = time.monotonic()
            await other.hear(questions.short())
            assert await other.is_open()
            assert time.monotonic() - started < 20
            accepted = await slow.expect(protocol.Accepted)
            answer = await slow.whole(accepted.generation)
            assert answer.text == (await records.ended(accepted.generation)).text
            for generation in generations:
                assert (await slow.whole(generation)).text == long_text


async def test_a_conversation_of_a_thousand_messages(stack: Stack) -> None:
    async with guest(stack) as person, person.tab() as chat:
        texts = [f"{role} {number}" for number in range(500) for role in ("Ask", "Say")]
        conversation, _ = await begin(person, texts)
        page = await person.http.get(f"/c/{conversation}/")
        assert page.status_code == 200 and "Say 499" in page.text

        accepted = await chat.say(questions.short(), conversation)
        asked = (await records.generation(accepted.generation)).question["turns"]
        assert len(asked) == 1_003 and asked[-2]["content"] == "Say 499"
        # Older turns are read in short, so that a long conversation is answered like another.
        answer = await chat.whole(accepted.generation)
        assert answer.done and answer.done.status == "complete" and answer.text
        assert 100 < answer.done.usage.prompt_tokens < 1_000
        middle = await records.look(lambda: Message.objects.get(generation__text="Say 100").pk)
        accepted = await chat.say(questions.short(), conversation, parent=middle)
        answer = await chat.whole(accepted.generation)
        assert answer.done and (answer.done.status, answer.done.served_by) == ("complete", "model")
        assert answer.text


async def test_sockets_leave_no_connections_behind(stack: Stack) -> None:
    def connections() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
            return int(cursor.fetchone()[0])

    async with guest(stack) as person:
        before = await records.look(connections)
        counts = []
        for _ in range(3):
            for _ in range(20):
                async with person.tab() as tab:
                    await tab.refused("generation.resume", generation=UUID(int=0), after=0)
            counts.append(await records.look(connections))
        async with guest(stack) as other, other.tab() as tab:
            await tab.hear(questions.short())
        # One pool of 16 in the web program, whatever its threads; and nothing that grows with the sockets.
        assert max(counts) <= before + 16
        assert counts[2] <= counts[0] + 2
