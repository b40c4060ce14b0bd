"""Keys and values in half the bytes."""

import pytest
import torch

from inference.kv.budget import Budget
from inference.kv.cold import Cold, cold_bytes, stands
from inference.kv.prefix_store import PrefixStore
from inference.kv.shape import Shape

SHAPE = Shape(layers=3, kv_heads=2, head_dim=16, item_bytes=2)
PER_TOKEN = SHAPE.bytes_per_token


def kv_of(tokens: int, seed: int = 0) -> torch.Tensor:
    """With one channel of the keys thirty times as large, and one token of the values."""
    kv = torch.randn(SHAPE.sizes(tokens), generator=torch.Generator().manual_seed(seed))
    kv[:, 0, :, :, 5] *= 30
    kv[:, 1, :, tokens // 2] *= 30
    return kv.bfloat16()


def back(cold: Cold, first: int, last: int) -> torch.Tensor:
    into = torch.empty(SHAPE.sizes(last - first), dtype=torch.bfloat16)
    cold.write(first, last, into)
    return into


def test_a_large_channel_or_token_costs_the_others_nothing() -> None:
    kv = kv_of(40)
    off = (back(Cold.of(kv), 0, 40).float() - kv.float()).abs()
    small_channels = [channel for channel in range(16) if channel != 5]
    small_tokens = [token for token in range(40) if token != 20]
    assert off[:, 0][..., small_channels].max() < 0.03
    assert off[:, 1][:, :, small_tokens].max() < 0.03
    assert off.max() < 1


def test_parts_are_what_they_were_in_the_whole() -> None:
    cold = Cold.of(kv_of(40))
    assert torch.equal(back(cold.part(7, 30), 3, 20), back(cold, 10, 27))


def test_it_is_half_the_bytes_and_they_are_counted() -> None:
    cold = Cold.of(kv_of(200))
    assert cold.nbytes == cold_bytes(SHAPE.sizes(200)) < 0.6 * 200 * PER_TOKEN


def test_zeros_come_back_as_zeros() -> None:
    assert back(Cold.of(torch.zeros(SHAPE.sizes(3)).bfloat16()), 0, 3).count_nonzero() == 0


def store_of(tokens: int) -> PrefixStore:
    times = iter(range(10_000))
    return PrefixStore(SHAPE, Budget.fixed(tokens * PER_TOKEN), clock=lambda: next(times), cold=True)


def test_under_pressure_the_oldest_turn_cold_and_nobody_is_evicted() -> None:
    store = store_of(100)
    for name in range(8):
        store.publish("s", [name] * 10, kv_of(10, name))
    assert store.counts()["cooled"] == 0
    store.publish("s", [9] * 10, kv_of(10, 9))
    counts = store.counts()
    assert counts["cooled"] >= 4 and counts["evicted"] == 0 and counts["tokens"] == 90
    assert store.ledger.stored == store.real_bytes() <= 80 * PER_TOKEN
    into = torch.empty(SHAPE.sizes(10), dtype=torch.bfloat16)
    store.acquire("s", [9] * 10, into).release()
    assert torch.equal(into[..., :9, :], kv_of(10, 9)[..., :9, :])
    store.acquire("s", [0] * 10, into).release()
    assert torch.equal(into[..., :9, :], back(Cold.of(kv_of(10, 0)), 0, 9))


def test_frozen_ones_go_before_others_turn_cold_and_what_is_in_use_stays_as_it_is() -> None:
    store = store_of(100)
    into = torch.empty(SHAPE.sizes(11), dtype=torch.bfloat16)
    for name in range(8):
        store.publish("s", [name] * 10, kv_of(10, name), session=f"{name}")
    lease = store.acquire("s", [*[0] * 10, 5], into)
    store.end_session("3")
    assert store.evict(15 * PER_TOKEN) >= 15 * PER_TOKEN
    assert store.match("s", [3] * 10) == 0 and store.counts()["evicted"] == 1
    assert store.counts()["cooled"] > 0
    lease.release()
    store.acquire("s", [*[0] * 10, 5], into).release()
    assert torch.equal(into[..., :10, :], kv_of(10, 0))


def test_a_cold_prefix_parts_like_any_other() -> None:
    store = store_of(1000)
    store.publish("s", [*range(20)], kv_of(20))
    assert store._cool(1) > 0
    store.publish("s", [*range(12), 99], kv_of(13, 1), session="a")
    assert store.ledger.stored == store.real_bytes()
    assert store.match("s", [*range(20)]) == 20 and store.match("s", [*range(12), 99]) == 13


@pytest.mark.parametrize(("change", "holds"), [(0.01, True), (30.0, False)])
def test_a_model_that_does_not_bear_it_says_so(change: float, holds: bool) -> None:
    """One whose logits move with every step of its keys and values."""
    kv = kv_of(30)
    assert stands(kv, lambda given: given[0, 0, 0].float() * change + torch.eye(30, 16)) is holds


def test_what_is_given_in_int8_is_kept_so_and_only_what_is_new_is_asked_for() -> None:
    store, kv = store_of(1000), kv_of(30)
    asked: list[tuple[int, int]] = []

    def part(first: int, last: int) -> Cold:
        asked.append((first, last))
        return Cold.of(kv[..., first:last, :])

    store.publish("s", [*range(20)], kv[..., :20, :])
    assert store.publish("s", [*range(30)], part, session="a") == 30
    assert asked == [(20, 30)]
    assert store.ledger.stored == store.real_bytes() == 20 * PER_TOKEN + cold_bytes(SHAPE.sizes(10))
    into = torch.empty(SHAPE.sizes(31), dtype=torch.bfloat16)
    store.acquire("s", [*range(31)], into).release()
    assert torch.equal(into[..., :20, :], kv[..., :20, :])
    assert torch.equal(into[..., 20:30, :], back(Cold.of(kv[..., 20:30, :]), 0, 10))
