"""Keys and values in half the bytes: for prefixes that nobody asked for lately, and of contexts that are
recalled."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Self

import torch

from inference.kv import quantize
from inference.kv.quantize import rounded


@dataclass(frozen=True, slots=True)
class Cold:
    """Keys and values of n tokens: int8, (layers, kv_heads, n, head_dim) each, and fp16 steps."""

    keys: torch.Tensor
    key_steps: torch.Tensor
    values: torch.Tensor
    value_steps: torch.Tensor

    @classmethod
    def of(cls, kv: torch.Tensor) -> Self:
        """`kv` is (layers, 2, kv_heads, n, head_dim)."""
        keys, values = kv[:, 0].float(), kv[:, 1].float()
        return cls(*rounded(keys, 2, torch.float16), *rounded(values, 3, torch.float16))

    @property
    def nbytes(self) -> int:
        return sum(one.nbytes for one in self.tensors())

    def tensors(self) -> list[torch.Tensor]:
        return [getattr(self, field.name) for field in fields(self)]

    def write(self, first: int, last: int, into: torch.Tensor) -> None:
        """Tokens `first` to `last` (left out) to `into` (layers, 2, kv_heads, last - first, head_dim)."""
        into[:, 0] = self.keys[:, :, first:last] * self.key_steps.float()
        into[:, 1] = self.values[:, :, first:last] * self.value_steps[:, :, first:last].float()

    def part(self, first: int, last: int) -> "Cold":
        """Tokens `first` to `last` (left out) in memory of their own."""
        return Cold(
            self.keys[:, :, first:last].clone(memory_format=torch.contiguous_format),
            self.key_steps.clone(),
            self.values[:, :, first:last].clone(memory_format=torch.contiguous_format),
            self.value_steps[:, :, first:last].clone(memory_format=torch.contiguous_format),
        )


def cold_bytes(sizes: tuple[int, int, int, int, int]) -> int:
    """Bytes of Cold.of a tensor of `sizes`."""
    layers, _, heads, tokens, size = sizes
    return layers * heads * (2 * tokens * size + 2 * size + 2 * tokens)


def stands(kv: torch.Tensor, logits_behind: Callable[[torch.Tensor], torch.Tensor]) -> bool:
    """Whether a model bears `kv` (layers, 2, kv_heads, n, head_dim) as Cold: see quantize.stands."""
    back = torch.empty_like(kv)
    Cold.of(kv).write(0, kv.shape[3], back)
    return quantize.stands(kv, back, logits_behind)
