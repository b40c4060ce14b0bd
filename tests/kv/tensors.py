"""Keys and values that tell which prefix they belong to, so that a mix-up shows."""

import zlib
from collections.abc import Sequence

import torch

from inference.kv.shape import Shape

SHAPE = Shape(layers=2, kv_heads=2, head_dim=4, item_bytes=4)
PER_TOKEN = 2 * 2 * 2 * 4 * 4


def kv_of(tokens: Sequence[int], scope: str = "", room: int = 0) -> torch.Tensor:
    """What a model would compute: at each position something that depends on every token up to it. `room`
    more positions hold NaN, as a buffer has that isn't filled."""
    kv = torch.full(SHAPE.sizes(len(tokens) + room), float("nan"))
    digest = zlib.crc32(scope.encode())
    for place, token in enumerate(tokens):
        digest = zlib.crc32(f"{token},".encode(), digest)
        generator = torch.Generator().manual_seed(digest)
        kv[..., place, :] = torch.rand(kv[..., place, :].shape, generator=generator)
    return kv


def buffer(tokens: Sequence[int]) -> torch.Tensor:
    return torch.full(SHAPE.sizes(len(tokens)), float("nan"))
