"""The compiled way of recalling does what torch's does."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.kv.archive import Archive
from inference.kv.recall import Rest, candidates, find, worth
from inference.kv.recall_kernel import Recaller
from inference.kv.recallable import Figures, Recall, _Layer

SIZE = 16


def random(seed: int, *sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed)).bfloat16()


def archive_of(tokens: int, heads: int = 2, seed: int = 0, ratio: int = 10) -> Archive:
    archive = Archive(heads, SIZE, tokens + 100, torch.bfloat16)
    archive.add(4, 2 * random(seed, heads, tokens, SIZE), random(seed + 1, heads, tokens, SIZE), ratio, 5)
    return archive


def resident_for(archive: Archive, room: int) -> torch.Tensor:
    return torch.zeros(2, len(archive.keys), room + 8, SIZE, dtype=torch.bfloat16)


def is_what_lies_there(archive: Archive, recaller: Recaller, resident: torch.Tensor) -> bool:
    rows = recaller.lying
    keys, values = archive.take(rows.view(-1), (rows // archive.capacity).view(-1))
    brought = resident[:, :, : rows.shape[1]]
    return torch.equal(brought[0].flatten(0, 1), keys) and torch.equal(brought[1].flatten(0, 1), values)


any_archive = given(
    tokens=st.integers(20, 400),
    room=st.integers(1, 60),
    more=st.floats(1, 3),
    group=st.integers(1, 4),
    seed=st.integers(0, 1000),
)


@settings(max_examples=40, deadline=None)
@any_archive
def test_it_chooses_what_torch_chooses(tokens: int, room: int, more: float, group: int, seed: int) -> None:
    archive = archive_of(tokens, seed=seed)
    room = min(room, tokens)
    looked = min(tokens, int(room * more))
    queries = random(seed + 2, 2, group, SIZE) / 4
    resident = resident_for(archive, room)
    recaller = Recaller(archive, resident)
    brought, order = recaller.recall(queries, looked, room), recaller.order
    _, theirs = candidates(queries, archive.index, looked)
    assert brought == 2 * room and is_what_lies_there(archive, recaller, resident)
    # As many clusters, each once, and of what is nearly worth as much either may come first.
    assert torch.equal(order.sort().values, theirs.sort().values)
    by_worth = worth(queries, archive.index).gather(1, order)
    torch.testing.assert_close(by_worth, by_worth.sort(descending=True).values, rtol=0.05, atol=1e-6)
    for head in range(2):
        first = [place for cluster in order[head].tolist() for place in places_of(archive, head, cluster)]
        mine = (recaller.lying[head] - head * archive.capacity).tolist()
        assert len(set(mine)) == room and set(mine) <= set(first[:looked])
        # Of those that were looked at, no others would get more of the attention.
        shares = attention(archive, head, queries[head], first[:looked]).sum(0)
        got = sum(float(shares[first.index(place)]) for place in mine)
        assert got >= 0.999 * float(shares.topk(room).values.sum())


def places_of(archive: Archive, head: int, cluster: int) -> range:
    start, size = (int(one[head, cluster]) for one in (archive.index.starts, archive.index.sizes))
    return range(start, start + size)


def attention(archive: Archive, head: int, queries: torch.Tensor, places: list[int]) -> torch.Tensor:
    """Of each of the group's heads, to what lies there, (heads, places)."""
    assert archive.key_steps is not None
    keys = archive.keys[head, places].float() * archive.key_steps[head].float()
    return torch.softmax(queries.float() @ keys.t(), dim=-1)


@settings(max_examples=40, deadline=None)
@any_archive
def test_the_rest_counts_as_its_clusters_do(
    tokens: int, room: int, more: float, group: int, seed: int
) -> None:
    archive = archive_of(tokens, seed=seed)
    room = min(room, tokens - 1)
    looked = min(tokens, int(room * more))
    queries = random(seed + 2, 2, group, SIZE) / 4
    recaller = Recaller(archive, resident_for(archive, room))
    recaller.recall(queries, looked, room, estimate=True)
    assert recaller.rest is not None
    mine = recaller.lying - torch.arange(2)[:, None] * archive.capacity
    assert_is_rest(recaller.rest, archive, queries, recaller.order, looked, mine, off=0.03)
    found = find(queries, archive.index, partial(archive.scores, queries), looked, room, estimate=True)
    assert found.rest is not None
    # Torch rounds queries to 8 bits where keys are looked at.
    assert_is_rest(found.rest, archive, queries, found.order, looked, found.places, off=0.15)


def assert_is_rest(
    rest: Rest,
    archive: Archive,
    queries: torch.Tensor,
    order: torch.Tensor,
    looked: int,
    recalled: torch.Tensor,
    off: float,
) -> None:
    """Token by token: one that was looked at gets what its key does, another what its cluster says."""
    index = archive.index
    assert archive.key_steps is not None
    for head in range(2):
        keys = archive.keys[head].float() * archive.key_steps[head].float()
        asked = queries[head].float()
        scores, values, seen = [], [], 0
        for cluster in order[head].tolist():
            likely = asked @ index.centroids[head, cluster].float()
            likely += asked.square().sum(-1) * index.spreads[head, 0, cluster] / 2
            mean = index.means[head, cluster] * index.steps[head, cluster]
            for place in places_of(archive, head, cluster):
                if place not in recalled[head].tolist():
                    scores.append(asked @ keys[place] if seen < looked else likely)
                    values.append(mean)
                seen += 1
        told = torch.stack(scores, -1)
        right = torch.softmax(told, -1) @ torch.stack(values)
        torch.testing.assert_close(rest.scores[head, :, 0].float(), told.logsumexp(-1), rtol=0.01, atol=off)
        torch.testing.assert_close(rest.values[head].float(), right, rtol=0.02, atol=off)


def test_what_was_there_is_not_brought_again() -> None:
    archive = archive_of(300)
    resident = resident_for(archive, 40)
    recaller = Recaller(archive, resident)
    queries = random(7, 2, 3, SIZE) / 4
    assert recaller.recall(queries, 80, 40) == 80
    lying = recaller.lying.clone()
    assert recaller.recall(queries, 80, 40) == 0
    assert torch.equal(recaller.lying, lying)
    before = {head: set(row) for head, row in enumerate(recaller.lying.tolist())}
    brought = recaller.recall(queries + random(8, 2, 3, SIZE) / 8, 80, 40)
    after = {head: set(row) for head, row in enumerate(recaller.lying.tolist())}
    assert brought == sum(len(after[head] - before[head]) for head in after)
    assert 0 < brought < 80 and all(len(row) == 40 for row in after.values())
    assert is_what_lies_there(archive, recaller, resident)


def test_it_follows_an_archive_that_grows() -> None:
    """More clusters, wider steps, more to recall than there was."""
    archive = archive_of(30)
    resident = resident_for(archive, 50)
    recaller = Recaller(archive, resident)
    queries = random(3, 2, 3, SIZE)
    assert recaller.recall(queries, 30, 30) == 60
    steps = archive.key_steps
    archive.add(34, 9 * random(4, 2, 60, SIZE), random(5, 2, 60, SIZE), 10, 5)
    assert archive.key_steps is not steps
    assert recaller.recall(queries, 90, 50) == 100
    assert is_what_lies_there(archive, recaller, resident)


@pytest.mark.parametrize("value", [0.0, 1e4, -1e4])
def test_queries_that_like_nothing_or_one_thing_only(value: float) -> None:
    archive = archive_of(200)
    resident = resident_for(archive, 30)
    recaller = Recaller(archive, resident)
    queries = torch.zeros(2, 3, SIZE, dtype=torch.bfloat16)
    queries[..., 0] = value
    recaller.recall(queries, 60, 30)
    assert all(len(set(row)) == 30 for row in recaller.lying.tolist())
    assert is_what_lies_there(archive, recaller, resident)


@pytest.mark.parametrize(
    ("dtype", "exact", "fits"),
    [(torch.bfloat16, False, True), (torch.bfloat16, True, False), (torch.float32, False, False)],
)
def test_only_int8_of_bf16_is_recalled_so(dtype: torch.dtype, exact: bool, fits: bool) -> None:
    archive = Archive(2, SIZE, 200, dtype, exact)
    keys = random(1, 2, 120, SIZE).to(dtype)
    archive.add(0, keys, keys, 10, 5)
    assert Recaller.fits(archive) == fits
    how = Recall(budget=48, sinks=4, keep=4, fresh=4, looked=60)
    layer = _Layer(archive, torch.zeros(2, 2, 52, SIZE, dtype=dtype), how.room, how.sinks)
    figures = Figures()
    queries = random(2, 2, 3, SIZE).to(dtype)
    count, rest = layer.recall(queries, how, figures)
    assert count == 40 and rest is not None and rest.values.dtype == dtype
    assert (figures.recalled, figures.decompressed, len(layer.lying())) == (80, 80, 80)
    layer.recall(queries, how, figures)
    assert (figures.recalled, figures.decompressed) == (160, 80)
