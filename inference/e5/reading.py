"""The encoder as it is read with, once nothing is trained any more: the same states from products that take
half the time. Loads torch."""

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from inference.engines.projection import Projection

from .encoder import UNTUNED_LAYERS, Encoder, Ids, Layer


class _Block:
    """A layer's arithmetic; query, key and value come of one product."""

    def __init__(self, layer: Layer) -> None:
        def projection(*names: str) -> Projection:
            return Projection(
                [layer.get_parameter(f"{name}_w") for name in names],
                [layer.get_parameter(f"{name}_b") for name in names],
            )

        self._heads, self._norms = layer.heads, (layer.norm("aln"), layer.norm("oln"))
        self._qkv, self._out = projection("q", "k", "v"), projection("ao")
        self._in, self._back = projection("fi"), projection("fo")

    def __call__(self, x: Tensor, batch: int, mask: Tensor | None) -> Tensor:
        """`x` (batch * length, hidden)."""
        rows, hidden = x.shape
        q, k, v = self._qkv(x).view(batch, rows // batch, 3, self._heads, -1).permute(2, 0, 3, 1, 4).float()
        seen = _attended(q, k, v, mask).to(x.dtype).transpose(1, 2).reshape(rows, hidden)
        attended, moved_on = self._norms
        x = attended(x + self._out(seen))
        return moved_on(x + self._back(F.gelu(self._in(x))))


def _attended(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Attention in fp32, written out: it takes 77 us for the 45 tokens of a pair, torch's own in bf16 133."""
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ v


class Reading(nn.Module):
    """Takes the place of the `encoder` it is made of, and computes with its weights."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self._words, self._second = encoder.words, encoder.second_segment.detach()
        self._blocks = [_Block(cast(Layer, layer)) for layer in encoder.layers]

    def forward(self, ids: Ids, segments: Ids | None, present: Tensor | None) -> Tensor:
        """See Encoder.forward; without `segments` all is of the first."""
        batch, length = ids.shape
        x = self._words(ids).view(batch * length, -1)
        mask = None if present is None else present[:, None, None, :]
        for block in self._blocks[:UNTUNED_LAYERS]:
            x = block(x, batch, mask)
        if segments is not None:
            x = x + torch.from_numpy(segments).view(-1, 1).to(x.dtype) * self._second
        for block in self._blocks[UNTUNED_LAYERS:]:
            x = block(x, batch, mask)
        return x.view(batch, length, -1)
