"""Persons at the running stack, and a look into its database."""

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker


@pytest.fixture(autouse=True)
def _database(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The stack's own rows, which stay: it remembers some of them. Each test brings persons of its own."""
    with django_db_blocker.unblock():
        yield
