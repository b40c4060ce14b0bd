"""Keys and values in 8 bits.

Keys by head and channel, because some channels of a key are ten times as large as others; values by token.
After KIVI (Liu et al., 2024), with 8 bits instead of 2. What comes back is near what was stored, not equal to
it, so a model has to pass `stands` first.
"""

from collections.abc import Callable

import torch

# Logits of SmolLM2-135M are off by 0.06 in the mean for being computed in bf16; behind keys and values in
# int8 they may be off by this much.
MOST_OFF = 0.25
LEAST_SAME = 0.95

# A step of 0 would divide by it.
LEAST_STEP = 1e-6


def rounded(
    x: torch.Tensor, axis: int, steps_in: torch.dtype | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """int8 of `x` and the steps, one for all along `axis`, in the dtype of `x` or the one given."""
    steps = (x.float().abs().amax(axis, keepdim=True) / 127).clamp(min=LEAST_STEP).to(steps_in or x.dtype)
    return in_steps(x, steps), steps


def in_steps(x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    """int8 of `x` in given steps; what is out of their reach is cut."""
    return (x.float() / steps.float()).round().clamp(-127, 127).to(torch.int8)


def turning_steps(keys: torch.Tensor) -> torch.Tensor:
    """fp32 steps (kv_heads, 1, head_dim) for keys (kv_heads, n, head_dim) that hold for later ones too. RoPE
    turns each channel with the one half a head away, so what one of the two is at most at these positions the
    other can be at later ones: both get the step of their length."""
    one, other = keys.float().chunk(2, dim=-1)
    length = torch.sqrt(one.square() + other.square()).amax(1, keepdim=True)
    steps = (length / 127).clamp(min=LEAST_STEP)
    return torch.cat((steps, steps), dim=-1)


def stands(
    kv: torch.Tensor, back: torch.Tensor, logits_behind: Callable[[torch.Tensor], torch.Tensor]
) -> bool:
    """Whether a model bears it: `logits_behind` gives (tokens, vocabulary) behind the keys and values it is
    given, `kv` as computed and `back` as they come back. The mean difference must be at most MOST_OFF, and
    the likeliest token the same in a share of LEAST_SAME."""
    one, other = logits_behind(kv).float(), logits_behind(back).float()
    off = (one - other).abs().mean().item()
    same = (one.argmax(-1) == other.argmax(-1)).float().mean().item()
    return off <= MOST_OFF and same >= LEAST_SAME
