"""Asking in this process, on the real database, Valkey and engine."""

import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from inference import engine, pipeline, service, workers
from inference.cache import decision, learning, lifecycle, probe
from inference.cache.decision import Decided
from inference.models import Generation, Scope, Session, Status, Wording
from inference.redis import client
from inference.scopes import for_measuring
from inference.understanding.turns import Turn
from tests.engines.faulty_server import Faulty, faulty_server

Ask = Callable[..., Generation]


@pytest.fixture(autouse=True)
def _fresh_caches(db: None) -> Iterator[None]:
    """The database is emptied between tests; what lies in Valkey must be too."""
    client().flushdb()
    workers.announce("generate")  # the engine of this process answers here
    yield


def turns(*texts: str) -> list[Turn]:
    return [{"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(texts)]


@pytest.fixture
def queue() -> Ask:
    """Ask, and let nobody answer yet."""

    def act(*texts: str, session: uuid.UUID | None = None, fresh: bool = False) -> Generation:
        return service.ask(session or uuid.uuid4(), turns(*texts), fresh=fresh)

    return act


@pytest.fixture
def ask(queue: Ask) -> Ask:
    """Ask, and do what the two workers do."""

    def act(*texts: str, session: uuid.UUID | None = None, fresh: bool = False) -> Generation:
        return work(queue(*texts, session=session, fresh=fresh))

    return act


def work(generation: Generation) -> Generation:
    workers.announce("generate")  # a long test outlives one announcement
    pipeline.answer(str(generation.pk))
    generation.refresh_from_db()
    if generation.status == Status.PENDING:
        pipeline.generate(str(generation.pk))
        generation.refresh_from_db()
    return generation


def at_once(acts: list[Callable[[], object]]) -> list[object]:
    """What these functions return, called in the same moment from threads of their own."""
    ready, results = threading.Barrier(len(acts)), list[object]()

    def run(act: Callable[[], object]) -> None:
        try:
            ready.wait()
            results.append(act())
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.fixture
def server(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Faulty]:
    """What ENGINE=openai asks: somebody else's, behind a network."""
    with faulty_server() as running:
        settings.ENGINE = "openai"
        settings.OPENAI_BASE_URL = f"{running.url}/v1"
        settings.OPENAI_MODEL = "a-model"
        settings.ENGINE_WINDOW = 2048
        monkeypatch.setattr(engine, "_engine", None)
        yield running


@pytest.fixture
def scope(db: None) -> Scope:
    """A scope of its own, with the vectors of the embedder that runs."""
    return for_measuring("tests")


def stored(
    scope: Scope, *texts: str, answer: str = "An answer.", session: uuid.UUID | None = None
) -> Wording:
    """A shared, proved entry for the last of `texts`."""
    owner = Session.objects.get_or_create(pk=session or uuid.uuid4())[0]
    read = probe.read(scope, owner.pk, turns(*texts))
    return lifecycle.plant(read, owner, answer, "fact", learning.answer_of(answer).vector)


def decided(scope: Scope, *texts: str, session: uuid.UUID | None = None) -> Decided:
    """What the cache decides on the last of `texts`."""
    return decision.decide(probe.read(scope, session or uuid.uuid4(), turns(*texts)))
