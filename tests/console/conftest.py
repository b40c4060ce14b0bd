"""A cache with something in it, and people who may look after it."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client

from inference.cache import learning, lifecycle, policy, probe
from inference.models import (
    Decision,
    Entry,
    Generation,
    Observation,
    Origin,
    Outcome,
    Scope,
    ServedBy,
    Session,
    State,
    Status,
    Verdict,
    Visibility,
    Wording,
)
from inference.scopes import for_measuring
from inference.understanding.turns import Turn

QUESTION = "How long is the warranty of the X200?"
ANSWER = "The X200 has a warranty of 24 months from Acme."
SUSPECT = "How long is the warranty of the X300?"
FRESH = "The X300 has a warranty of 36 months from Acme."


@pytest.fixture(autouse=True)
def _no_rules_from_before() -> Iterator[None]:
    policy.forget()
    yield
    policy.forget()


@pytest.fixture
def rows_themselves(db: None) -> None:
    """Vectors of earlier tests stay in their index, dead, until it is vacuumed, and among many that are the
    same a new one may not be found. The few rows of a test are read without it."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_indexscan = off")


def operator(name: str = "olga", *permissions: str, staff: bool = True) -> User:
    """Somebody with these permissions of the console, by default all of them."""
    user = User.objects.create_user(name, password="correct-horse-battery", is_staff=staff)
    wanted = permissions or ("view", "review", "tune", "flush")
    user.user_permissions.set(
        Permission.objects.filter(content_type__app_label="cacheadmin", codename__in=wanted)
    )
    return User.objects.get(pk=user.pk)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def scope(db: None) -> Scope:
    return for_measuring("console tests")


def turn(text: str, *before: str) -> list[Turn]:
    said = [*before, text]
    return [{"role": "assistant" if at % 2 else "user", "content": one} for at, one in enumerate(said)]


def stored(scope: Scope, question: str = QUESTION, answer: str = ANSWER, *before: str) -> Wording:
    """A shared, proved entry with its one proved wording."""
    session = Session.objects.create(pk=uuid.uuid4())
    read = probe.read(scope, session.pk, turn(question, *before))
    return lifecycle.plant(read, session, answer, "fact", learning.answer_of(answer).vector)


def generated(scope: Scope, question: str, text: str, **values: Any) -> Generation:
    session = Session.objects.create(pk=uuid.uuid4())
    defaults = {"status": Status.COMPLETE, "served_by": ServedBy.MODEL, "first_token_ms": 500.0}
    return Generation.objects.create(
        session=session,
        scope=scope,
        question={"turns": turn(question), "fresh": False},
        canonical_question=question,
        text=text,
        **defaults | values,
    )


def doubted(
    entry: Entry,
    question: str = SUSPECT,
    fresh: str = FRESH,
    *,
    verdict: Verdict = Verdict.UNCLEAR,
    hits: int = 0,
) -> Wording:
    """A suspect wording of `entry`: it was near, and its fresh answer did not settle the matter."""
    generation = generated(entry.scope, question, fresh)
    read = probe.read(entry.scope, generation.session_id, turn(question))
    wording = Wording.objects.create(
        entry=entry,
        session=generation.session,
        visibility=Visibility.SHARED,
        state=State.SUSPECT,
        origin=Origin.NEAR,
        hits=hits,
        **lifecycle.columns_of(read),
    )
    Observation.objects.create(generation=generation, wording=wording, source="near", verdict=verdict)
    lifecycle.weigh(wording) if verdict == Verdict.DISAGREE else None
    Decision.objects.create(
        generation=generation,
        layer="semantic",
        outcome=Outcome.NEAR,
        wording=wording,
        entry=entry,
        reason="alike (0.962), but entity: x200 / x300",
        scores={"score": 0.962},
        verdict="conflict",
        near=[wording.pk],
        milliseconds=4.2,
    )
    wording.refresh_from_db()
    return wording
