"""Buffers that come back warm, and memory that comes from the system and goes back to it."""

import mmap
from dataclasses import dataclass

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from benchmarks.kv_growth import touched_bytes
from inference.kv.buffers import BLOCK, LEAST_CAPACITY, SLOTS, Buffer, Buffers, agreeing, in_blocks
from inference.kv.ledger import Ledger
from inference.kv.memory import SMALL, packed, zeros
from inference.kv.shape import Shape

from .tensors import PER_TOKEN, SHAPE

POSITIONS = 4 * LEAST_CAPACITY
# A block of a head is whole pages, as with any real model, so that it can go back to the system by itself.
PAGES = Shape(layers=2, kv_heads=1, head_dim=mmap.PAGESIZE // (4 * BLOCK), item_bytes=4)


def buffers(keep: int = 10_000) -> Buffers:
    """Keeps so many tokens' worth."""
    return Buffers(Ledger(SHAPE), torch.float32, POSITIONS, keep * PER_TOKEN)


def used(pool: Buffers, tokens: list[int], scope: str = "s") -> Buffer:
    """Computed once, and given back."""
    buffer = pool.take(scope, tokens, len(tokens))
    buffer.make_ready(len(tokens))
    buffer.length = len(tokens)
    pool.give_back(buffer, scope, tokens)
    return buffer


def test_a_conversation_finds_its_own_buffer_as_it_left_it() -> None:
    pool = buffers()
    first, second = used(pool, [*range(100)]), used(pool, [*range(50), *range(200, 260)])
    again = pool.take("s", [*range(50), *range(200, 260), 7, 8], 200)
    assert again is second and again.length == 110
    assert pool.take("s", [*range(100), 7], 200) is first


def test_of_a_branch_what_is_the_same_is_kept() -> None:
    pool = buffers()
    own = used(pool, [*range(100)])
    branch = pool.take("s", [*range(80), 999, 998], 100)
    assert branch is own and branch.length == 80


def test_scopes_and_strangers_share_nothing() -> None:
    pool = buffers()
    theirs = used(pool, [*range(100)])
    assert pool.take("other", [*range(100)], 100).length == 0
    stranger = pool.take("s", [*range(10), *range(500, 600)], 100)  # a system prompt in common is little
    assert stranger is not theirs and stranger.length == 0


def test_no_more_is_kept_than_may_be_and_a_stranger_gets_the_oldest() -> None:
    pool = buffers(keep=3 * BLOCK)
    ledger = pool._ledger
    used(pool, [*range(100, 100 + BLOCK)])
    second = used(pool, [*range(300, 300 + BLOCK)])
    used(pool, [*range(600, 600 + 2 * BLOCK)])  # four blocks: the first one goes
    assert ledger.idle == ledger.total == 3 * BLOCK * PER_TOKEN
    stranger = pool.take("s", [*range(900, 950)], 50)
    assert stranger is second and stranger.length == 0
    assert ledger.idle == 2 * BLOCK * PER_TOKEN
    pool.forget()
    assert ledger.idle == ledger.total == 0


def test_a_stranger_takes_no_more_of_a_buffer_than_was_booked_for_it() -> None:
    pool = Buffers(Ledger(PAGES), torch.float32, POSITIONS, 4 * BLOCK * PAGES.bytes_per_token)
    used(pool, [*range(4 * BLOCK)]).kv[..., : 4 * BLOCK, :] = 1
    stranger = pool.take("s", [*range(900, 950)], 50)
    assert (stranger.length, stranger.touched) == (0, BLOCK)
    assert touched_bytes(stranger.kv) == BLOCK * PAGES.bytes_per_token


@dataclass(eq=False)
class Running:
    """A request: the tokens of its prompt and, up to the end of its room, of its answer."""

    name: str
    scope: str
    tokens: list[int]
    buffer: Buffer


class BuffersMachine(RuleBasedStateMachine):
    """Requests of three conversations in two scopes, which begin alike, come, compute and end."""

    running: Bundle[Running] = Bundle("running")

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger(PAGES)
        self.pool = Buffers(self.ledger, torch.float32, POSITIONS, 6 * BLOCK * PAGES.bytes_per_token)
        self.requests: dict[str, Running] = {}
        self.count = 0

    @rule(
        target=running,
        scope=st.sampled_from("ab"),
        talk=st.integers(2, 4),
        alike=st.integers(0, 100),
        own=st.integers(1, 300),
        answer=st.integers(1, 200),
    )
    def begin(self, scope: str, talk: int, alike: int, own: int, answer: int) -> Running:
        prompt = [1] * alike + [talk] * own
        self.count += 1
        name, room = str(self.count), in_blocks(len(prompt) + answer)
        self.ledger.open(name, scope, "", room)
        buffer = self.pool.take(scope, prompt[:-1], room)
        held = torch.tensor(prompt[: buffer.length]).float()
        assert (buffer.kv[..., : buffer.length, :] == held[:, None]).all(), "not what was computed for it"
        request = self.requests[name] = Running(name, scope, prompt + [5] * (room - len(prompt)), buffer)
        return request

    @rule(request=running, tokens=st.integers(1, 250))
    def compute(self, request: Running, tokens: int) -> None:
        buffer, start = request.buffer, request.buffer.length
        total = min(start + tokens, len(request.tokens))
        buffer.make_ready(total)
        buffer.kv[..., start:total, :] = torch.tensor(request.tokens[start:total]).float()[:, None]
        buffer.length = total

    @rule(request=consumes(running), broken=st.booleans())
    def end(self, request: Running, broken: bool) -> None:
        if not broken:
            buffer = request.buffer
            self.pool.give_back(buffer, request.scope, request.tokens[: buffer.length])
        self.ledger.close(request.name)
        del self.requests[request.name], request.buffer

    @rule(scope=st.sampled_from("ab"), talk=st.integers(2, 4), own=st.integers(1, 300))
    def all_at_once(self, scope: str, talk: int, own: int) -> None:
        request = self.begin(scope, talk, 1, own, 1)
        self.compute(request, len(request.tokens))
        self.end(request, broken=False)

    @rule(blocks=st.integers(0, 6))
    def forget(self, blocks: int) -> None:
        self.pool.forget(blocks * BLOCK * PAGES.bytes_per_token)

    @invariant()
    def what_is_booked_has_been_touched_or_may_still_be(self) -> None:
        assert self.ledger.idle == sum(touched_bytes(one.buffer.kv) for one in self.pool._idle)
        to_come = 0
        for request in self.requests.values():
            room, touched = self.ledger.cost(len(request.tokens)), touched_bytes(request.buffer.kv)
            assert touched == self.ledger.cost(request.buffer.touched) <= room
            to_come += room - touched
        assert self.ledger.total - to_come == sum(touched_bytes(slab.kv) for slab in self.pool._slabs)


BuffersMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestTheBooksOfBuffers = BuffersMachine.TestCase


def test_sequences_lie_side_by_side_and_a_place_is_empty_again_when_nobody_refers_to_it() -> None:
    pool = buffers()
    taken = [pool.take("s", [], 100) for _ in range(SLOTS + 1)]
    assert [one.slot for one in taken] == [*range(SLOTS), 0]
    assert taken[0].slab is taken[SLOTS - 1].slab is not taken[SLOTS].slab
    for number, one in enumerate(taken):
        one.kv[:] = number
    slab = taken[0].slab
    del taken[3], one
    again = pool.take("s", [], 100)
    assert again.slab is slab and again.slot == 3
    assert again.kv.count_nonzero() == 0
    assert [int(slab.kv[:, :, slot].amax()) for slot in range(SLOTS)] == [0, 1, 2, 0, 4, 5, 6, 7]
    assert pool.take("s", [], LEAST_CAPACITY + 1).slab is not slab


def test_what_lies_behind_a_sequence_is_zero_to_the_end_of_its_block() -> None:
    buffer = Buffer.new(SHAPE, torch.float32, 100)
    assert buffer.capacity == 2 * BLOCK
    buffer.kv.fill_(float("nan"))
    buffer.go_on_from(70)
    buffer.make_ready(75)
    assert buffer.kv[..., 75 : 2 * BLOCK, :].isnan().any().logical_not()
    assert buffer.touched == 2 * BLOCK


def test_capacities_double_up_to_what_the_model_allows() -> None:
    pool = buffers()
    capacities = [pool.take("s", [], tokens).capacity for tokens in (1, LEAST_CAPACITY + 1, POSITIONS)]
    assert capacities == [LEAST_CAPACITY, 2 * LEAST_CAPACITY, POSITIONS]


def test_memory_is_as_large_as_the_tensor_and_independent() -> None:
    whole = torch.rand(SHAPE.sizes(SMALL // PER_TOKEN + 10))
    for part in (whole, whole[..., 3:90, :]):
        copy = packed(part)
        assert torch.equal(copy, part) and copy.untyped_storage().nbytes() == part.nbytes
        copy += 1
        assert not torch.equal(copy, part)
    assert zeros((3, 0, 2), torch.bfloat16).shape == (3, 0, 2)
    assert zeros((300, 200), torch.bfloat16).count_nonzero() == 0


@pytest.mark.parametrize(("one", "other", "same"), [("", "a", 0), ("ab", "abc", 2), ("abd", "abc", 2)])
def test_agreeing(one: str, other: str, same: int) -> None:
    assert agreeing([*map(ord, one)], [*map(ord, other)]) == same


def test_whole_blocks() -> None:
    assert [in_blocks(n) for n in (0, 1, BLOCK, BLOCK + 1)] == [0, BLOCK, BLOCK, 2 * BLOCK]
