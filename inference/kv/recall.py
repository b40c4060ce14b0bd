"""Which archived tokens a step looks at again, and what the others are likely to add.

The heads of one group share what is recalled: a cluster is worth what its keys are likely to get of the
attention of all of them. Clusters are taken in that order until more than the room is filled, the last one
trimmed, and of those tokens the room keeps the ones whose own keys score best. Without that step this is
ClusterKV's recall, but for what a cluster is worth. What is not recalled is one more token to each head: the
mean values of the clusters, each by the attention that the rest of it is likely to get. (Estimated as in
RetroInfer, arXiv 2505.02922, but that what was looked at counts by its own keys.)
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

import torch

from inference.kv.quantize import rounded

Scores = Callable[[torch.Tensor], torch.Tensor]
"""Of places (kv_heads, m): the scores q·k of what lies there, (kv_heads, heads for each, m), fp32."""


@dataclass(frozen=True, slots=True)
class Index:
    """What is known of an archive at hand: `centroids` (kv_heads, count, head_dim); how far keys are from
    them, `spreads` (kv_heads, 1, count), fp32, the mean square in each channel; that cluster c holds the
    places `starts` to `starts + sizes`, (kv_heads, count) each, int32; and the mean of its values, `means` in
    int8 (kv_heads, count, head_dim) in `steps` (kv_heads, count, 1), fp32."""

    centroids: torch.Tensor
    spreads: torch.Tensor
    starts: torch.Tensor
    sizes: torch.Tensor
    means: torch.Tensor
    steps: torch.Tensor
    logs: torch.Tensor = field(init=False)

    def __post_init__(self) -> None:
        """`logs` (kv_heads, 1, count) are the sizes' logarithms, -inf of 0: made once, not at each step."""
        object.__setattr__(self, "logs", self.sizes.float().log()[:, None])

    @classmethod
    def empty(cls, kv_heads: int, head_dim: int, dtype: torch.dtype) -> Self:
        none, nowhere = torch.zeros(kv_heads, 0, dtype=torch.int32), torch.zeros(kv_heads, 0, head_dim)
        spreads, steps = torch.zeros(kv_heads, 1, 0), torch.zeros(kv_heads, 0, 1)
        return cls(nowhere.to(dtype), spreads, none, none, nowhere.to(torch.int8), steps)

    def grown(
        self,
        centroids: torch.Tensor,
        spreads: torch.Tensor,
        sizes: torch.Tensor,
        means: torch.Tensor,
        start: int,
    ) -> "Index":
        """With more clusters, which lie side by side from place `start` on; `spreads` (kv_heads, count), and
        `means` as they are."""
        in_int8, steps = rounded(means, 2, torch.float32)
        return Index(
            torch.cat((self.centroids, centroids.to(self.centroids.dtype)), 1),
            torch.cat((self.spreads, spreads[:, None]), -1),
            torch.cat((self.starts, (sizes.cumsum(1) - sizes + start).int()), 1),
            torch.cat((self.sizes, sizes.int()), 1),
            torch.cat((self.means, in_int8), 1),
            torch.cat((self.steps, steps), 1),
        )

    @property
    def nbytes(self) -> int:
        return sum(one.nbytes for one in self.tensors())

    def tensors(self) -> tuple[torch.Tensor, ...]:
        return self.centroids, self.spreads, self.starts, self.sizes, self.means, self.steps, self.logs


# How much of the spread counts: 1 would be right for keys that lie around their centroid evenly.
SPREAD = 1.0


def worth(queries: torch.Tensor, index: Index) -> torch.Tensor:
    """What one token of each cluster is likely to get of the attention of a group of heads, summed:
    (kv_heads, count) for `queries` (kv_heads, heads for each, head_dim). Empty clusters are worth nothing.

    The mean of exp(q·k) over a cluster is more than exp(q·centroid), the further apart its keys are the more:
    exp(q·centroid + |q|² spread / 2). By centroids alone a lone fact in a loose cluster was missed."""
    shares = torch.softmax(_likely(queries, index) + index.logs, dim=-1).sum(1)
    return shares / index.sizes.clamp(min=1)


def _likely(queries: torch.Tensor, index: Index) -> torch.Tensor:
    """The logarithm of what a token of each cluster is likely to get, (kv_heads, heads for each, count)."""
    scores = torch.bmm(queries, index.centroids.transpose(1, 2)).float()
    lengths = queries.float().square().sum(-1, keepdim=True)
    return torch.addcmul(scores, lengths, index.spreads, value=SPREAD / 2)


def candidates(queries: torch.Tensor, index: Index, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The places (kv_heads, count) of the `count` tokens (at most as many as there are) in the clusters that
    come first, and the clusters by rank, (kv_heads, clusters). `queries` are (kv_heads, heads for each,
    head_dim), divided by the root of head_dim."""
    order = worth(queries, index).argsort(-1, descending=True)
    sizes = index.sizes.gather(1, order)
    ends = sizes.cumsum(1)
    before = ends - sizes
    taken = (count - before).clamp_(min=0).minimum(sizes)
    shifts = (index.starts.gather(1, order) - before).view(-1)
    places = torch.repeat_interleave(shifts, taken.view(-1), output_size=len(order) * count)
    return places.view(-1, count).add_(torch.arange(count)), order


@dataclass(frozen=True, slots=True)
class Rest:
    """What stays in the archive, as one more token to each head: its `scores` (kv_heads, heads for each, 1),
    the logarithm of what it is likely to get, and its `values` (kv_heads, heads for each, head_dim)."""

    scores: torch.Tensor
    values: torch.Tensor


@dataclass(frozen=True, slots=True)
class Found:
    """The `places` (kv_heads, room) of what is recalled, the clusters by rank (kv_heads, count), and the
    `rest` where it was asked for."""

    places: torch.Tensor
    order: torch.Tensor
    rest: Rest | None


def find(
    queries: torch.Tensor, index: Index, scores: Scores, looked: int, room: int, *, estimate: bool
) -> Found:
    """The `room` of the `looked` candidates (at least as many) whose own keys get most of the attention of
    their group, and with `estimate` the rest, of which there must be some."""
    places, order = candidates(queries, index, looked)
    chosen, left = places, None
    if looked > room:
        parts = [scores(some) for some in places.split_with_sizes(_pieces(looked, PIECE * room), 1)]
        left = torch.cat(parts, -1) if len(parts) > 1 else parts[0]
        best = torch.softmax(left, dim=-1).sum(1).topk(room, dim=-1, sorted=False).indices
        chosen = places.gather(1, best)
        left = left.scatter(-1, best[:, None].expand(-1, left.shape[1], -1), float("-inf"))
    return Found(chosen, order, _rest(queries, index, places, left) if estimate else None)


def _rest(queries: torch.Tensor, index: Index, places: torch.Tensor, left: torch.Tensor | None) -> Rest:
    """What was not looked at counts as its cluster says, and of what was, at `places`, that which is `left`
    (kv_heads, heads for each, m; its scores, -inf where it is not) by its own keys."""
    ends = (index.starts + index.sizes).long()
    clusters = torch.searchsorted(ends, places, right=True)
    looked = torch.zeros_like(ends).scatter_add_(1, clusters, torch.ones_like(clusters))
    scores = _likely(queries, index) + (index.sizes - looked).float().log()[:, None]
    most = scores.amax(-1, keepdim=True)
    if left is not None:
        most = torch.maximum(most, left.amax(-1, keepdim=True))
    weights = torch.exp(scores - most)
    if left is not None:
        weights.scatter_add_(-1, clusters[:, None].expand_as(left), torch.exp(left - most))
    total = weights.sum(-1, keepdim=True)
    values = torch.bmm(weights / total, index.means * index.steps)
    return Rest((most + total.log()).to(queries.dtype), values.to(queries.dtype))


# Keys are looked at so many rooms at a time: what that takes is bounded by what is recalled.
PIECE = 2


def _pieces(count: int, most: int) -> list[int]:
    return [min(most, count - start) for start in range(0, count, most)]
