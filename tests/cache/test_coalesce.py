"""The same question in flight is computed once."""

import uuid
from functools import partial

import pytest

from inference import claims, pipeline, stream, workers
from inference.cache import coalesce
from inference.models import Generation, ServedBy, Status
from inference.redis import client

from .conftest import Ask, at_once

QUESTION = "Name three primary colours."


def look_up(generation: Generation) -> Generation:
    """What the answer worker does with it."""
    pipeline.answer(str(generation.pk))
    generation.refresh_from_db()
    return generation


def compute(generation: Generation) -> Generation:
    pipeline.generate(str(generation.pk))
    generation.refresh_from_db()
    return generation


def test_the_second_follows_the_first(queue: Ask) -> None:
    leader, follower = look_up(queue(QUESTION)), look_up(queue(QUESTION))
    assert (leader.status, leader.leader) == (Status.PENDING, None)
    assert (follower.status, follower.leader) == (Status.RUNNING, leader)
    compute(leader)
    follower.refresh_from_db()
    assert (follower.status, follower.served_by) == (Status.COMPLETE, ServedBy.COALESCED)
    assert follower.text == leader.text != ""
    assert stream.text_until(follower.pk) == stream.text_until(leader.pk) == leader.text


def test_one_who_joins_in_the_middle_gets_the_beginning_too(queue: Ask) -> None:
    leader = look_up(queue(QUESTION))
    claimed = claims.for_engine(leader.pk)
    assert claimed is not None
    writer = stream.Writer(claimed.pk)
    writer.append(["Red, "])
    writer.append(["blue, "])
    follower = look_up(queue(QUESTION))
    writer.append(["yellow"], coalesce.followers(claimed.pk))
    writer.append(["."], coalesce.followers(claimed.pk))
    assert stream.text_until(follower.pk) == "Red, blue, yellow."


def test_other_questions_and_fresh_ones_go_alone(queue: Ask) -> None:
    look_up(queue(QUESTION))
    assert look_up(queue("Name two primary colours.")).leader is None
    assert look_up(queue(QUESTION, fresh=True)).leader is None


def test_a_private_question_is_shared_within_its_session_only(queue: Ask) -> None:
    mine, private = uuid.uuid4(), "My name is Zoe. What is in my name?"
    leader = look_up(queue(private, session=mine))
    assert look_up(queue(private)).leader is None
    assert look_up(queue(private, session=mine)).leader == leader


def test_a_stopped_leader_leaves_its_followers_to_compute(queue: Ask) -> None:
    leader, follower = look_up(queue(QUESTION)), look_up(queue(QUESTION))
    stream.request_stop(leader.pk, 0)
    assert compute(leader).status == Status.STOPPED
    follower.refresh_from_db()
    assert (follower.status, follower.leader, follower.looked_up) == (Status.PENDING, None, True)
    assert compute(follower).status == Status.COMPLETE
    assert follower.text and stream.text_until(follower.pk) == follower.text


def test_a_follower_that_sees_no_token_computes_for_itself(queue: Ask) -> None:
    look_up(queue(QUESTION))
    follower = look_up(queue(QUESTION))
    coalesce.check(follower.pk, stream.START)
    follower.refresh_from_db()
    assert (follower.status, follower.leader) == (Status.PENDING, None)


def test_a_follower_whose_stream_moves_stays(queue: Ask) -> None:
    leader, follower = look_up(queue(QUESTION)), look_up(queue(QUESTION))
    claimed = claims.for_engine(leader.pk)
    assert claimed is not None
    stream.Writer(claimed.pk).append(["Red"], coalesce.followers(claimed.pk))
    coalesce.check(follower.pk, stream.START)
    follower.refresh_from_db()
    assert follower.leader == leader


def test_a_dead_flight_is_led_anew(queue: Ask) -> None:
    leader = look_up(queue(QUESTION))
    Generation.objects.filter(pk=leader.pk).update(status=Status.INTERRUPTED)
    assert look_up(queue(QUESTION)).leader is None


def test_without_valkey_everyone_computes(queue: Ask) -> None:
    look_up(queue(QUESTION))
    client().flushdb()
    workers.announce("generate")
    assert look_up(queue(QUESTION)).leader is None


@pytest.mark.django_db(transaction=True)
def test_many_at_once_have_one_leader(queue: Ask) -> None:
    generations = [queue(QUESTION) for _ in range(8)]
    at_once([partial(pipeline.answer, str(generation.pk)) for generation in generations])
    leaders = list(Generation.objects.filter(status=Status.PENDING, looked_up=True))
    assert len(leaders) == 1
    compute(leaders[0])
    texts = set(Generation.objects.values_list("status", "text"))
    assert len(texts) == 1 and next(iter(texts))[0] == Status.COMPLETE
