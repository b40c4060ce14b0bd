"""What a tab is told when a message is understood as taking something back, and what follows on the stack."""

from chat import protocol
from inference.models import Entry, Generation, Invalidation, Observation, Session
from tests.stack import Stack
from tests.websocket import questions, records
from tests.websocket.client import Person, guest, stack_client
from tests.websocket.freezing import frozen

NO = "No, that's wrong. I meant another country."


async def undo(person: Person, correction: int) -> int:
    """Press Undo, as the page does."""
    headers = {
        "HX-Request": "true",
        "X-CSRFToken": person.http.cookies["csrftoken"],
        "Referer": person.stack.url,
    }
    answer = await person.http.post(f"/corrections/{correction}/undo/", headers=headers)
    return answer.status_code


async def test_a_correction_is_told_before_its_answer_comes(stack: Stack) -> None:
    async with stack_client(stack) as chat:
        first = await chat.say(questions.short())
        await chat.whole(first.generation)
        with frozen(stack):  # nothing is generated: it can only have come from before the lookup
            accepted = await chat.say(NO, first.conversation)
            told = await chat.expect(protocol.Invalidated, conversation=first.conversation)
        assert told.signal == "correction" and told.entries >= 1
        await chat.whole(accepted.generation)
        session = await records.look(lambda: Session.objects.get(pk=first.conversation))
        entry = await records.look(lambda: Generation.objects.get(pk=first.generation).entry)
        assert session.epoch == 1
        assert entry.read_only and await records.look(
            Entry.objects.filter(pk=entry.pk, blocked_in=session).exists
        )


async def test_other_messages_are_not_told_so(stack: Stack) -> None:
    async with stack_client(stack) as chat:
        first = await chat.say(questions.short())
        await chat.whole(first.generation)
        await chat.hear("Thanks! " + questions.short(), first.conversation)
        assert not any(isinstance(frame, protocol.Invalidated) for frame in chat.frames)


async def test_other_tabs_and_those_that_come_back_are_told_too(stack: Stack) -> None:
    async with guest(stack) as person, person.tab() as tab, person.tab() as other:
        first = await tab.say(questions.short())
        await tab.whole(first.generation)
        accepted = await tab.say(NO, first.conversation)
        await other.expect(protocol.Accepted, generation=accepted.generation)
        await other.resume(accepted.generation)
        await other.expect(protocol.Invalidated, conversation=first.conversation)
        answer = await other.whole(accepted.generation)
        assert answer.text == (await tab.whole(accepted.generation)).text
        page = await person.http.get(f"/c/{first.conversation}/")
        assert "Understood as a correction" in page.text
        lines = await person.http.get(f"/c/{first.conversation}/corrections/")
        assert str(accepted.message) in lines.text


async def test_undo(stack: Stack) -> None:
    async with guest(stack) as person, person.tab() as tab, guest(stack) as stranger:
        first = await tab.say(questions.short())
        await tab.whole(first.generation)
        accepted = await tab.say(NO, first.conversation)
        await tab.whole(accepted.generation)
        done = await records.look(lambda: Invalidation.objects.get(generation=accepted.generation))
        assert await undo(stranger, done.pk) == 404, "somebody else's"
        assert await undo(person, done.pk) == 200
        assert await undo(person, done.pk) == 200, "twice is once"
        entry = await records.look(lambda: Generation.objects.get(pk=first.generation).entry)
        assert not entry.read_only
        assert await records.look(Entry.objects.filter(blocked_in=first.conversation).count) == 0
        assert await records.look(
            Observation.objects.filter(source="undo", generation=accepted.generation).exists
        )
        page = await person.http.get(f"/c/{first.conversation}/")
        assert "Understood as a correction" not in page.text and "Undone" in page.text


async def test_a_regenerated_answer_to_a_correction_takes_nothing_back_anew(stack: Stack) -> None:
    async with stack_client(stack) as chat:
        first = await chat.say(questions.short())
        await chat.whole(first.generation)
        accepted = await chat.say(NO, first.conversation)
        await chat.whole(accepted.generation)
        again = await chat.request("message.regenerate", message=accepted.reply)
        await chat.whole(again.generation)
        done = Invalidation.objects.filter(session=first.conversation)
        causes = await records.look(lambda: list(done.values_list("cause", flat=True)))
        assert sorted(causes) == ["correction", "regenerate"]


async def test_an_edited_question_takes_its_answers_along(stack: Stack) -> None:
    async with stack_client(stack) as chat:
        first = await chat.say(questions.short())
        await chat.whole(first.generation)
        edited = await chat.request("message.edit", message=first.message, text=questions.short())
        await chat.whole(edited.generation)
        done = await records.look(lambda: Invalidation.objects.get(session=first.conversation))
        entry = await records.look(lambda: Generation.objects.get(pk=first.generation).entry)
        assert (done.cause, done.epoch, done.generation_id) == ("edit", 1, edited.generation)
        assert entry.pk in done.blocked
        assert not any(isinstance(frame, protocol.Invalidated) for frame in chat.frames)
