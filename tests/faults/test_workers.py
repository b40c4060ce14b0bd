"""Programs that die in the middle of their work."""

import signal

import pytest
from django.conf import settings

from chat import protocol
from chat.models import Message
from inference.models import Entry, Wording
from tests.faults.conftest import ALIAS, SETTINGS
from tests.fragile import FragileStack
from tests.websocket import questions, records
from tests.websocket.client import PATIENCE_SECONDS, Answer, Tab, guest, stack_client
from tests.websocket.freezing import frozen

# Silence, then the reaper's round or the reader's own look, whichever comes first; and a busy machine.
INTERRUPTED_WITHIN = int(SETTINGS["SILENT_SECONDS"]) + settings.REAP_EVERY_SECONDS + 7
# It counts as there for a while, and is asked once more in that time.
FORGOTTEN_WITHIN = settings.WORKER_ALIVE_SECONDS + INTERRUPTED_WITHIN


def test_a_dead_worker_is_shown_within_100_seconds() -> None:
    assert settings.SILENT_SECONDS + settings.REAP_EVERY_SECONDS < 100
    assert settings.HEARTBEAT_SECONDS * 10 < settings.SILENT_SECONDS


async def test_the_model_dies_in_the_middle_of_an_answer(fragile: FragileStack) -> None:
    question = questions.long()
    async with guest(fragile) as person, person.tab() as chat:
        accepted = await chat.say(question)
        await chat.first_words(accepted.generation)
        fragile.kill("generate", signal.SIGKILL)
        answer = await chat.whole(accepted.generation, within=INTERRUPTED_WITHIN)
        assert answer.done and answer.done.status == "interrupted"
        row = await records.generation(accepted.generation)
        assert row.text == answer.text and row.text and row.status == "interrupted"
        assert not await records.look(Wording.objects.using(ALIAS).filter(question=question).exists), (
            "nothing of it is kept"
        )

        fragile.restart("generate")
        again = await chat.request("message.regenerate", message=accepted.reply)
        retried = await chat.whole(again.generation)
        assert retried.done and retried.done.status == "complete"
        assert len(retried.text) > len(answer.text)
        page = await person.http.get(f"/c/{accepted.conversation}/")
        assert page.status_code == 200


async def test_a_stopped_answer_whose_worker_died_is_stopped(fragile: FragileStack) -> None:
    async with stack_client(fragile) as chat:
        accepted = await chat.say(questions.long())
        await chat.first_words(accepted.generation)
        with frozen(fragile):
            await chat.send("generation.stop", generation=accepted.generation, seen=1)
            assert await chat.is_open()
            fragile.kill("generate", signal.SIGKILL)
            answer = await chat.whole(accepted.generation, within=INTERRUPTED_WITHIN)
        assert answer.done and answer.done.status == "stopped"
        assert answer.text == answer.text_at(1) == (await records.generation(accepted.generation)).text


async def test_who_follows_a_dead_leader_computes_for_itself(fragile: FragileStack) -> None:
    question = questions.long()
    async with stack_client(fragile) as ann, stack_client(fragile) as bob:
        leading = await ann.say(question)
        await ann.first_words(leading.generation)
        with frozen(fragile):
            following = await bob.say(question)

            async def follows() -> bool:
                return (await records.generation(following.generation)).leader_id is not None

            await records.eventually(follows)
            fragile.kill("generate", signal.SIGKILL)
        fragile.restart("generate")
        answer = await bob.whole(following.generation)
        assert answer.done and (answer.done.status, answer.done.served_by) == ("complete", "model")
        assert answer.text == (await records.generation(following.generation)).text
        led = await ann.whole(leading.generation, within=INTERRUPTED_WITHIN)
        assert led.done and led.done.status == "interrupted"


async def test_the_lookup_dies_with_questions_in_its_hands(fragile: FragileStack) -> None:
    async with stack_client(fragile) as chat:
        with frozen(fragile, "answer"):  # what Valkey gives it now dies with it
            accepted = [await chat.say(questions.long()) for _ in range(3)]
            fragile.kill("answer", signal.SIGKILL)
        fragile.restart("answer")
        for one in accepted:
            answer = await chat.whole(one.generation)
            assert answer.done and answer.done.status == "complete"


async def test_the_web_dies_in_the_middle_of_an_answer(fragile: FragileStack) -> None:
    async with guest(fragile) as person:
        async with person.tab() as tab:
            accepted = await tab.say(questions.long())
            seen: Answer = await tab.first_words(accepted.generation)
            fragile.kill("web", signal.SIGKILL)
        fragile.restart("web")
        async with person.tab() as tab:
            await tab.resume(accepted.generation, seen.seq, seen.text)
            answer = await tab.whole(accepted.generation)
        assert answer.done and answer.done.status == "complete"
        assert answer.text == (await records.generation(accepted.generation)).text


async def test_nobody_is_there_to_compute(fragile: FragileStack) -> None:
    async with stack_client(fragile) as chat:
        fragile.kill("generate", signal.SIGTERM)  # it signs off
        await fails(chat, questions.long(), "engine_unavailable", within=10)


async def test_nobody_is_there_to_compute_and_nobody_knows(fragile: FragileStack) -> None:
    async with stack_client(fragile) as chat:
        fragile.kill("generate", signal.SIGKILL)
        await fails(chat, questions.long(), "engine_unavailable", within=FORGOTTEN_WITHIN)


async def test_there_is_no_model(fragile: FragileStack, tmp_path_factory: pytest.TempPathFactory) -> None:
    nothing = str(tmp_path_factory.mktemp("no-model"))
    question = questions.short()
    async with stack_client(fragile) as chat:
        fragile.restart_with("answer", MODEL_DIR=nothing)
        fragile.restart_with("generate", MODEL_DIR=nothing)
        accepted = await fails(chat, question, "engine_unavailable")
        fragile.mend()
        again = await chat.request("message.regenerate", message=accepted.reply)
        answer = await chat.whole(again.generation)
        assert answer.done and answer.done.status == "complete"


async def test_the_queue_is_full(fragile: FragileStack) -> None:
    async with stack_client(fragile) as chat, stack_client(fragile) as late:
        with frozen(fragile):
            waiting = [await chat.say(questions.long()) for _ in range(int(SETTINGS["QUEUE_LIMIT"]))]
            for one in waiting:
                await records.eventually(lambda pk=one.generation: records.is_waiting(pk))
            await fails(late, questions.long(), "busy")
            for one in waiting:
                await chat.send("generation.stop", generation=one.generation, seen=0)
                await chat.whole(one.generation)
        await late.hear(questions.short())


async def fails(chat: Tab, text: str, code: str, within: float = PATIENCE_SECONDS) -> protocol.Accepted:
    """Ask what can't be answered now: that is said, it may be tried again, and the question is kept."""
    accepted = await chat.say(text, client_id=f"for-{code}")
    error = await chat.expect(protocol.Error, within)
    assert (error.code, error.retryable, error.client_id) == (code, True, f"for-{code}")
    answer = await chat.whole(accepted.generation)
    assert answer.done and answer.done.status == "failed"
    kept = await records.look(lambda: Message.objects.using(ALIAS).get(pk=accepted.message))
    assert kept.text == text
    assert not await records.look(Entry.objects.using(ALIAS).filter(wordings__question=text).exists)
    return accepted
