"""The same question in flight is computed once."""

from inference.models import Generation
from tests.stack import Stack
from tests.websocket import questions, records
from tests.websocket.client import stack_client
from tests.websocket.freezing import frozen


async def follows(pk: object) -> bool:
    return await records.look(Generation.objects.filter(pk=pk, leader__isnull=False).exists)


async def test_whoever_asks_the_same_meanwhile_gets_the_same_answer(stack: Stack) -> None:
    question = questions.short()
    async with stack_client(stack) as ann, stack_client(stack) as bob, stack_client(stack) as eve:
        with frozen(stack):
            leading = await ann.say(question)
            await records.eventually(lambda: records.is_waiting(leading.generation))
            following = [await bob.say(question), await eve.say(question + " ")]
            for one in following:
                await records.eventually(lambda pk=one.generation: follows(pk))
        led = await ann.whole(leading.generation)
        assert led.done and led.done.served_by == "model"
        for chat, one in zip((bob, eve), following, strict=True):
            answer = await chat.whole(one.generation)
            assert answer.text == led.text == (await records.generation(one.generation)).text
            assert answer.done and (answer.done.served_by, answer.done.status) == ("coalesced", "complete")
            assert answer.done.entry == led.done.entry is not None
            assert answer.done.usage.cached_tokens == answer.done.usage.prompt_tokens > 0


async def test_whoever_joins_late_sees_it_grow_from_the_beginning(stack: Stack) -> None:
    question = questions.long()
    async with stack_client(stack) as ann, stack_client(stack) as bob:
        leading = await ann.say(question)
        await ann.first_words(leading.generation)
        following = await bob.say(question)
        answer = await bob.whole(following.generation)
        assert answer.done and answer.done.served_by == "coalesced"
        assert answer.deltas and answer.text == (await ann.whole(leading.generation)).text


async def test_a_stopped_leader_leaves_its_followers_to_compute(stack: Stack) -> None:
    question = questions.long()
    async with stack_client(stack) as ann, stack_client(stack) as bob:
        leading = await ann.say(question)
        await ann.first_words(leading.generation)
        with frozen(stack):
            following = await bob.say(question)
            await records.eventually(lambda: follows(following.generation))
            await ann.send("generation.stop", generation=leading.generation, seen=1)
            assert await ann.is_open()
        stopped = await ann.whole(leading.generation)
        assert stopped.done and stopped.done.status == "stopped"
        answer = await bob.whole(following.generation)
        assert answer.done and (answer.done.status, answer.done.served_by) == ("complete", "model")
        assert len(answer.text) > len(stopped.text)
        assert answer.text == (await records.generation(following.generation)).text


async def test_a_follower_may_stop_alone(stack: Stack) -> None:
    question = questions.long()
    async with stack_client(stack) as ann, stack_client(stack) as bob:
        leading = await ann.say(question)
        await ann.first_words(leading.generation)
        following = await bob.say(question)
        seen = (await bob.first_words(following.generation)).seq
        held = bob.answers[following.generation].text
        await bob.send("generation.stop", generation=following.generation, seen=seen)
        answer = await bob.whole(following.generation)
        assert answer.done and answer.done.status == "stopped"
        assert answer.text == held == (await records.generation(following.generation)).text
        led = await ann.whole(leading.generation)
        assert led.done and led.done.status == "complete" and len(led.text) > len(held)


async def test_a_regenerated_answer_follows_nobody(stack: Stack) -> None:
    question = questions.short()
    async with stack_client(stack) as ann, stack_client(stack) as bob:
        first = await ann.say(question)
        await ann.whole(first.generation)
        with frozen(stack):
            one = await ann.request("message.regenerate", message=first.reply)
            other = await bob.say(question)
            hit = await bob.whole(other.generation)
        assert hit.done and hit.done.served_by == "exact"
        again = await ann.whole(one.generation)
        assert again.done and again.done.served_by == "model"
