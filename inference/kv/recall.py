"""Which archived tokens a step looks at again.

The heads of one group share what is recalled: a cluster is worth what its keys are likely to get of the
attention of all of them. Clusters are taken in that order until more than the room is filled, the last one
trimmed, and of those tokens the room keeps the ones whose own keys score best. Without the last step this is
ClusterKV's recall, but for what a cluster is worth.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

import torch

Scores = Callable[[torch.Tensor], torch.Tensor]
"""Of places (kv_heads, m): the scores q·k of what lies there, (kv_heads, heads for each, m), fp32."""


@dataclass(frozen=True, slots=True)
class Index:
    """What is known of an archive at hand: `centroids` (kv_heads, count, head_dim); how far keys are from
    them, `spreads` (kv_heads, 1, count), fp32, the mean square in each channel; and that cluster c holds the
    places `starts` to `starts + sizes`, (kv_heads, count) each, int32."""

    centroids: torch.Tensor
    spreads: torch.Tensor
    starts: torch.Tensor
    sizes: torch.Tensor
    counts: torch.Tensor = field(init=False)
    logs: torch.Tensor = field(init=False)

    def __post_init__(self) -> None:
        """`counts` are the sizes, fp32 and at least 1, `logs` (kv_heads, 1, count) their logarithms, -inf of
        0: made once, not at each step."""
        object.__setattr__(self, "counts", self.sizes.float().clamp(min=1))
        object.__setattr__(self, "logs", self.sizes.float().log()[:, None])

    @classmethod
    def empty(cls, kv_heads: int, head_dim: int, dtype: torch.dtype) -> Self:
        none = torch.zeros(kv_heads, 0, dtype=torch.int32)
        centroids, spreads = torch.zeros(kv_heads, 0, head_dim, dtype=dtype), torch.zeros(kv_heads, 1, 0)
        return cls(centroids, spreads, none, none)

    def grown(
        self, centroids: torch.Tensor, spreads: torch.Tensor, sizes: torch.Tensor, start: int
    ) -> "Index":
        """With more clusters, which lie side by side from place `start` on; `spreads` (kv_heads, count)."""
        return Index(
            torch.cat((self.centroids, centroids.to(self.centroids.dtype)), 1),
            torch.cat((self.spreads, spreads[:, None]), -1),
            torch.cat((self.starts, (sizes.cumsum(1) - sizes + start).int()), 1),
            torch.cat((self.sizes, sizes.int()), 1),
        )

    @property
    def nbytes(self) -> int:
        return sum(one.nbytes for one in self.tensors())

    def tensors(self) -> tuple[torch.Tensor, ...]:
        return self.centroids, self.spreads, self.starts, self.sizes, self.counts, self.logs


# How much of the spread counts: 1 would be right for keys that lie around their centroid evenly.
SPREAD = 1.0


def worth(queries: torch.Tensor, index: Index) -> torch.Tensor:
    """What one token of each cluster is likely to get of the attention of a group of heads, summed:
    (kv_heads, count) for `queries` (kv_heads, heads for each, head_dim). Empty clusters are worth nothing.

    The mean of exp(q·k) over a cluster is more than exp(q·centroid), the further apart its keys are the more:
    exp(q·centroid + |q|² spread / 2). By centroids alone a lone fact in a loose cluster was missed."""
    scores = torch.bmm(queries, index.centroids.transpose(1, 2)).float()
    lengths = queries.float().square().sum(-1, keepdim=True)
    scores = torch.addcmul(scores + index.logs, lengths, index.spreads, value=SPREAD / 2)
    return torch.softmax(scores, dim=-1).sum(1).div_(index.counts)


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


def best(places: torch.Tensor, scores: Scores, room: int) -> torch.Tensor:
    """The `room` of the `places` (kv_heads, m) whose own keys get most of the attention of their group."""
    if places.shape[1] <= room:
        return places
    parts = [scores(some) for some in places.split_with_sizes(_pieces(places.shape[1], PIECE * room), 1)]
    attention = torch.softmax(torch.cat(parts, -1) if len(parts) > 1 else parts[0], dim=-1).sum(1)
    return places.gather(1, attention.topk(room, dim=-1, sorted=False).indices)


# Keys are looked at so many rooms at a time: what that takes is bounded by what is recalled.
PIECE = 2


def _pieces(count: int, most: int) -> list[int]:
    return [min(most, count - start) for start in range(0, count, most)]
