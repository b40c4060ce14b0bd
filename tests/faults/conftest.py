"""The stack that these tests break."""

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from tests.fragile import FragileStack, reached, running

ALIAS = "faults"
SETTINGS = {
    "SILENT_SECONDS": "15",
    "REDISPATCH_SECONDS": "8",
    "QUEUE_LIMIT": "3",
    "MAX_TOKENS": "90",
}


@pytest.fixture(scope="package")
def _running() -> Iterator[FragileStack]:
    with running(lambda var_dir, services: FragileStack(var_dir, services, SETTINGS), durable=True) as stack:
        yield stack


@pytest.fixture
def fragile(
    _running: FragileStack, monkeypatch: pytest.MonkeyPatch, django_db_blocker: DjangoDbBlocker
) -> Iterator[FragileStack]:
    """The stack, whole; what a test broke is mended after it."""
    with reached(_running, ALIAS, monkeypatch, django_db_blocker) as stack:
        yield stack
