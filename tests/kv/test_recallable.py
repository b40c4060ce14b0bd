"""Sequences that are archived and recalled: nothing lost, nothing twice, every byte in the books."""

import threading
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.engines.attention import Rows, Span, readers
from inference.kv.archive import Archive, clusters_for
from inference.kv.buffers import BLOCK, Buffer, Buffers
from inference.kv.clustering import clusters_of
from inference.kv.comparison import Method, Quest, Recalled, Snap, Window
from inference.kv.ledger import Ledger
from inference.kv.quantize import rounded, turning_steps
from inference.kv.recall import Index, candidates, find, worth
from inference.kv.recall_policy import RecallPolicy
from inference.kv.recallable import LAYERS_AT_ONCE, Recall, Recallable, ratio_for
from inference.kv.recalls import Recalls
from inference.kv.shape import Shape

SHAPE = Shape(layers=4, kv_heads=2, head_dim=16, item_bytes=4)
EACH = 3
SMALL = Recall(budget=64, fresh=64, ratio=8, full_layers=(0,), sinks=4, keep=8)
LATER = torch.full((BLOCK, BLOCK), float("-inf")).triu(1)


def keys_of(tokens: int, heads: int = 2, size: int = 16, seed: int = 0) -> torch.Tensor:
    return torch.randn(heads, tokens, size, generator=torch.Generator().manual_seed(seed))


def filled(tokens: int, seed: int = 0, capacity: int = 512, dtype: torch.dtype = torch.float32) -> Buffer:
    buffer = Buffer.new(SHAPE, dtype, capacity)
    whole = torch.randn(SHAPE.sizes(tokens), generator=torch.Generator().manual_seed(seed))
    buffer.kv[..., :tokens, :] = whole
    buffer.go_on_from(tokens)
    return buffer


def step(buffer: Buffer, rows: Rows) -> None:
    """A pass over the tokens whose queries, keys and values `rows` hold."""
    count = len(rows.turned)
    span = Span(buffer, 0, count, buffer.length)
    buffer.make_ready(span.total)
    reading = readers([span], rows, LATER)
    for layer in range(SHAPE.layers):
        for reader in reading:
            reader.attend(layer)
    buffer.length += count


def rows_of(count: int, seed: int) -> Rows:
    rows = Rows(count, SHAPE.kv_heads * EACH, SHAPE, torch.float32)
    rows.turned.copy_(torch.randn(rows.turned.shape, generator=torch.Generator().manual_seed(seed)))
    return rows


def lying_in(layer: Any) -> torch.Tensor:
    """By slot, the rows of the archive that are recalled."""
    assert layer._lying is not None
    return layer._lying


def whole(buffer: Buffer) -> torch.Tensor:
    part = buffer.part(0, buffer.length)
    assert isinstance(part, torch.Tensor)
    return part.clone()


# -- clusters --


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 200), st.integers(1, 40), st.integers(0, 5))
def test_every_key_is_in_one_cluster(tokens: int, ratio: int, seed: int) -> None:
    count = clusters_for(tokens, ratio)
    found = clusters_of(keys_of(tokens, seed=seed), count, seed=seed)
    assert found.labels.shape == (2, tokens) and found.centroids.shape == (2, count, 16)
    assert found.labels.min() >= 0 and found.labels.max() < count
    for head in range(2):
        assert torch.equal(found.labels[head].bincount(minlength=count), found.sizes[head])


def test_keys_that_point_the_same_way_are_together() -> None:
    towards = torch.eye(8)[:4] * 3
    groups = torch.arange(4).repeat(50)
    keys = (towards[groups] + 0.05 * keys_of(200, 1, 8)[0])[None] + 7  # all far from the origin
    found = clusters_of(keys, 4, seed=4)
    assert all(len(set(found.labels[0][groups == group].tolist())) == 1 for group in range(4))
    for label in set(found.labels[0].tolist()):
        mean = keys[0][found.labels[0] == label].mean(0)
        assert torch.allclose(found.centroids[0, label], mean, atol=1e-4)


def test_a_cluster_without_keys_keeps_its_centroid() -> None:
    found = clusters_of(torch.ones(1, 6, 4), 3)
    assert sorted(found.sizes[0].tolist()) == [0, 0, 6]
    assert torch.allclose(found.centroids, torch.ones(1, 3, 4))
    assert not found.spreads.any()


@pytest.mark.parametrize("count", [0, 7])
def test_impossible_numbers_of_clusters_are_refused(count: int) -> None:
    with pytest.raises(ValueError, match="clusters of 6 keys"):
        clusters_of(torch.ones(1, 6, 4), count)


def test_the_ratio_goes_with_the_length() -> None:
    assert [ratio_for(tokens) for tokens in (100, 4096, 8192, 20_480, 32_768)] == [20, 32, 64, 80, 80]


# -- choosing --


def index_of(sizes: list[list[int]], centroids: torch.Tensor) -> Index:
    held = torch.tensor(sizes)
    spreads, starts = torch.zeros(len(held), 1, held.shape[1]), (held.cumsum(1) - held).int()
    steps = torch.ones(*held.shape, 1)
    return Index(centroids, spreads, starts, held.int(), torch.zeros_like(centroids).to(torch.int8), steps)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=3, max_size=12), st.integers(1, 60), st.integers(0, 9))
def test_candidates_are_distinct_places_of_the_best_clusters(sizes: list[int], count: int, seed: int) -> None:
    sizes = [*sizes, 1]  # not all empty
    count = min(count, sum(sizes))
    centroids = keys_of(len(sizes), seed=seed)
    index = index_of([sizes, sizes[::-1]], centroids)
    places, order = candidates(keys_of(EACH, seed=seed + 1), index, count)
    assert places.shape == (2, count)
    for head in range(2):
        assert len(set(places[head].tolist())) == count
        expected: list[int] = []
        for cluster in order[head].tolist():
            start = int(index.starts[head, cluster])
            expected += range(start, start + int(index.sizes[head, cluster]))
        assert places[head].tolist() == expected[:count]


def test_a_cluster_is_worth_what_one_of_its_keys_gets() -> None:
    query, centroids = torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[1.0, 0], [3, 0], [2, 0]]])
    shares = torch.softmax(torch.tensor([1.0] * 5 + [3.0] * 2), 0)
    found = worth(query, index_of([[5, 2, 0]], centroids))
    assert torch.allclose(found, torch.tensor([[shares[0], shares[5], 0]]))


def test_a_loose_cluster_is_worth_more_than_a_tight_one() -> None:
    """By the mean of exp(q·k) over its keys."""
    keys = torch.cat((0.05 * keys_of(4000, 1), 0.3 * keys_of(4000, 1, seed=1)), 1)
    query = keys_of(1, 1, seed=2)
    halves = keys.view(1, 2, 4000, 16)
    index = Index(
        halves.mean(2),
        (halves - halves.mean(2, keepdim=True)).square().mean((2, 3))[:, None],
        torch.tensor([[0, 4000]]),
        torch.tensor([[4000, 4000]]),
        torch.zeros(1, 2, 16, dtype=torch.int8),
        torch.ones(1, 2, 1),
    )
    found = worth(query, index)[0]
    right = (halves @ query[0, 0]).exp().mean(-1)[0]
    assert found[1] / found[0] == pytest.approx(float(right[1] / right[0]), rel=0.1)


def test_with_one_head_clusters_come_by_their_centroids_score() -> None:
    centroids, query = keys_of(20, 1), keys_of(1, 1, seed=3)
    _, order = candidates(query, index_of([[3] * 20], centroids), 12)
    assert torch.equal(order[0], (centroids[0] @ query[0, 0]).argsort(descending=True))


def test_the_room_is_filled_with_the_keys_that_score_best() -> None:
    keys, query = keys_of(50, 1), keys_of(1, 1, seed=3)
    scores = query @ keys.transpose(1, 2)
    index = index_of([[20, 30]], keys_of(2, 1))
    found = find(query, index, lambda some: scores[..., some[0]], 50, 10, estimate=False)
    assert set(found.places[0].tolist()) == set(scores[0, 0].topk(10).indices.tolist())
    assert found.rest is None


def test_what_is_not_recalled_counts_as_its_clusters_mean() -> None:
    """Attention over a few recalled tokens and the rest is nearer to attention over all than without it."""
    archive = Archive(1, 16, 600, torch.float32)
    keys = 0.5 * keys_of(600, 1)
    values = keys @ keys_of(16, 1, seed=1)  # keys that are alike stand for things that are
    archive.add(0, keys, values, 10, 20)
    off = {True: 0.0, False: 0.0}
    for number in range(20):
        query = keys_of(1, 1, seed=2 + number)
        right = torch.softmax(query @ keys.transpose(1, 2), -1) @ values
        for estimate in (True, False):
            scores = partial(archive.scores, query)
            found = find(query, archive.index, scores, 120, 60, estimate=estimate)
            at = archive.positions.gather(1, found.places).long()[0]
            told, known = query @ keys[:, at].transpose(1, 2), values[:, at]
            if found.rest is not None:
                told = torch.cat((told, found.rest.scores), -1)
                known = torch.cat((known, found.rest.values), 1)
            off[estimate] += float((torch.softmax(told, -1) @ known - right).norm())
    assert off[True] < 0.75 * off[False]


# -- archives --


@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(1, 90), min_size=1, max_size=4), st.booleans(), st.integers(0, 5))
def test_an_archive_loses_nothing_and_holds_nothing_twice(added: list[int], exact: bool, seed: int) -> None:
    total = sum(added)
    keys, values = keys_of(total, seed=seed), keys_of(total, seed=seed + 9) * 3
    archive = Archive(2, 16, total, torch.float32, exact)
    first = 0
    for count in added:
        own = slice(first, first + count)
        archive.add(first, keys[:, own], values[:, own], 8, 5)
        first += count
    for head in range(2):
        assert sorted(archive.positions[head].tolist()) == list(range(total))
    assert (archive.index.sizes.sum(1) == total).all()
    back = torch.zeros(2, 2, total, 16)
    archive.write(0, total, back)
    if exact:
        assert torch.equal(back, torch.stack((keys, values)))
    else:
        # Half a step, and as much again each time that the steps grew.
        assert (back[0] - keys).abs().max() <= 0.51 * len(added) * 1.1 * turning_steps(keys).max()
        assert torch.allclose(back[1], values, atol=0.51 * float(values.abs().max() / 127))
    part = torch.zeros(2, 2, total, 16)
    archive.write(total // 3, total, part[:, :, total // 3 :])
    assert torch.equal(part[:, :, total // 3 :], back[:, :, total // 3 :])
    assert not part[:, :, : total // 3].any()


def test_keys_beyond_the_steps_widen_them_for_what_is_held() -> None:
    archive = Archive(2, 16, 200, torch.float32)
    early, late = keys_of(100), keys_of(100, seed=1) * 20
    archive.add(0, early, early, 10, 5)
    archive.add(100, late, late, 10, 5)
    back = torch.zeros(2, 2, 200, 16)
    archive.write(0, 200, back)
    step_now = 1.1 * turning_steps(late).max()
    assert (back[0, :, 100:] - late).abs().max() <= 0.51 * step_now
    assert (back[0, :, :100] - early).abs().max() <= 0.52 * step_now


def test_steps_hold_for_keys_turned_to_any_position() -> None:
    keys = keys_of(64)
    one, other = keys.chunk(2, -1)
    for angle in torch.linspace(0, 6.3, 20):
        turned = torch.cat(
            (one * angle.cos() - other * angle.sin(), one * angle.sin() + other * angle.cos()), -1
        )
        assert (turned.abs() <= 127.001 * turning_steps(keys)).all()


def test_scores_of_places_are_those_of_their_keys() -> None:
    keys, queries = keys_of(120), keys_of(EACH, seed=5)
    for exact, most in ((True, 1e-5), (False, 0.15)):
        archive = Archive(2, 16, 120, torch.float32, exact)
        archive.add(0, keys, keys, 10, 5)
        places = torch.stack((torch.arange(40), torch.arange(80, 120)))
        at = archive.positions.gather(1, places).long()
        right = queries @ keys.gather(1, at[..., None].expand(-1, -1, 16)).transpose(1, 2)
        assert (archive.scores(queries, places) - right).abs().max() < most


def test_more_than_there_is_room_for_is_refused() -> None:
    archive = Archive(2, 16, 10, torch.float32)
    with pytest.raises(IndexError, match="don't fit"):
        archive.add(0, keys_of(11), keys_of(11), 4, 5)
    assert archive.tokens == 0 and archive.index.sizes.shape == (2, 0)


def test_rounded_zeros_come_back_as_zeros() -> None:
    ints, steps = rounded(torch.zeros(3, 4), 1)
    assert not ints.any() and steps.isfinite().all()


# -- sequences --


def recallable(buffer: Buffer, how: Recall = SMALL) -> Recallable:
    plug = Recallable(buffer, how)
    buffer.plug = plug
    return plug


@pytest.mark.parametrize("prompt", [70, 200, 333])
def test_with_room_for_all_it_sees_what_full_attention_sees(prompt: int) -> None:
    """And over many steps, in which windows are archived, and another turn's prompt comes in between."""
    how = Recall(budget=512, fresh=64, ratio=8, full_layers=(0,), sinks=4, keep=8, exact=True)
    one, other = filled(prompt), filled(prompt)
    plug = recallable(other, how)
    for number, count in enumerate([1] * 80 + [30, 5] + [1] * 40):
        mine, theirs = rows_of(count, number), rows_of(count, number)
        step(one, mine)
        step(other, theirs)
        assert torch.allclose(mine.seen, theirs.seen, atol=1e-5), number
    assert torch.equal(whole(one), whole(other))
    assert plug.recalls(3) and plug.figures.recalled > 0


def test_what_it_sees_is_sinks_window_and_what_was_recalled() -> None:
    buffer = filled(300)
    plug = recallable(buffer, Recall(64, 8, 2, 0, (0,), 4, 8, exact=True, estimate=False))
    plug.settle()
    kv, rows = whole(buffer), rows_of(1, 3)
    step(buffer, rows)
    layer, archive = plug._layers[3], plug._layers[3].archive
    asked = rows.queries(slice(0, 1))[0]
    places = torch.stack([lying - head * archive.capacity for head, lying in enumerate(lying_in(layer))])
    at = archive.positions.gather(1, places)
    assert at.shape[1] == layer.room
    seen = torch.zeros(2, 301, dtype=torch.bool).scatter_(1, at.long(), True)
    seen[:, :4] = seen[:, 292:] = True
    assert seen.sum(1).tolist() == [65, 65]
    keys, values = torch.cat((kv[3], rows.fresh(slice(0, 1))[0][:, :, None]), 2)
    scores = (asked @ keys.transpose(1, 2)).masked_fill_(~seen[:, None], float("-inf"))
    right = torch.softmax(scores, -1) @ values
    assert torch.allclose(rows.seen.view(right.shape), right, atol=1e-5)


def test_what_stays_recalled_is_not_decompressed_again_and_is_right() -> None:
    buffer = filled(400)
    plug = recallable(buffer)
    plug.settle()
    before = 0
    for number in range(30):
        rows = rows_of(1, number // 5)  # each query five times
        step(buffer, rows)
        if number % 5 == 4:
            assert plug.figures.decompressed == before
        before = plug.figures.decompressed
        for layer in plug._layers[1:]:
            archive = layer.archive
            flat = layer._lying.flatten()
            keys, values = archive.take(flat, flat // archive.capacity)
            slots = layer.resident[:, :, : layer._lying.shape[1]].flatten(1, 2)
            assert torch.equal(slots, torch.stack((keys, values)))
            assert all(len(head.unique()) == len(head) for head in layer._lying)
    assert 0 < plug.figures.hit_ratio < 1


def test_layers_are_archived_a_few_at_a_time_and_then_leave_the_buffer() -> None:
    buffer = filled(300)
    told: list[int] = []
    plug = recallable(buffer)
    plug.booked = told.append
    held = buffer.bytes_of(512)
    step(buffer, rows_of(1, 0))
    assert plug.in_buffer == SHAPE.layers - LAYERS_AT_ONCE
    for number in range(3):
        step(buffer, rows_of(1, number))
    assert plug.in_buffer == 1 and told[-1] == buffer.bytes_of(512) < held
    assert not buffer.kv[1:, :, :, :256].any()  # whole pages


def test_bytes_told_are_those_of_its_tensors() -> None:
    buffer = filled(300, capacity=512)
    plug = recallable(buffer)
    plug.settle()
    for number in range(5):
        step(buffer, rows_of(1, number))
    device = host = 0
    for layer in plug._layers[1:]:
        archive = layer.archive
        index = archive.index
        for one in (layer.resident, layer._lying, *index.tensors()):
            device += one.untyped_storage().nbytes()
        for one in (archive.keys, archive.values, archive.value_steps, archive._positions):
            host += one[:, : archive.tokens].contiguous().untyped_storage().nbytes()
        host += archive.key_steps.untyped_storage().nbytes()
    assert (plug.device_bytes, plug.host_bytes) == (device, host)
    room = 512 * SHAPE.bytes_per_token // SHAPE.layers  # layer 0 stays
    assert buffer.bytes_of(512) == room + device + host + plug.temporary_bytes


def test_positions_come_back_wherever_they_lie() -> None:
    buffer = filled(300)
    before = whole(buffer)
    plug = recallable(buffer, Recall(64, 8, 2, 0, (0,), 4, 8, exact=True, estimate=False))
    plug.settle()
    rows = rows_of(9, 4)
    step(buffer, rows)  # staged
    assert torch.equal(whole(buffer)[..., :300, :], before)
    for first, last in ((0, 3), (2, 7), (100, 295), (290, 309), (305, 309)):
        assert torch.equal(buffer.part(first, last), whole(buffer)[..., first:last, :])
    fresh = rows.fresh(slice(0, 9)).permute(1, 2, 0, 3)
    assert torch.equal(whole(buffer)[2, :, :, 300:], fresh)


def test_it_goes_on_from_its_window_and_not_from_its_archive() -> None:
    buffer = filled(300)
    recallable(buffer).settle()
    kept = buffer.part(0, 296)
    buffer.go_on_from(296)
    assert torch.equal(buffer.part(0, 296).keys, kept.keys)
    buffer.go_on_from(200)
    assert (buffer.plug, buffer.length, buffer.touched) == (None, 0, 0)
    assert not buffer.kv[..., :256, :].any()


def test_a_branch_leaves_the_other_sessions_archive_alone() -> None:
    """Two sequences in one slab, of one beginning; one is cut back, goes on and ends."""
    buffers = Buffers(Ledger(SHAPE), torch.float32, 512, keep=10**9)
    kv = torch.randn(SHAPE.sizes(300), generator=torch.Generator().manual_seed(1))
    both = [buffers.take("s", [], 320), buffers.take("s", [], 320)]
    assert both[0].slab is both[1].slab
    for one in both:
        one.kv[..., :300, :] = kv
        one.go_on_from(300)
        recallable(one, Recall(64, 8, 2, 0, (0,), 4, 8, exact=True)).settle()
    other = whole(both[0])
    for number in range(70):
        step(both[1], rows_of(1, number))
    both[1].go_on_from(10)
    step(both[1], rows_of(20, 5))
    del both[1]
    assert torch.equal(whole(both[0]), other)
    step(both[0], rows_of(1, 3))


def test_copying_waits_for_what_is_being_archived() -> None:
    """What a reader publishes while the computing thread archives layer by layer is right."""
    buffer = filled(400)
    right = whole(buffer)
    buffer.plug = plug = Recallable(buffer, Recall(64, 8, 2, 0, (0,), 4, 8, exact=True))
    seen: list[bool] = []

    def read() -> None:
        for _ in range(15):
            with buffer.guard:
                seen.append(torch.equal(buffer.part(0, 400), right))

    reader = threading.Thread(target=read)
    reader.start()
    plug.settle()
    reader.join()
    assert seen == [True] * 15


def test_idle_ones_are_booked_as_what_they_hold() -> None:
    ledger = Ledger(SHAPE)
    buffers = Buffers(ledger, torch.float32, 512, keep=10**9)
    buffer = buffers.take("s", [], 320)
    buffer.kv[..., :300, :] = torch.randn(SHAPE.sizes(300))
    buffer.go_on_from(300)
    plug = recallable(buffer)
    plug.settle()
    buffers.give_back(buffer, "s", list(range(300)))
    assert ledger.idle == 320 * SHAPE.bytes_per_token // 4 + plug.nbytes
    again = buffers.take("s", [*range(300), 5, 6], 310)
    assert again is buffer and again.length == 300 and again.plug is plug
    buffers.give_back(again, "s", list(range(300)))
    elsewhere = buffers.take("s", list(range(200)), 310)  # it can't be cut back so far
    assert elsewhere.plug is None and elsewhere.length == 0


@pytest.mark.parametrize(
    "wrong", [{"budget": 32}, {"budget": 0}, {"sinks": 60}, {"sharpen": 0.5}, {"keep": 0}]
)
def test_impossible_ways_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError):
        Recall(**({"budget": 64} | wrong))


# -- when --


def policy(**options: object) -> RecallPolicy:
    return RecallPolicy.of({"min_tokens": 256, "budget": 64, **options})


def test_it_is_off_unless_it_is_asked_for() -> None:
    assert not RecallPolicy.of({}).on
    assert RecallPolicy.of({}).chosen("s", 10**6, 10**9, Ledger(SHAPE, 10**9)) is None
    assert Recalls(RecallPolicy.of({}), Ledger(SHAPE)).settle("r", "s", filled(10), 64) is None


def test_it_wants_a_long_sequence_that_holds_much_of_the_memory() -> None:
    roomy = Ledger(SHAPE, 10**9)
    assert policy().chosen("s", 300, 10**6, roomy) is None
    assert policy().chosen("s", 300, 4 * 10**8, roomy) is not None
    assert policy().chosen("s", 255, 4 * 10**8, roomy) is None
    assert policy(budget=320).chosen("s", 300, 4 * 10**8, roomy) is None  # all would be recalled
    tight = Ledger(SHAPE, 10**6)
    for number in range(4):
        tight.open(f"{number}", "s", "", 200_000 // SHAPE.bytes_per_token)
    assert policy().chosen("s", 300, 210_000, tight) is not None  # no room for another as large


def test_scopes_have_their_own() -> None:
    one = policy(share=0.0, scopes={"t": {"budget": 128, "ratio": 40}, "u": {"min_tokens": 0}})
    assert one.chosen("t", 300, 1, Ledger(SHAPE)).budget == 128
    assert one.chosen("s", 300, 1, Ledger(SHAPE)).budget == 64
    assert one.chosen("u", 300, 1, Ledger(SHAPE)) is None
    with pytest.raises(ValueError, match="'v'"):
        policy(scopes={"v": {"budgets": 3}})


# -- what it is measured against --


@pytest.mark.parametrize("method", [Window(), Snap(), Quest(), Recalled(Recall(64, 8, sinks=4, keep=8))])
def test_every_method_sees_its_budget(method: Method) -> None:
    keys, queries = keys_of(300), keys_of(EACH * 40, seed=2).view(2, EACH, 40, 16)
    method.begin(keys, keys, queries[:, :, :16])
    mask = method.seen(queries[:, :, 16:], 64).mask
    assert mask.shape == (2, 24, 300) and (mask.sum(-1) == 64).all()


def test_what_is_measured_is_what_serves() -> None:
    buffer = filled(300)
    plug = recallable(buffer, Recall(64, 8, 2, 0, (0,), 4, 8))
    kv = whole(filled(300))
    plug.settle()
    rows = rows_of(1, 6)
    asked = rows.queries(slice(0, 1))[0]
    step(buffer, rows)
    method = Recalled(plug.how)
    method.begin(kv[3, 0], kv[3, 1], asked[:, :, None])
    mask = method.seen(asked[:, :, None], 64).mask[:, 0]
    layer = plug._layers[3]
    for head in range(2):
        lying = lying_in(layer)[head] - head * layer.archive.capacity
        recalled = set(layer.archive.positions[head][lying].tolist())
        assert recalled == set(mask[head, 4:292].nonzero()[:, 0].add(4).tolist())
