"""Workers of two releases at once, on the same queues: neither serves what the other has stored, nor stores
an answer that it computed for the other's question."""

import shutil
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest

from inference.models import Entry, Generation, ServedBy
from launch.options import REPOSITORY
from launch.process import wait_until
from launch.programs import worker
from tests.services import services_of
from tests.stack import Stack
from tests.websocket import questions, records
from tests.websocket.client import stack_client
from tests.websocket.test_version_bump import everyone_asks

ROOMS = ("cacheadmin", "chat", "config", "inference", "launch")


class NextRelease(Stack):
    """Workers whose rules for reading a message differ from the ones that run, and nothing else."""

    def __init__(self, database: str, var_dir: Path) -> None:
        release = var_dir / "release"
        for room in ROOMS:
            shutil.copytree(REPOSITORY / room, release / room)
        changed = release / "inference" / "understanding" / "signals.py"
        changed.write_text(changed.read_text(encoding="utf-8") + "\nNEXT = 1\n", encoding="utf-8")
        super().__init__(database, var_dir, release=release)
        self._commands = {"answer": worker("answer", 4, 3), "generate": worker("generate", 2, 3)}

    def wait_until_ready(self, timeout: float = 120) -> None:
        """There is no web process of this release to ask."""
        ready = wait_until(lambda: all("worker_ready" in self.log(one) for one in self._commands), timeout)
        assert ready, self.tail()


@pytest.fixture
def next_release(stack: Stack, request: pytest.FixtureRequest) -> Iterator[NextRelease]:
    name = stack._environ["DATABASE_URL"].partition("?")[0].rpartition("/")[2]
    running = NextRelease(name, services_of(request.config).var_dir / "next-release")
    try:
        running.start()
        yield running
    finally:
        running.stop()


async def test_neither_release_serves_or_stores_for_the_other(
    stack: Stack, next_release: NextRelease
) -> None:
    known = [questions.short() for _ in range(6)]
    releases = {
        str(running.pid(name)): number
        for number, running in enumerate((stack, next_release))
        for name in ("answer", "generate")
    }

    def release_of(row: Generation) -> int:
        return releases[row.claimed_by.split(":")[1]]

    asked, rows, hits = list[UUID](), list[Generation](), list[Generation]()
    async with AsyncExitStack() as open_ones:
        tabs = [await open_ones.enter_async_context(stack_client(stack)) for _ in known]
        for _ in range(20):
            asked += await everyone_asks(tabs, known)
            rows = await records.look(
                partial(list, Generation.objects.filter(pk__in=asked).select_related("entry"))
            )
            hits = [row for row in rows if row.served_by == ServedBy.EXACT]
            if {release_of(row) for row in hits} == {0, 1}:
                break
    # Whoever looked a question up served it: so each scope is known to be of one release.
    scope_of = defaultdict(set)
    for row in hits:
        scope_of[release_of(row)].add(row.scope_id)
        assert row.entry.scope_id == row.scope_id, "served across releases"
    assert {len(scopes) for scopes in scope_of.values()} == {1} and len(scope_of) == 2
    assert scope_of[0] != scope_of[1]
    computed = [row for row in rows if row.served_by == ServedBy.MODEL]
    assert {row.scope_id for row in computed} == scope_of[0] | scope_of[1]
    for row in computed:
        mine = row.scope_id in scope_of[release_of(row)]
        assert row.text and (row.entry is None or mine), "stored for another release's question"
    assert await records.look(Entry.objects.count) == len({row.entry_id for row in computed if row.entry})
