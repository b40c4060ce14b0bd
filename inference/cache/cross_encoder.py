"""A cross-encoder: reads two questions at once and says how likely they ask the same thing.

The encoder of multilingual-e5-small with a tuned change of its weights. Loads torch.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from inference.e5.encoder import Encoder, Ids, PieceTokenizer, mean
from inference.e5.reading import Reading
from inference.e5.weights import E5File

# A pair longer than this is not judged: questions are short, and 256 tokens take ten times as long as 22.
LONGEST_PAIR = 256


class CrossEncoder(nn.Module):
    """Pairs of texts to logits: above 0 they are more likely the same question than not.

    The head sees the mean over both texts, and how far the means over each lie apart in every dimension.
    """

    def __init__(self, file: E5File) -> None:
        super().__init__()
        self.tokenizer = PieceTokenizer(file.pieces)
        self.encoder: Encoder | Reading = Encoder(file)
        self.head = nn.Linear(3 * file.sizes.hidden, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Tensor:
        """`pairs` of piece ids, as `tokenizer.ids` gives them. Returns (len(pairs),) logits."""
        ids, segments, present = self._padded([self.tokenizer.pair(a, b) for a, b in pairs])
        states = self.encoder(ids, segments, present if not bool(present.all()) else None)
        second = present & torch.from_numpy(segments == 1)
        a, b = mean(states, present & ~second), mean(states, second)
        return self.head(torch.cat([mean(states, present), (a - b).abs(), a * b], -1)).squeeze(-1)

    def fits(self, first: Sequence[int], second: Sequence[int]) -> bool:
        return len(first) + len(second) + 3 <= LONGEST_PAIR

    @torch.inference_mode()
    def logits(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[float]:
        found: list[float] = self(pairs).float().tolist()
        return found

    def _padded(self, sequences: Sequence[tuple[list[int], list[int]]]) -> tuple[Ids, Ids, Tensor]:
        lengths = np.array([len(ids) for ids, _ in sequences])
        longest = int(lengths.max())
        ids = np.full((len(sequences), longest), self.tokenizer.pad, dtype=np.int64)
        segments = np.zeros_like(ids)
        for row, (tokens, kinds) in enumerate(sequences):
            ids[row, : len(tokens)] = tokens
            segments[row, : len(kinds)] = kinds
        return ids, segments, torch.from_numpy(np.arange(longest) < lengths[:, None])


def load(file: E5File, tuned: Path) -> CrossEncoder:
    """The encoder with the change in `tuned` (see `save`) applied, in bfloat16. Takes about a second.
    Raises OSError where the file is missing, ValueError where it doesn't fit."""
    model = CrossEncoder(file)
    try:
        with safe_open(tuned, framework="pt") as change, torch.no_grad():
            for name, parameter in model.named_parameters():
                if not parameter.requires_grad:
                    continue
                if f"{name}.left" in change.keys():  # noqa: SIM118
                    parameter.add_(_whole(change, f"{name}.left").T @ _whole(change, f"{name}.right"))
                else:
                    parameter.copy_(change.get_tensor(name))
    except (SafetensorError, RuntimeError) as error:
        raise ValueError(f"{tuned} is no change of these weights: {error}") from error
    model.eval().requires_grad_(False).to(torch.bfloat16)
    model.encoder = Reading(cast(Encoder, model.encoder))
    return model


def save(model: CrossEncoder, file: E5File, tuned: Path, rank: int, note: dict[str, str]) -> None:
    """What tuning changed: of every matrix the `rank` strongest directions, as two thin matrices in 8 bits
    with a scale a row; everything else whole, in fp16."""
    untuned = dict(CrossEncoder(file).named_parameters())
    kept: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        value = parameter.detach().float()
        if name.startswith("encoder.layers") and value.dim() == 2:
            u, s, v = torch.linalg.svd(value - untuned[name].detach(), full_matrices=False)
            _keep(kept, f"{name}.left", (u[:, :rank] * s[:rank].sqrt()).T)
            _keep(kept, f"{name}.right", s[:rank].sqrt()[:, None] * v[:rank])
        else:
            kept[name] = value.half().contiguous()
    tuned.parent.mkdir(parents=True, exist_ok=True)
    save_file(kept, tuned, metadata=note)


def _keep(kept: dict[str, Tensor], name: str, rows: Tensor) -> None:
    scale = rows.abs().amax(1, keepdim=True).clamp_min(1e-12) / 127
    kept[name] = (rows / scale).round().to(torch.int8).contiguous()
    kept[f"{name}.scale"] = scale.contiguous()


def _whole(change: Any, name: str) -> Tensor:
    whole: Tensor = change.get_tensor(name).float() * change.get_tensor(f"{name}.scale")
    return whole
