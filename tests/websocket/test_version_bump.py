"""A bump reaches two web processes and two of each worker while people chat, and none is started again."""

import subprocess
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest

from chat import protocol
from inference import workers
from inference.models import Entry, Generation, ServedBy
from launch.options import REPOSITORY
from launch.process import wait_until
from launch.programs import python, worker
from tests.services import services_of
from tests.stack import Stack
from tests.websocket import questions, records
from tests.websocket.client import Tab, stack_client

WORKERS = ("answer", "generate")


class Second(Stack):
    """A web process and workers beside those of the suite, on the same database and Valkey."""

    def __init__(self, database: str, var_dir: Path) -> None:
        super().__init__(database, var_dir)
        self._commands = {
            "answer": worker("answer", 4, 2),
            "generate": worker("generate", 2, 2),
            "web": self._commands["web"],
        }

    def manage(self, *arguments: str) -> str:
        run = subprocess.run(
            python("manage.py", *arguments), cwd=REPOSITORY, env=self._environ, capture_output=True, text=True
        )
        assert run.returncode == 0, run.stderr
        return run.stdout


@pytest.fixture
def second(stack: Stack, request: pytest.FixtureRequest) -> Iterator[Second]:
    name = stack._environ["DATABASE_URL"].partition("?")[0].rpartition("/")[2]
    running = Second(name, services_of(request.config).var_dir / "second")
    try:
        running.start()
        # /healthz is content with the workers of the first stack.
        ready = wait_until(lambda: all("worker_ready" in running.log(one) for one in WORKERS), 120)
        assert ready, running.tail()
        yield running
    finally:
        running.stop()


async def test_every_process_asks_with_the_new_version_at_once(stack: Stack, second: Second) -> None:
    known = [questions.short() for _ in range(6)]
    async with AsyncExitStack() as open_ones:
        tabs = [await open_ones.enter_async_context(stack_client(where)) for where in (stack, second) * 3]
        for tab, question in zip(tabs, known, strict=True):
            answer = await tab.hear(question)
            assert answer.done and answer.done.entry, answer
        old = await records.look(lambda: Entry.objects.values("scope").distinct().get()["scope"])
        said = await records.look(lambda: second.manage("bump_version", "--knowledge", "2026-12"))
        assert "Open chats were told" in said
        for tab in tabs:
            told = await tab.expect(protocol.Invalidated)
            assert (told.conversation, told.signal) == (None, "version")
            assert told.entries == await records.look(Entry.objects.filter(scope=old).count)
        # Each question twice, at once, through both web processes; then again, when it is stored anew, until
        # both answer workers have served some: which of them takes a question is left to chance.
        asked = await everyone_asks(tabs * 2, known * 2)
        rows, both = list[Generation](), set[str]()
        for _ in range(20):
            asked += await everyone_asks(tabs * 2, known * 2)
            rows = await records.look(partial(list, Generation.objects.filter(pk__in=asked)))
            served = [row for row in rows if row.served_by == ServedBy.EXACT]
            both = {workers.process_of(row.claimed_by) for row in served}
            if len(both) == 2:
                break
        assert len(both) == 2, "both looked up"
        assert len(rows) == len(asked) and old not in {row.scope_id for row in rows}
        assert len({row.scope_id for row in rows}) == 1
        assert not await records.look(Entry.objects.filter(scope=old, generations__in=asked).exists)


async def everyone_asks(tabs: list[Tab], known: list[str]) -> list[UUID]:
    asked = [await tab.say(question) for tab, question in zip(tabs, known, strict=True)]
    for tab, accepted in zip(tabs, asked, strict=True):
        await tab.whole(accepted.generation)
    return [accepted.generation for accepted in asked]
