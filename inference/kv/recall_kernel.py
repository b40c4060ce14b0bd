"""Choosing and bringing what one layer recalls, compiled: in one call what takes torch some 25 operations,
each of which costs more to begin than to do. For archives in int8 of a model in bf16, which is how the CPU
serves; all else goes through torch.

Compiled by numba on first use (`warm`, some seconds), and kept on disk from then on. bf16 comes as uint16,
which numba knows: the upper half of an fp32.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray

from inference.kv.archive import Archive
from inference.kv.recall import SPREAD, Index, Rest

Array = NDArray[Any]
# Sums in any order, so that several terms are added at once; infinities stay what they are.
_FAST = {"contract", "reassoc", "arcp", "nsz"}


def _compiled(function: Callable[..., Any]) -> Any:
    """Kept on disk, beside the source or where NUMBA_CACHE_DIR or the user's cache is; where none of them can
    be written to, it is compiled by every process anew."""
    try:
        return njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")(function)
    except RuntimeError:
        return njit(nogil=True, fastmath=_FAST, error_model="numpy")(function)


def bits(x: torch.Tensor) -> Array:
    """A bf16 tensor as its bits, in place."""
    found: Array = x.view(torch.uint16).numpy()
    return found


# Two shares of attention are told apart by the first 22 bits of their fp32: if they differ by 1 in 8,000.
_BIN_BITS, _APART = np.uint32(11), np.uint32(10)


class Recaller:
    """What one layer recalls of `archive`, to the first slots of `resident` (2, kv_heads, n, head_dim)."""

    def __init__(self, archive: Archive, resident: torch.Tensor) -> None:
        self._archive, self._resident = archive, bits(resident)
        self._keys, self._values = archive.keys.numpy(), archive.values.numpy()
        self._value_steps = bits(archive.value_steps)[..., 0]
        self._known_of: Index | None = None
        self._steps_of: torch.Tensor | None = None
        self._known: tuple[Array, ...] = ()
        self._steps = np.empty((0, 0), np.float32)
        self.lying, self.order = torch.empty(0, 0, dtype=torch.int32), torch.empty(0, 0, dtype=torch.int64)
        self._lying, self._order = self.lying.numpy(), self.order.numpy()
        self.rest: Rest | None = None

    @staticmethod
    def fits(archive: Archive) -> bool:
        """Can this archive be recalled so?"""
        return archive.keys.dtype == torch.int8 and archive.dtype == torch.bfloat16

    def recall(self, queries: torch.Tensor, looked: int, room: int, *, estimate: bool = False) -> int:
        """Brings the best `room` of the `looked` tokens (at least as many) that `queries` (kv_heads, heads
        for each, head_dim) ask for; returns how many were not there. `order` (kv_heads, clusters) becomes the
        clusters by rank, `lying` (kv_heads, room) the row of what lies in each slot, `rest` what the others
        add, with `estimate`."""
        self._look_up()
        if self.lying.shape[1] != room:
            self.lying = torch.full((len(self._keys), room), -1, dtype=torch.int32)
            self._lying = self.lying.numpy()
        kept = (self._keys, self._steps, self._values, self._value_steps)
        rest = Rest(queries.new_empty(*queries.shape[:2], 1), queries.new_empty(queries.shape))
        into = (self._lying, self._order, bits(rest.scores), bits(rest.values), self._resident)
        self.rest = rest if estimate else None
        return int(_recall(bits(queries.contiguous()), *self._known, *kept, looked, estimate, *into))

    def _look_up(self) -> None:
        """What may have changed since the last step."""
        index, steps = self._archive.index, self._archive.key_steps
        if index is not self._known_of:
            self._known_of = index
            flat = (one[:, 0].numpy() for one in (index.spreads, index.logs))
            own = (one.numpy() for one in (index.starts, index.sizes, index.means, index.steps[..., 0]))
            self._known = (bits(index.centroids), *flat, *own)
            self.order = torch.empty(index.sizes.shape, dtype=torch.int64)
            self._order = self.order.numpy()
        if steps is not self._steps_of and steps is not None:
            self._steps_of = steps
            self._steps = steps[:, 0].float().numpy()


@_compiled
def _recall(
    queries: Array,
    centroids: Array,
    spreads: Array,
    logs: Array,
    starts: Array,
    sizes: Array,
    means: Array,
    mean_steps: Array,
    keys: Array,
    key_steps: Array,
    values: Array,
    value_steps: Array,
    looked: int,
    estimate: bool,
    lying: Array,
    order: Array,
    rest_scores: Array,
    rest_values: Array,
    resident: Array,
) -> int:
    """See `Recaller.recall` and `recall.find`. `queries` (kv_heads, heads for each, head_dim), `centroids`,
    `value_steps` (kv_heads, capacity) and the rest's are bf16; `keys` and `values` (kv_heads, capacity,
    head_dim) are int8 in steps of `key_steps` (kv_heads, head_dim; fp32) and of `value_steps`, `means` in
    those of `mean_steps` (kv_heads, clusters; fp32)."""
    heads, group, size = queries.shape
    clusters, room = centroids.shape[1], lying.shape[1]
    most = max(clusters, looked)
    asked, scaled = np.empty((group, size), np.float32), np.empty((group, size), np.float32)
    middles = np.empty((clusters, size), np.float32)
    by_cluster, by_key = np.empty((group, clusters), np.float32), np.empty((group, looked), np.float32)
    scores, powers = np.empty(most + clusters, np.float32), np.empty(most + clusters, np.int32)
    worth, attention = np.empty(clusters, np.float32), np.empty(looked, np.float32)
    places, of = np.empty(looked, np.int64), np.empty(looked, np.int64)
    chosen, left = np.empty(room, np.int64), np.empty(looked - room, np.int64)
    taken = np.empty(clusters, np.int64)
    ranks, bins = attention.view(np.uint32), np.empty(1 << _BIN_BITS, np.int32)
    brought = 0
    for head in range(heads):
        _widen(queries[head], asked)
        _widen(centroids[head], middles)
        worth[:] = 0
        for one in range(group):
            length = np.float32(0)
            for d in range(size):
                length += asked[one, d] * asked[one, d]
                scaled[one, d] = asked[one, d] * key_steps[head, d]
            for c in range(clusters):
                total = np.float32(0)
                for d in range(size):
                    total += asked[one, d] * middles[c, d]
                by_cluster[one, c] = total + length * spreads[head, c] * np.float32(SPREAD / 2)
                scores[c] = by_cluster[one, c] + logs[head, c]
            _add_shares(scores[:clusters], powers, worth)
        for c in range(clusters):
            worth[c] = -worth[c] / np.float32(max(sizes[head, c], 1))
        order[head] = np.argsort(worth)
        found = 0
        for c in order[head]:
            taken[c] = min(sizes[head, c], looked - found)
            for at in range(taken[c]):
                places[found], of[found] = starts[head, c] + at, c
                found += 1
        attention[:] = 0
        for one in range(group):
            for at in range(looked):
                place = places[at]
                total = np.float32(0)
                for d in range(size):
                    total += scaled[one, d] * np.float32(keys[head, place, d])
                by_key[one, at] = scores[at] = total
            _add_shares(scores[:looked], powers, attention)
        least = _least_of_best(ranks, room, bins)
        filled = rest = 0
        for at in range(looked):
            if ranks[at] >> _APART > least:
                chosen[filled] = places[at]
                filled += 1
        for at in range(looked):
            if ranks[at] >> _APART > least:
                continue
            if filled < room and ranks[at] >> _APART == least:
                chosen[filled] = places[at]
                filled += 1
            else:
                left[rest] = at
                rest += 1
        brought += _bring(head, chosen, lying[head], keys, key_steps, values, value_steps, resident)
        if estimate:
            for one in range(group):
                into = (rest_scores[head, one], rest_values[head, one])
                of_clusters = (by_cluster[one], sizes[head], taken, means[head], mean_steps[head])
                _estimate(by_key[one], left, of, *of_clusters, scores, powers, worth, *into)
    return brought


@_compiled
def _estimate(
    by_key: Array,
    left: Array,
    of: Array,
    by_cluster: Array,
    sizes: Array,
    taken: Array,
    means: Array,
    mean_steps: Array,
    scores: Array,
    powers: Array,
    weights: Array,
    rest_score: Array,
    rest_value: Array,
) -> None:
    """See `recall._rest`, for one head: what was not `taken` of a cluster, by the cluster's score, and what
    is `left` of what was looked at, by its own; `of` says of which cluster each is. `scores`, `powers` and
    `weights` are used up."""
    clusters, size = means.shape
    count = len(left)
    for at in range(count):
        scores[at] = by_key[left[at]]
    for c in range(clusters):
        more = sizes[c] - taken[c]
        if more > 0:
            scores[count] = by_cluster[c] + np.log(np.float32(more))
            count += 1
    most = _exps(scores[:count], powers)
    weights[:] = 0
    total = np.float32(0)
    for at in range(count):
        total += scores[at]
    for at in range(len(left)):
        weights[of[left[at]]] += scores[at]
    at = len(left)
    for c in range(clusters):
        if sizes[c] > taken[c]:
            weights[c] += scores[at]
            at += 1
    value, score = np.zeros(size, np.float32), np.empty(1, np.float32)
    for c in range(clusters):
        if weights[c] > 0:
            weight = weights[c] * mean_steps[c] / total
            for d in range(size):
                value[d] += weight * np.float32(means[c, d])
    score[0] = most + np.log(total)
    rest_score[0] = _rounded(score.view(np.uint32)[0])
    upper = value.view(np.uint32)
    for d in range(size):
        rest_value[d] = _rounded(upper[d])


@_compiled
def _widen(bf16: Array, fp32: Array) -> None:
    upper = fp32.view(np.uint32)
    for row in range(bf16.shape[0]):
        for d in range(bf16.shape[1]):
            upper[row, d] = np.uint32(bf16[row, d]) << np.uint32(16)


@_compiled
def _least_of_best(ranks: Array, room: int, bins: Array) -> Any:
    """What the `room` highest of `ranks` (bits of fp32 above 0) all reach, but for their last _APART bits; at
    most `room` go beyond it. Counted in two passes over `bins`: a sixth of what partitioning takes."""
    upper, lower = _APART + _BIN_BITS, np.uint32(len(bins) - 1)
    bins[:] = 0
    for rank in ranks:
        bins[rank >> upper] += 1
    high = len(bins) - 1
    while room > bins[high]:
        room -= bins[high]
        high -= 1
    bins[:] = 0
    for rank in ranks:
        if rank >> upper == high:
            bins[(rank >> _APART) & lower] += 1
    low = len(bins) - 1
    while room > bins[low]:
        room -= bins[low]
        low -= 1
    return (np.uint32(high) << _BIN_BITS) | np.uint32(low)


@_compiled
def _add_shares(scores: Array, powers: Array, total: Array) -> None:
    """Adds the softmax of `scores`, which are used up like as many of `powers`, to `total`."""
    _exps(scores, powers)
    whole = np.float32(0)
    for at in range(scores.size):
        whole += scores[at]
    share = np.float32(1) / whole
    for at in range(scores.size):
        total[at] += scores[at] * share


@_compiled
def _exps(scores: Array, powers: Array) -> Any:
    """exp of each of `scores` without the most of them, in place; returns that. As many of `powers` are used
    up.

    It is written out, so that several are computed at once: 2 to the whole part of its exponent, by the bits
    of an fp32, times a polynomial of the rest (to 4e-5, and what is wanted is an order and a mean)."""
    as_float = powers.view(np.float32)
    most = scores[0]
    for at in range(scores.size):
        most = max(most, scores[at])
    for at in range(scores.size):
        exponent = max((scores[at] - most) * np.float32(1.44269504), np.float32(-126))
        lower = np.floor(exponent)
        x = exponent - lower
        powers[at] = (np.int32(lower) + np.int32(127)) << np.int32(23)
        near = np.float32(0.0096181) + x * np.float32(0.0013333)
        near = np.float32(0.2402265) + x * (np.float32(0.0555041) + x * near)
        scores[at] = np.float32(1) + x * (np.float32(0.6931472) + x * near)
    for at in range(scores.size):
        scores[at] *= as_float[at]
    return most


@_compiled
def _bring(
    head: int,
    chosen: Array,
    lying: Array,
    keys: Array,
    key_steps: Array,
    values: Array,
    value_steps: Array,
    resident: Array,
) -> int:
    """Makes what lies in the first slots of one head what was `chosen` (places of the archive); returns how
    many were not there. `lying` says which row lies in each slot, -1 for nothing, and is kept so."""
    capacity, size = keys.shape[1], keys.shape[2]
    first = head * capacity
    wanted = np.zeros(capacity, np.uint8)
    wide, step = np.empty((2, size), np.float32), np.empty(1, np.float32)
    upper, upper_step = wide.view(np.uint32), step.view(np.uint32)
    for place in chosen:
        wanted[place] = 1
    for row in lying:
        if row >= 0 and wanted[row - first] == 1:
            wanted[row - first] = 2  # there
    brought = coming = 0
    for slot in range(len(lying)):
        if lying[slot] >= 0 and wanted[lying[slot] - first] == 2:
            continue
        while wanted[chosen[coming]] == 2:
            coming += 1
        place = chosen[coming]
        coming += 1
        lying[slot] = np.int32(first + place)
        upper_step[0] = np.uint32(value_steps[head, place]) << np.uint32(16)
        for d in range(size):
            wide[0, d] = np.float32(keys[head, place, d]) * key_steps[head, d]
            wide[1, d] = np.float32(values[head, place, d]) * step[0]
        for which in range(2):
            for d in range(size):
                resident[which, head, slot, d] = _rounded(upper[which, d])
        brought += 1
    return brought


@_compiled
def _rounded(fp32: Any) -> Any:
    """The bits of the nearest bf16 to those of an fp32, of two equally near ones the even."""
    return np.uint16((fp32 + np.uint32(0x7FFF) + ((fp32 >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16))


def warm() -> None:
    """Have both compiled, whatever the shape of a model."""
    archive = Archive(1, 2, 4, torch.bfloat16)
    keys = torch.ones(1, 4, 2, dtype=torch.bfloat16)
    archive.add(0, keys, keys, 2, 1)
    resident = torch.zeros(2, 1, 2, 2, dtype=torch.bfloat16)
    Recaller(archive, resident).recall(keys[:, :1], 4, 2, estimate=True)
