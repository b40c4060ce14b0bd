"""The encoder: post-LN BERT (Devlin et al. 2018). Loads torch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor, nn

from .weights import E5File, Pieces

Ids = npt.NDArray[np.int64]

# Layers' matrices, by their names in the file: query, key, value, attention output, feed-forward in and out.
MATRICES = ("q", "k", "v", "ao", "fi", "fo")

# The lower layers stay as they are where the others are tuned: half the time to train, half to keep.
UNTUNED_LAYERS = 6


class PieceTokenizer:
    """Text to the ids of the model's pieces. Immutable, so threads may share it."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        special = {pieces.begin, pieces.end, pieces.pad, pieces.unknown}
        # What someone writes must never be read as a control token, so these match nothing.
        vocabulary = [
            (f"\x00{i}" if i in special else piece, score)
            for i, (piece, score) in enumerate(zip(pieces.pieces, pieces.scores, strict=True))
        ]
        self._core = Tokenizer(models.Unigram(vocabulary, unk_id=pieces.unknown, byte_fallback=False))
        self._core.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
        self._replaced = str.maketrans(pieces.replaced)

    def ids(self, text: str) -> list[int]:
        """The pieces of a text, without begin and end; [] for a blank one."""
        plain = " ".join(part for part in text.translate(self._replaced).split(" ") if part)
        return list(self._core.encode(plain, add_special_tokens=False).ids) if plain else []

    def single(self, text: str) -> list[int]:
        return [self._pieces.begin, *self.ids(text), self._pieces.end]

    def pair(self, first: Sequence[int], second: Sequence[int]) -> tuple[list[int], list[int]]:
        """Ids and segments (0, 1) of two texts in one sequence."""
        begin, end = self._pieces.begin, self._pieces.end
        ids = [begin, *first, end, *second, end]
        return ids, [0] * (len(first) + 2) + [1] * (len(second) + 1)

    @property
    def pad(self) -> int:
        return self._pieces.pad


@dataclass(frozen=True)
class Norm:
    weight: Tensor
    bias: Tensor
    epsilon: float

    def __call__(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.epsilon)


class Layer(nn.Module):
    def __init__(self, file: E5File, number: int) -> None:
        super().__init__()
        sizes = file.sizes
        self.heads = sizes.heads
        self.epsilon = sizes.epsilon
        rows = {"fi": sizes.inner}
        for name in MATRICES:
            weight = file.matrix(f"l{number}.{name}.w", rows.get(name, sizes.hidden))
            self.register_parameter(f"{name}_w", nn.Parameter(torch.from_numpy(weight)))
            self._add(file, number, f"{name}.b")
        for name in ("aln.w", "aln.b", "oln.w", "oln.b"):
            self._add(file, number, name)

    def _add(self, file: E5File, number: int, name: str) -> None:
        value = torch.from_numpy(file.tensor(f"l{number}.{name}"))
        self.register_parameter(name.replace(".", "_"), nn.Parameter(value))

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return F.linear(x, self.get_parameter(f"{name}_w"), self.get_parameter(f"{name}_b"))

    def norm(self, name: str) -> Norm:
        return Norm(self.get_parameter(f"{name}_w"), self.get_parameter(f"{name}_b"), self.epsilon)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """`x` (batch, length, hidden); `mask` (batch, 1, 1, length), True where there is a token."""
        batch, length, hidden = x.shape
        q, k, v = (
            self._linear(x, name).view(batch, length, self.heads, -1).transpose(1, 2)
            for name in ("q", "k", "v")
        )
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        seen = seen.transpose(1, 2).reshape(batch, length, hidden)
        x = self.norm("aln")(x + self._linear(seen, "ao"))
        return self.norm("oln")(x + self._linear(F.gelu(self._linear(x, "fi")), "fo"))


class Words(nn.Module):
    """Token ids to what the first layer reads. The word embeddings stay in the file, in 4 bits."""

    def __init__(self, file: E5File) -> None:
        super().__init__()
        self._file = file
        sizes = file.sizes
        self._epsilon = sizes.epsilon
        self.positions = nn.Parameter(torch.from_numpy(file.matrix("emb.pos", sizes.positions)))
        self.first_segment = nn.Parameter(torch.from_numpy(file.matrix("emb.type", sizes.types))[0])
        self.norm_w = nn.Parameter(torch.from_numpy(file.tensor("emb.ln.w")))
        self.norm_b = nn.Parameter(torch.from_numpy(file.tensor("emb.ln.b")))
        self.requires_grad_(False)

    def forward(self, ids: Ids) -> Tensor:
        """`ids` (batch, length) to (batch, length, hidden)."""
        batch, length = ids.shape
        rows = torch.from_numpy(self._file.word_rows(ids.reshape(-1))).view(batch, length, -1)
        x = rows.to(self.norm_w.dtype) + self.positions[:length] + self.first_segment
        return Norm(self.norm_w, self.norm_b, self._epsilon)(x)


class Encoder(nn.Module):
    """Token ids to hidden states."""

    def __init__(self, file: E5File) -> None:
        super().__init__()
        self.words = Words(file)
        # The model never saw a second segment; what tells it apart is added where tuning begins.
        self.second_segment = nn.Parameter(torch.zeros(file.sizes.hidden))
        self.layers = nn.ModuleList(Layer(file, number) for number in range(file.sizes.layers))
        self.layers[:UNTUNED_LAYERS].requires_grad_(False)

    def forward(self, ids: Ids, segments: Ids, present: Tensor | None) -> Tensor:
        """`ids`, `segments` (batch, length) integers; `present` (batch, length) False on padding, None
        without. Returns (batch, length, hidden)."""
        x = self.words(ids)
        mask = None if present is None else present[:, None, None, :]
        for layer in self.layers[:UNTUNED_LAYERS]:
            x = layer(x, mask)
        x = x + torch.from_numpy(segments).unsqueeze(-1).to(x.dtype) * self.second_segment
        for layer in self.layers[UNTUNED_LAYERS:]:
            x = layer(x, mask)
        return x


def mean(states: Tensor, present: Tensor) -> Tensor:
    """The mean over the tokens that are there: (batch, length, hidden) to (batch, hidden)."""
    weights = present.to(states.dtype).unsqueeze(-1)
    return (states * weights).sum(1) / weights.sum(1)
