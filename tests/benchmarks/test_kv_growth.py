"""The run is the one that docs/benchmarks.md describes, and its check of the books has eyes of its own."""

from itertools import islice

import torch

from benchmarks.kv_growth import AT_ONCE, schedule, touched_bytes
from inference.kv.buffers import BLOCK, Buffer
from tests.kv.tensors import PER_TOKEN, SHAPE

TURNS = 10


def test_conversations_begin_one_after_the_other() -> None:
    asked = list(islice(schedule(TURNS), 2000))
    begun = [session for session, turn in asked if turn == 0]
    assert begun == [*range(236)]
    turns: dict[int, int] = {}
    for session, turn in asked:
        assert turn == turns.get(session, 0), "none is asked out of turn"
        turns[session] = turn + 1
    for start in range(0, 2000, AT_ONCE):
        assert len({session for session, _ in asked[start : start + AT_ONCE]}) == AT_ONCE
    warm = asked.index((AT_ONCE * (TURNS - 1), 0))
    for start in range(warm, 2000 - TURNS, TURNS):
        assert {turn for _, turn in asked[start : start + TURNS]} == {*range(TURNS)}


def test_what_has_been_touched_is_seen_whatever_the_books_say() -> None:
    buffer = Buffer.new(SHAPE, torch.float32, 10 * BLOCK)
    assert touched_bytes(buffer.kv) == 0
    buffer.kv[..., : BLOCK + 1, :] = 1
    buffer.touched = 0
    assert touched_bytes(buffer.kv) == 2 * BLOCK * PER_TOKEN
