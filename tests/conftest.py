"""Fixtures for all tests, and the order that a browser among them asks for."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from launch.browser import installed
from tests.emptying import giving_way
from tests.services import services_of
from tests.stack import Stack

_BROWSER_FIXTURES = {"page", "context", "browser", "new_context"}


@pytest.fixture(scope="session")
def stack(django_db_setup: None, request: pytest.FixtureRequest) -> Iterator[Stack]:
    """The running stack on the test database, started once.

    Its processes see only what is committed, so a test that uses it counts as marked with
    `django_db(transaction=True)`: the tables are emptied after it.
    """
    name = str(connection.settings_dict["NAME"])
    assert name.startswith("test_"), f"{name} is not the test database"
    services = services_of(request.config)
    running = Stack(name, services.var_dir, services.embedded)
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session", autouse=True)
def _giving_way() -> Iterator[None]:
    with giving_way():
        yield


@pytest.fixture
def no_workers() -> None:
    """Nobody is known who would compute: earlier tests may have announced workers."""
    from inference.redis import client  # reads the settings

    client().delete("workers:answer", "workers:generate")


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The Chromium that `make test` found, without the sandbox that it lacks as root."""
    path = os.environ.get("CHROMIUM") or installed()
    arguments = ["--no-sandbox", "--disable-dev-shm-usage"] if os.geteuid() == 0 else []
    return {**browser_type_launch_args, "executable_path": path, "args": arguments}


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Whoever talks to the running stack comes after those whose tasks its workers would take from them; and
    browser tests come last, after pytest-django's own sorting: once Playwright runs, its event loop stays in
    this thread, where neither pytest-asyncio nor Django's synchronous ORM would work any more."""
    for item in items:
        if _uses_stack(item) and not item.get_closest_marker("django_db"):
            item.add_marker(pytest.mark.django_db(transaction=True))
    yield
    items.sort(key=lambda item: (_uses_browser(item), _uses_stack(item)))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if _uses_browser(item):
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"


def _uses_stack(item: pytest.Item) -> bool:
    return "stack" in getattr(item, "fixturenames", ())


def _uses_browser(item: pytest.Item) -> bool:
    return not _BROWSER_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))
