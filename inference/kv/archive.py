"""One layer's archived keys and values, sorted by cluster."""

from collections.abc import Sequence
from itertools import pairwise

import torch

from inference.kv.clustering import Clusters, clusters_of, means
from inference.kv.memory import zeros
from inference.kv.quantize import LEAST_STEP, in_steps, rounded, turning_steps
from inference.kv.recall import Index

# Steps of keys reach this much further than what was seen when they were chosen. What goes beyond all the
# same makes them wider, and what is held is rounded again.
REACH = 1.1

# Keys are clustered so many at a time: twice as many clusters of twice as many keys cost four times as much,
# and four runs of 1,024 keys found 62.9% of the best 512 where one of 4,096 found 63.8%.
RUN = 1024


class Archive:
    """Room for `capacity` tokens, which takes no memory until it is filled. With `exact` they are kept in
    `dtype`, otherwise in int8: keys by channel, values by token. A token lies at one place for each head, and
    stays there; places of a cluster are side by side. `keys` and `values` (kv_heads, capacity, head_dim) are
    as they are kept; the steps of int8 are `key_steps` (kv_heads, 1, head_dim), None until there are any and
    another tensor once they change, and `value_steps` (kv_heads, capacity, 1). Not thread-safe."""

    def __init__(
        self, kv_heads: int, head_dim: int, capacity: int, dtype: torch.dtype, exact: bool = False
    ) -> None:
        kept = dtype if exact else torch.int8
        self.exact, self.dtype = exact, dtype
        self.keys = zeros((kv_heads, capacity, head_dim), kept)
        self.values = zeros((kv_heads, capacity, head_dim), kept)
        self.value_steps = zeros((kv_heads, 0 if exact else capacity, 1), dtype)
        self.key_steps: torch.Tensor | None = None
        self._positions = zeros((kv_heads, capacity), torch.int32)
        self.index = Index.empty(kv_heads, head_dim, dtype)
        self._offsets = torch.arange(0, kv_heads * capacity, capacity)[:, None]
        self.tokens = 0
        self.error = 0.0

    @property
    def capacity(self) -> int:
        return self._positions.shape[1]

    @property
    def host_bytes(self) -> int:
        """Bytes of what is archived: on a machine with a GPU it stays in the host's memory."""
        kept = [self.keys, self.values, self._positions] + ([] if self.exact else [self.value_steps])
        held = sum(one[:, : self.tokens].numel() * one.itemsize for one in kept)
        return held + (0 if self.key_steps is None else self.key_steps.nbytes)

    @property
    def positions(self) -> torch.Tensor:
        """The position in the sequence of what lies at each place, (kv_heads, tokens)."""
        return self._positions[:, : self.tokens]

    def add(self, first: int, keys: torch.Tensor, values: torch.Tensor, ratio: int, iterations: int) -> None:
        """Archives tokens at positions `first` and on, keys and values (kv_heads, n, head_dim), in one
        cluster for each `ratio` of them. Raises IndexError when they don't fit."""
        count = keys.shape[1]
        if self.tokens + count > self.capacity:
            raise IndexError(f"{self.tokens} + {count} tokens don't fit an archive of {self.capacity}")
        for start, length in runs(count):
            own = slice(start, start + length)
            found = clusters_of(keys[:, own], clusters_for(length, ratio), iterations)
            self._add_run(first + start, keys[:, own], values[:, own], found)

    def _add_run(self, first: int, keys: torch.Tensor, values: torch.Tensor, found: Clusters) -> None:
        order = torch.sort(found.labels, dim=1, stable=True).indices
        rows = order[..., None].expand_as(keys)
        end = self.tokens + keys.shape[1]
        self._keep(slice(self.tokens, end), keys.gather(1, rows), values.gather(1, rows))
        self._positions[:, self.tokens : end] = order + first
        told, _ = means(values.float(), found.labels, torch.zeros_like(found.centroids))
        self.index = self.index.grown(found.centroids, found.spreads, found.sizes, told, self.tokens)
        self.error = (self.error * self.tokens + found.error * keys.shape[1]) / end
        self.tokens = end

    def _keep(self, places: slice, keys: torch.Tensor, values: torch.Tensor) -> None:
        if self.exact:
            self.keys[:, places], self.values[:, places] = keys, values
            return
        self.key_steps = self._reaching(keys)
        self.keys[:, places] = in_steps(keys, self.key_steps)
        self.values[:, places], self.value_steps[:, places] = rounded(values, axis=2)

    def _reaching(self, keys: torch.Tensor) -> torch.Tensor:
        """Steps that reach all of `keys` and what is held."""
        needed = turning_steps(keys)
        steps = self.key_steps
        if steps is None:
            return (needed * REACH).to(keys.dtype)
        if bool((needed <= steps).all()):
            return steps
        wider = torch.where(needed > steps, needed * REACH, steps.float()).to(keys.dtype)
        held = self.keys[:, : self.tokens]
        held.copy_(in_steps(held.to(keys.dtype) * steps, wider))
        return wider

    # -- reading --

    def rows(self, places: torch.Tensor) -> torch.Tensor:
        """Numbers over all heads of `places` (kv_heads, m): what `take` wants."""
        return places + self._offsets

    def scores(self, queries: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """q·k of `queries` (kv_heads, heads for each, head_dim) and the keys at `places` (kv_heads, m), fp32.
        Keys in int8 are multiplied as they are, by queries in int8: of 1,696 of 3 heads, 40 us instead of
        90."""
        kept = self.keys.flatten(0, 1).index_select(0, self.rows(places).view(-1))
        kept = kept.view(*places.shape, -1)
        if self.key_steps is None:
            return torch.bmm(queries, kept.transpose(1, 2)).float()
        asked = queries * self.key_steps
        most = torch.linalg.vector_norm(asked, float("inf"), -1, keepdim=True, dtype=torch.float32)
        asked = (asked * (127 / most.clamp_(min=LEAST_STEP))).round_().to(torch.int8)
        found = [torch._int_mm(one, keys.t()) for one, keys in zip(asked, kept, strict=True)]
        return torch.stack(found) * (most / 127)

    def take(self, rows: torch.Tensor, heads: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The keys and the values (m, head_dim) of single tokens, by `rows` and the `heads` they are of, (m,)
        each."""
        keys = self.keys.flatten(0, 1).index_select(0, rows)
        values = self.values.flatten(0, 1).index_select(0, rows)
        if self.key_steps is None:
            return keys, values
        key_steps = self.key_steps.flatten(0, 1).index_select(0, heads)
        value_steps = self.value_steps.flatten(0, 1).index_select(0, rows)
        return keys * key_steps, values * value_steps

    def write(self, first: int, last: int, into: torch.Tensor) -> None:
        """Tokens at positions `first` to `last` (left out) of those archived, to their places in `into`
        (2, kv_heads, last - first, head_dim); other positions stay as they are."""
        inside = (self.positions >= first) & (self.positions < last)
        heads, places = inside.nonzero(as_tuple=True)
        at = self.positions[heads, places].long() - first
        for some in range(0, len(heads), RUN):
            own = slice(some, some + RUN)
            rows = heads[own] * self.capacity + places[own]
            into[:, heads[own], at[own]] = torch.stack(self.take(rows, heads[own]))


def clusters_for(tokens: int, ratio: int) -> int:
    """How many clusters that many tokens get."""
    return max(1, round(tokens / ratio))


def runs(tokens: int) -> Sequence[tuple[int, int]]:
    """Starts and lengths of about equal runs of at most RUN tokens."""
    count = -(-tokens // RUN)
    ends = [tokens * number // count for number in range(count + 1)]
    return [(start, end - start) for start, end in pairwise(ends)]
