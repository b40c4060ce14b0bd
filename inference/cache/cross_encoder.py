"""A cross-encoder: reads two questions at once and says how likely they ask the same thing.

Post-LN BERT (Devlin et al. 2018) with the weights of multilingual-e5-small and a tuned change of them. Loads
torch.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor, nn

from inference.cache.e5_weights import E5File, Floats, Pieces

Ids = npt.NDArray[np.int64]

# Layers' matrices, by their names in the file: query, key, value, attention output, feed-forward in and out.
MATRICES = ("q", "k", "v", "ao", "fi", "fo")

# The lower layers stay as they are: half the time to train, half the change to keep.
UNTUNED_LAYERS = 6

# A pair longer than this is not judged: questions are short, and 256 tokens take ten times as long as 22.
LONGEST_PAIR = 256


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

    def _normed(self, x: Tensor, name: str) -> Tensor:
        weight, bias = self.get_parameter(f"{name}_w"), self.get_parameter(f"{name}_b")
        return F.layer_norm(x, weight.shape, weight, bias, self.epsilon)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """`x` (batch, length, hidden); `mask` (batch, 1, 1, length), True where there is a token."""
        batch, length, hidden = x.shape
        q, k, v = (
            self._linear(x, name).view(batch, length, self.heads, -1).transpose(1, 2)
            for name in ("q", "k", "v")
        )
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        seen = seen.transpose(1, 2).reshape(batch, length, hidden)
        x = self._normed(x + self._linear(seen, "ao"), "aln")
        return self._normed(x + self._linear(F.gelu(self._linear(x, "fi")), "fo"), "oln")


class Encoder(nn.Module):
    """Token ids to hidden states. The word embeddings stay in the file, in 4 bits."""

    def __init__(self, file: E5File) -> None:
        super().__init__()
        self._file = file
        sizes = file.sizes
        self.epsilon = sizes.epsilon
        self.positions = nn.Parameter(torch.from_numpy(file.matrix("emb.pos", sizes.positions)))
        self.first_segment = nn.Parameter(torch.from_numpy(file.matrix("emb.type", sizes.types))[0])
        # The model never saw a second segment; what tells it apart is added where tuning begins.
        self.second_segment = nn.Parameter(torch.zeros(sizes.hidden))
        self.norm_w = nn.Parameter(torch.from_numpy(file.tensor("emb.ln.w")))
        self.norm_b = nn.Parameter(torch.from_numpy(file.tensor("emb.ln.b")))
        self.layers = nn.ModuleList(Layer(file, number) for number in range(sizes.layers))
        for part in (self.positions, self.first_segment, self.norm_w, self.norm_b):
            part.requires_grad_(False)
        self.layers[:UNTUNED_LAYERS].requires_grad_(False)

    def forward(self, ids: Ids, segments: Ids, present: Tensor | None) -> Tensor:
        """`ids`, `segments` (batch, length) integers; `present` (batch, length) False on padding, None
        without. Returns (batch, length, hidden)."""
        batch, length = ids.shape
        dtype = self.norm_w.dtype
        words = torch.from_numpy(self._file.word_rows(ids.reshape(-1))).view(batch, length, -1).to(dtype)
        x = words + self.positions[:length] + self.first_segment
        x = F.layer_norm(x, self.norm_w.shape, self.norm_w, self.norm_b, self.epsilon)
        mask = None if present is None else present[:, None, None, :]
        for layer in self.layers[:UNTUNED_LAYERS]:
            x = layer(x, mask)
        x = x + torch.from_numpy(segments).unsqueeze(-1).to(dtype) * self.second_segment
        for layer in self.layers[UNTUNED_LAYERS:]:
            x = layer(x, mask)
        return x


def mean(states: Tensor, present: Tensor) -> Tensor:
    """The mean over the tokens that are there: (batch, length, hidden) to (batch, hidden)."""
    weights = present.to(states.dtype).unsqueeze(-1)
    return (states * weights).sum(1) / weights.sum(1)


def embed(file: E5File, texts: Sequence[str]) -> Floats:
    """The untuned model's own query embeddings, (len(texts), hidden), normalised. For checking the parts
    above."""
    tokenizer, encoder = PieceTokenizer(file.pieces), Encoder(file)
    rows = []
    with torch.inference_mode():
        for text in texts:
            ids = np.array([tokenizer.single(f"query: {text}")])
            rows.append(F.normalize(encoder(ids, np.zeros_like(ids), None).mean(1), dim=-1))
    embeddings: Floats = torch.cat(rows).numpy()
    return embeddings


class CrossEncoder(nn.Module):
    """Pairs of texts to logits: above 0 they are more likely the same question than not.

    The head sees the mean over both texts, and how far the means over each lie apart in every dimension.
    """

    def __init__(self, file: E5File) -> None:
        super().__init__()
        self.tokenizer = PieceTokenizer(file.pieces)
        self.encoder = Encoder(file)
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
    return model.eval().requires_grad_(False).to(torch.bfloat16)


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
