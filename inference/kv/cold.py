"""Keys and values in half the bytes: for prefixes that nobody asked for lately.

Keys by head and channel, because some channels of a key are ten times as large as others; values by token.
After KIVI (Liu et al., 2024), with 8 bits instead of 2. What comes back is near what was stored, not equal to
it, so a model has to pass `stands` first.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Self

import torch

# Logits of SmolLM2-135M are off by 0.06 in the mean for being computed in bf16; behind keys and values in
# int8 they may be off by this much.
MOST_OFF = 0.25
LEAST_SAME = 0.95


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
        return cls(*_rounded(keys, axis=2), *_rounded(values, axis=3))

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


def _rounded(x: torch.Tensor, axis: int) -> tuple[torch.Tensor, torch.Tensor]:
    """int8 of `x` and the steps, one for all along `axis`. A step of 0 would divide by it."""
    steps = (x.abs().amax(axis, keepdim=True) / 127).clamp(min=1e-6).half()
    return (x / steps.float()).round().clamp(-127, 127).to(torch.int8), steps


def cold_bytes(sizes: tuple[int, int, int, int, int]) -> int:
    """Bytes of Cold.of a tensor of `sizes`."""
    layers, _, heads, tokens, size = sizes
    return layers * heads * (2 * tokens * size + 2 * size + 2 * tokens)


def stands(kv: torch.Tensor, logits_behind: Callable[[torch.Tensor], torch.Tensor]) -> bool:
    """Whether a model bears it: `logits_behind` gives (tokens, vocabulary) behind the keys and values it is
    given, `kv` as computed and `kv` as it comes back. The mean difference must be at most MOST_OFF, and the
    likeliest token the same in a share of LEAST_SAME."""
    back = torch.empty_like(kv)
    Cold.of(kv).write(0, kv.shape[3], back)
    one, other = logits_behind(kv).float(), logits_behind(back).float()
    off = (one - other).abs().mean().item()
    same = (one.argmax(-1) == other.argmax(-1)).float().mean().item()
    return off <= MOST_OFF and same >= LEAST_SAME
