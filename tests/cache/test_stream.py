"""The stream of a generation: contiguous, replayable from any seq, and no loss when Valkey is."""

import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inference import stream
from inference.ending import Ending
from inference.redis import async_client, client

ENDING = Ending("complete", "model", None, "", 10, 0, 3, 1.5, None, 20.0, 30.25)


async def read_from(generation: uuid.UUID, position: str) -> list[stream.Item]:
    connection = async_client()
    try:
        return await stream.read(connection, generation, position, 10)
    finally:
        await connection.aclose()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=4), min_size=1, max_size=6))
def test_every_prefix_is_what_its_reader_has_seen(batches: list[list[str]]) -> None:
    writer = stream.Writer(uuid.uuid4())
    for batch in batches:
        writer.append(batch)
    pieces = [piece for batch in batches for piece in batch]
    assert writer.seq == len(pieces)
    for seen in range(len(pieces) + 1):
        expected = "".join(pieces[:seen])
        assert writer.text_at(seen) == expected
        assert stream.text_until(writer.generation, seen) == expected


async def test_replay_after_every_seq() -> None:
    writer = stream.Writer(uuid.uuid4())
    pieces = [f"{at} " for at in range(12)]
    for piece in pieces:
        writer.append([piece])
    for after in range(1, 13):
        items = await read_from(writer.generation, f"{after}-0")
        assert [item.seq for item in items] == list(range(after + 1, 13))
        assert "".join(item.text for item in items) == "".join(pieces[after:])


async def test_a_replacement_reaches_those_who_hold_more() -> None:
    writer = stream.Writer(uuid.uuid4())
    writer.append(["a", "b", "c"])
    writer.replace("a")
    writer.done(ENDING)
    items = await read_from(writer.generation, "3-0")
    assert [item.kind for item in items] == ["snapshot", "done"]
    assert Ending.from_json(items[1].text) == ENDING
    assert stream.fold(items) == ("a", 3)
    assert stream.text_until(writer.generation) == "a"


async def test_a_lost_stream_goes_on_with_the_whole_text() -> None:
    writer = stream.Writer(uuid.uuid4())
    writer.append(["a", "b"])
    client().flushdb()
    writer.append(["c"])
    writer.append(["d"])
    assert stream.text_until(writer.generation) == "abcd"
    behind = await read_from(writer.generation, "2-0")
    assert stream.fold(behind)[0] == "abcd"
    ahead = await read_from(writer.generation, "3-0")
    assert stream.fold(ahead)[0] == "abcd", "a reader who had seen it all gets the snapshot, and what follows"


async def test_a_second_attempt_wipes_the_first() -> None:
    first = stream.Writer(uuid.uuid4())
    first.append(["half an ", "answ"])
    second = stream.Writer(first.generation)
    second.append(["A whole ", "one."])
    assert stream.text_until(first.generation) == "A whole one."
    assert second.seq == 4
    assert stream.fold(await read_from(first.generation, "2-0"))[0] == "A whole one."


def test_the_first_request_to_stop_counts() -> None:
    generation = uuid.uuid4()
    assert stream.stop_requested(generation) is None
    stream.request_stop(generation, 7)
    stream.request_stop(generation, 9)
    assert stream.stop_requested(generation) == 7


def test_streams_are_forgotten_after_a_while() -> None:
    writer = stream.Writer(uuid.uuid4())
    writer.append(["x"])
    writer.done(ENDING)
    assert 0 < client().ttl(f"generation:{writer.generation}:stream") <= 3600


@pytest.mark.parametrize("text", ["\x00", "😀", "\u202e", "a" * 100_000])
def test_any_text_survives(text: str) -> None:
    writer = stream.Writer(uuid.uuid4())
    writer.append([text])
    assert stream.text_until(writer.generation) == text


def test_a_leader_leaves_the_stream_of_who_computes_for_itself() -> None:
    """Between leaving a leader and the leader's noticing it, both write to the follower's stream."""
    leader, follower = stream.Writer(uuid.uuid4()), uuid.uuid4()
    leader.append(["led "], {follower})
    own = stream.Writer(follower)
    own.append(["own "])
    leader.append(["by ", "another"], {follower})
    leader.append([" still"], {follower})
    own.append(["words"])
    assert stream.text_until(follower) == own.text == "own words"
    assert stream.text_until(leader.generation) == leader.text == "led by another still"
