"""Entries to do something to."""

import uuid

import pytest

from inference.models import Entry, Scope
from inference.redis import client
from inference.scopes import for_measuring
from tests.cache.conftest import stored


@pytest.fixture(autouse=True)
def _empty_valkey(db: None) -> None:
    client().flushdb()


@pytest.fixture
def scope() -> Scope:
    scope = for_measuring("console")
    Scope.objects.filter(pk=scope.pk).update(knowledge_version="2026-11")
    scope.refresh_from_db()
    return scope


def entry(scope: Scope, question: str, session: uuid.UUID | None = None, **columns: object) -> Entry:
    """A stored entry; `columns` in the place of what it would have."""
    made = stored(scope, question, session=session).entry
    Entry.objects.filter(pk=made.pk).update(**columns)
    made.refresh_from_db()
    return made
