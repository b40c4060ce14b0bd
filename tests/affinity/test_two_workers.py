"""Two workers with an engine each: who answers whom, and what happens when one of them is gone."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from uuid import UUID

from chat import protocol
from inference import affinity
from inference.models import Status
from tests.affinity.conftest import SETTINGS, Pair
from tests.websocket import questions, records
from tests.websocket.client import Tab, stack_client
from tests.websocket.freezing import frozen

LONG, LIMIT = int(SETTINGS["QUEUE_LONG"]), int(SETTINGS["QUEUE_LIMIT"])
THREADS = 2  # of each worker, see tests.stack


async def worked(pair: Pair, generation: UUID) -> str:
    """Which worker computed this."""
    row = await records.generation(generation)
    assert (row.status, row.served_by) == (Status.COMPLETE, "model")
    return pair.worker_of(row.claimed_by)


def home(pair: Pair, conversation: UUID) -> str:
    """Which worker its session belongs to."""
    seats = pair.seats()
    return seats[affinity.ranked(str(conversation), seats)[0]]


async def conversation_of(pair: Pair, chat: Tab, worker: str) -> UUID:
    """A new conversation, one question old, that belongs to `worker`."""
    while True:
        accepted = await chat.say(questions.short())
        await chat.whole(accepted.generation)
        if home(pair, accepted.conversation) == worker:
            return accepted.conversation


@contextmanager
def all_frozen(pair: Pair) -> Iterator[None]:
    with ExitStack() as stack:
        for name in ("generate", "generate-2"):
            stack.enter_context(frozen(pair, name))
        yield


async def test_a_session_stays_with_its_worker(pair: Pair) -> None:
    met: set[str] = set()
    async with stack_client(pair) as chat:
        while len(met) < 2:
            first = await chat.say(questions.long())
            await chat.whole(first.generation)
            second = await chat.say("And what for?", first.conversation)
            answer = await chat.whole(second.generation)
            workers = {await worked(pair, one.generation) for one in (first, second)}
            assert workers == {home(pair, first.conversation)}
            met |= workers
            assert answer.done and answer.done.usage.cached_tokens > answer.done.usage.prompt_tokens / 2


async def test_one_is_killed_in_the_middle_of_an_answer(pair: Pair) -> None:
    """What it was writing and what waited for it is answered by the other, and so is what is asked next."""
    async with stack_client(pair) as chat:
        mine = await conversation_of(pair, chat, "generate")
        begun = [await chat.say(questions.long(), mine) for _ in range(THREADS)]
        for one in begun:
            await chat.first_words(one.generation)
        with frozen(pair, "generate"):
            waits = await chat.say(questions.long(), mine)
            await records.eventually(lambda: records.is_waiting(waits.generation))
            pair.kill("generate", signal.SIGKILL)
        for one in [*begun, waits]:
            answer = await chat.whole(one.generation)
            assert answer.done and answer.done.status == "complete"
            assert answer.text == (await records.generation(one.generation)).text
            assert await worked(pair, one.generation) == "generate-2"
        following = await chat.say("And what for?", mine)
        await chat.whole(following.generation)
        assert await worked(pair, following.generation) == "generate-2"

        pair.restart("generate")
        assert home(pair, mine) == "generate", "it sits where it sat"
        again = await chat.say("And then?", mine)
        await chat.whole(again.generation)
        assert await worked(pair, again.generation) == "generate"


async def test_one_that_is_told_to_go_hands_over(pair: Pair) -> None:
    async with stack_client(pair) as chat:
        mine = await conversation_of(pair, chat, "generate-2")
        begun = await chat.say(questions.long(), mine)
        await chat.first_words(begun.generation)
        pair.kill("generate-2", signal.SIGTERM)
        answer = await chat.whole(begun.generation)
        assert answer.done and answer.done.status == "complete"
        assert await worked(pair, begun.generation) == "generate"


async def test_a_long_queue_is_passed_by(pair: Pair) -> None:
    async with stack_client(pair) as chat:
        mine = await conversation_of(pair, chat, "generate")
        with frozen(pair, "generate"):
            waiting = []
            for _ in range(LONG):
                waiting.append(await chat.say(questions.long(), mine))
                await records.eventually(lambda: records.is_waiting(waiting[-1].generation))
            passed = await chat.say(questions.long(), mine)
            await chat.whole(passed.generation)
            assert await worked(pair, passed.generation) == "generate-2"
        for one in waiting:
            await chat.whole(one.generation)
            assert await worked(pair, one.generation) == "generate"


async def test_both_queues_are_full(pair: Pair) -> None:
    async with stack_client(pair) as chat, stack_client(pair) as late:
        with all_frozen(pair):
            waiting = []
            for _ in range(2 * LIMIT):
                waiting.append(await chat.say(questions.long()))
                await records.eventually(lambda: records.is_waiting(waiting[-1].generation))
            await late.say(questions.long(), client_id="00000000-0000-4000-8000-000000000001")
            error = await late.expect(protocol.Error)
            assert (error.code, error.retryable) == ("busy", True)
        for one in waiting:
            answer = await chat.whole(one.generation)
            assert answer.done and answer.done.status == "complete"
        assert {await worked(pair, one.generation) for one in waiting} == {"generate", "generate-2"}
