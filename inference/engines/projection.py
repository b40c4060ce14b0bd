"""Products with weights that stay the same."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

# The number of rows that the layout is chosen for. Layouts for 1, 8 and 256 rows measured alike.
PACKED_ROWS = 8


class Projection:
    """x Wᵀ + b for x (rows, in), as one product for all the `weights`, which read the same input.

    In bf16 the weights are laid out beforehand as oneDNN computes with them, where torch can: with 1 to 8
    rows all projections of SmolLM2-135M took 24 ms so and 36 to 49 ms as F.linear, with equal bits.
    """

    __slots__ = ("_bias", "_weight", "packed")

    def __init__(self, weights: Sequence[Tensor], biases: Sequence[Tensor] = ()) -> None:
        weight = torch.cat([one.detach() for one in weights]) if len(weights) > 1 else weights[0].detach()
        self._bias: Tensor | None = torch.cat([one.detach() for one in biases]) if biases else None
        self.packed = weight.dtype == torch.bfloat16 and weight.device.type == "cpu" and multiplies_bf16()
        self._weight: Tensor = (
            torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), PACKED_ROWS)
            if self.packed
            else weight
        )

    def __call__(self, x: Tensor) -> Tensor:
        if self.packed:
            product: Tensor = torch.ops.mkldnn._linear_pointwise(x, self._weight, self._bias, "none", [], "")
            return product
        return F.linear(x, self._weight, self._bias)


def multiplies_bf16() -> bool:
    """Whether this torch and this processor multiply bf16 in oneDNN. The operations are inner ones of torch,
    which its compiler uses, so their absence is no error."""
    try:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    except (AttributeError, RuntimeError):
        return False
