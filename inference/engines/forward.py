"""The model on torch: any number of sequences, each with any number of new tokens, in one pass.

The weights come from transformers; the arithmetic of a Llama is written out here, because a token costs 135 M
multiplications and what stands around them counts: no cache is copied to grow it, projections that read the
same input are one, and sequences of different lengths are computed together without padding.

In bf16 a token's keys, values and logits come out in the same bits whoever is computed beside it and however
its prompt is cut into passes, so reuse and batching change no answer. Two rules see to that, both measured on
an AMD EPYC with avx512_bf16: no product with weights has fewer than two rows, and a token looks over a number
of keys that its own position decides.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM
from transformers.utils import logging

from inference.engines.base import EngineUnavailable, Sampling
from inference.kv.buffers import BLOCK, Buffer, Slab, in_blocks
from inference.kv.memory import keep_what_is_freed
from inference.kv.shape import Shape

ARCHITECTURE = "llama"


class Aborted(Exception):
    """The pass was given up between two layers; no sequence has grown."""


Part = tuple[Buffer, Sequence[int]]
"""A sequence, and the tokens (at least one) to compute behind what it holds."""


class _Projection:
    """x Wᵀ + b for x (rows, in), as one product for all the linear `modules`, which read the same input.

    In bf16 the weights are laid out beforehand as oneDNN computes with them, where torch can: with 1 to 8
    rows all projections of SmolLM2-135M took 24 ms so and 36 to 49 ms as F.linear, with equal bits.
    """

    __slots__ = ("_bias", "_weight", "packed")

    def __init__(self, *modules: Any) -> None:
        weights = [one.weight.detach() for one in modules]
        weight = torch.cat(weights) if len(weights) > 1 else weights[0]
        biases = [one.bias for one in modules if one.bias is not None]
        self._bias: torch.Tensor | None = torch.cat(biases).detach() if biases else None
        self.packed = _can_pack(weight)
        self._weight: torch.Tensor = (
            torch.ops.mkldnn._reorder_linear_weight(weight, PACKED_ROWS) if self.packed else weight
        )

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        if self.packed:
            return torch.ops.mkldnn._linear_pointwise(x, self._weight, self._bias, "none", [], "")
        return F.linear(x, self._weight, self._bias)


# With one row oneDNN's product over the 1,536 inputs of a "down" took 199 µs, with two 59; and one row gives
# other bits than any other number does.
LEAST_ROWS = 2

# The number of rows that the layout is chosen for. Layouts for 1, 8 and 256 rows measured alike.
PACKED_ROWS = 8


def _can_pack(weight: torch.Tensor) -> bool:
    """Whether this torch and this processor multiply bf16 in oneDNN. The operations are inner ones of torch,
    which its compiler uses, so their absence is no error."""
    if weight.dtype != torch.bfloat16 or weight.device.type != "cpu":
        return False
    try:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    except (AttributeError, RuntimeError):
        return False


@dataclass(frozen=True, slots=True)
class _Layer:
    norm: torch.Tensor
    qkv: _Projection
    out: _Projection
    mlp_norm: torch.Tensor
    gate_up: _Projection
    down: _Projection

    @classmethod
    def of(cls, layer: Any) -> "_Layer":
        attention, mlp = layer.self_attn, layer.mlp
        return cls(
            norm=layer.input_layernorm.weight.detach().float(),
            qkv=_Projection(attention.q_proj, attention.k_proj, attention.v_proj),
            out=_Projection(attention.o_proj),
            mlp_norm=layer.post_attention_layernorm.weight.detach().float(),
            gate_up=_Projection(mlp.gate_proj, mlp.up_proj),
            down=_Projection(mlp.down_proj),
        )


@dataclass(frozen=True, slots=True)
class _Span:
    """The rows `start` to `end` of a pass: one sequence's new tokens, at positions `past` and on."""

    buffer: Buffer
    start: int
    end: int
    past: int

    @property
    def total(self) -> int:
        return self.past + self.end - self.start

    def pieces(self) -> Iterator[tuple[int, int]]:
        """First and last position (that one left out) of the new tokens in each block."""
        for block in range(self.past // BLOCK * BLOCK, self.total, BLOCK):
            yield max(self.past, block), min(self.total, block + BLOCK)


@dataclass(frozen=True, slots=True)
class _Group:
    """Rows of a pass that are one token each of sequences in one slab: their `rows`, `slots` and `positions`,
    (n,) each. They are attended to at once, with all `slots` from `low` on, over `keys` positions, of which
    `unseen` (slots from low on, 1, 1, keys) are none of a sequence's."""

    kv: torch.Tensor
    rows: torch.Tensor
    slots: torch.Tensor
    positions: torch.Tensor
    low: int
    keys: int
    unseen: torch.Tensor

    @classmethod
    def of(cls, spans: Sequence[_Span]) -> "_Group":
        slots = torch.tensor([span.buffer.slot for span in spans])
        positions = torch.tensor([span.past for span in spans])
        low, keys = int(slots.min()), in_blocks(int(positions.max()) + 1)
        seen = torch.zeros(int(slots.max()) + 1 - low, dtype=torch.int64)
        seen[slots - low] = positions
        return cls(
            spans[0].buffer.slab.kv,
            torch.tensor([span.start for span in spans]),
            slots,
            positions,
            low,
            keys,
            (torch.arange(keys) > seen[:, None])[:, None, None],
        )


# Tokens whose logits are computed in fp32.
RECKONED_AGAIN = 8

# Up to this many keys a token's bits are the same however many of them are looked over with it.
GROUPED_KEYS = 1024


def _grouped(spans: Sequence[_Span]) -> tuple[list[_Group], list[_Span]]:
    """Those that can be attended to at once, and the others."""
    by_slab: dict[Slab, list[_Span]] = {}
    for span in spans:
        if span.end - span.start == 1 and in_blocks(span.total) <= GROUPED_KEYS:
            by_slab.setdefault(span.buffer.slab, []).append(span)
    groups = [_Group.of(found) for found in by_slab.values() if len(found) > 1]
    together = {id(span) for found in by_slab.values() if len(found) > 1 for span in found}
    return groups, [span for span in spans if id(span) not in together]


class Model:
    """A causal language model from `model_dir`. Holds no state between calls: the keys and values live in the
    caller's buffers. Thread-safe as long as no buffer is in two passes at once. Raises EngineUnavailable
    for an architecture other than Llama's."""

    def __init__(self, model_dir: Path, dtype: str, threads: int | None) -> None:
        keep_what_is_freed()
        if threads:
            torch.set_num_threads(threads)
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        model: Any = AutoModelForCausalLM.from_pretrained(
            model_dir, dtype=getattr(torch, dtype), local_files_only=True
        )
        config = model.config
        if config.model_type != ARCHITECTURE:
            raise EngineUnavailable(
                f"The torch engine computes Llama models; {model_dir} holds a {config.model_type!r}."
            )
        self.shape = Shape.of_config(config.to_dict(), dtype)
        self.positions = int(config.max_position_embeddings)
        self.dtype: torch.dtype = getattr(torch, dtype)
        self._heads = int(config.num_attention_heads)
        self._epsilon = float(config.rms_norm_eps)
        with torch.inference_mode():
            self._take_weights(model.eval())

    def _take_weights(self, model: Any) -> None:
        self._embedding: torch.Tensor = model.model.embed_tokens.weight.detach()
        self._head = _Projection(model.lm_head)
        self._words: torch.Tensor = model.lm_head.weight.detach()  # with Llamas this small, the embedding
        self._norm: torch.Tensor = model.model.norm.weight.detach().float()
        self._layers = [_Layer.of(layer) for layer in model.model.layers]
        # (1, positions, head_dim) each. The sine's first half is negated: with it, turning a pair of halves
        # (-b, a) is a roll.
        places = torch.arange(self.positions)[None]
        cos, sin = model.model.rotary_emb(self._embedding, places)
        half = self.shape.head_dim // 2
        self._cos = cos[0].contiguous()
        self._sin = torch.cat((-sin[0, :, :half], sin[0, :, half:]), dim=-1)
        # What a token of a block doesn't see of its block: (BLOCK, BLOCK).
        self._later = torch.full((BLOCK, BLOCK), float("-inf"), dtype=self.dtype).triu(1)

    def new_buffer(self, capacity: int) -> Buffer:
        """An empty one for at least `capacity` tokens, in memory of its own."""
        return Buffer.new(self.shape, self.dtype, capacity)

    @torch.inference_mode()
    def step(self, parts: Sequence[Part], aborted: Callable[[], bool] | None = None) -> torch.Tensor:
        """Computes each part's tokens behind what its buffer holds, adds their keys and values to it, and
        returns the logits that follow each part, (parts, vocabulary). `aborted` is asked before every layer;
        raises Aborted when it says so, and IndexError for a token outside the vocabulary or a full buffer.
        Whatever is raised, the buffers hold what they held before."""
        spans = self._spans(parts)
        ids = self._ids(parts)
        filling = self._rows(len(ids)) - len(ids)  # rows of no sequence, which nobody reads
        # What the layers add up is kept in fp32: bf16 would lose what is small beside the sum.
        x = F.embedding(F.pad(ids, (0, filling)), self._embedding).float()
        places = torch.cat([*(torch.arange(span.past, span.total) for span in spans), ids.new_zeros(filling)])
        cos, sin = self._cos[places][:, None], self._sin[places][:, None]
        groups, alone = _grouped(spans)
        for number, layer in enumerate(self._layers):
            if aborted is not None and aborted():
                raise Aborted
            x = self._attend(number, layer, x, cos, sin, groups, alone)
            x = self._think(layer, x)
        ends = [span.end - 1 for span in spans]
        ends += [0] * (self._rows(len(ends)) - len(ends))
        logits = self._logits(self._normed(x[ends], self._norm), len(spans))
        for span in spans:
            span.buffer.length = span.total
        return logits

    def _logits(self, hidden: torch.Tensor, count: int) -> torch.Tensor:
        """Of the first `count` rows. In bf16 a logit of 25 comes in steps of 0.125, and the two likeliest are
        often equal; so those of the likeliest are computed again in fp32."""
        logits = self._head(hidden)[:count]
        if self.dtype != torch.bfloat16:
            return logits
        best = logits.topk(RECKONED_AGAIN).indices
        words = self._words[best].float()
        return logits.float().scatter(1, best, (words * hidden[:count, None].float()).sum(-1))

    def _rows(self, count: int) -> int:
        """How many rows are computed for `count`. oneDNN keeps 3 MB of code for each number of rows it ever
        saw, for this model; so there are fourteen numbers, not 256."""
        if not self._head.packed:
            return count
        if count <= 8:
            return max(LEAST_ROWS, 1 << (count - 1).bit_length())
        step = 16 if count <= 64 else 32
        return -(-count // step) * step

    def _ids(self, parts: Sequence[Part]) -> torch.Tensor:
        ids = [token for _, tokens in parts for token in tokens]
        if not 0 <= min(ids) <= max(ids) < len(self._embedding):
            raise IndexError("a token is outside the vocabulary")
        return torch.tensor(ids)

    def _spans(self, parts: Sequence[Part]) -> list[_Span]:
        spans, start = [], 0
        for buffer, tokens in parts:
            count, past = len(tokens), buffer.length
            if past + count > buffer.capacity:
                raise IndexError(f"{past} + {count} tokens don't fit a buffer of {buffer.capacity}")
            spans.append(_Span(buffer, start, start + count, past))
            start += count
        for span in spans:
            span.buffer.make_ready(span.total)
        return spans

    def _normed(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, (x.shape[-1],), weight, self._epsilon).to(self.dtype)

    def _attend(
        self,
        number: int,
        layer: _Layer,
        x: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        groups: Sequence[_Group],
        alone: Sequence[_Span],
    ) -> torch.Tensor:
        """x (rows, hidden) plus what its tokens see of their sequences."""
        kv_heads, size = self.shape.kv_heads, self.shape.head_dim
        qkv = layer.qkv(self._normed(x, layer.norm)).view(len(x), -1, size)
        turning = qkv[:, : self._heads + kv_heads]
        turned = torch.addcmul(turning * cos, turning.roll(size // 2, -1), sin)
        query, key, value = (
            turned[:, : self._heads] * size**-0.5,
            turned[:, self._heads :],
            qkv[:, -kv_heads:],
        )
        seen = torch.zeros(len(x), self._heads * size, dtype=self.dtype)
        for group in groups:
            seen[group.rows] = self._see_group(group, number, query, key, value)
        for span in alone:
            self._see(span, number, *(rows[span.start : span.end] for rows in (query, key, value, seen)))
        return x + layer.out(seen)

    def _see_group(
        self, group: _Group, number: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
    ) -> torch.Tensor:
        """Attention of the group's rows, of all query (rows, heads, head_dim) of the pass: (n, hidden). In
        the same bits as each by itself."""
        held, heads, size = group.kv[number], self.shape.kv_heads, query.shape[-1]
        held[0][group.slots, :, group.positions] = key[group.rows]
        held[1][group.slots, :, group.positions] = value[group.rows]
        slots, place = len(group.unseen), group.slots - group.low
        keys, values = held[:, group.low : group.low + slots].flatten(1, 2)[:, :, : group.keys]
        rows = query.new_zeros(slots, heads, self._heads // heads, size)
        rows[place] = query[group.rows].view(len(place), heads, -1, size)
        scores = torch.bmm(keys, rows.flatten(0, 1).transpose(1, 2)).transpose(1, 2).contiguous()
        scores.view(slots, heads, -1, group.keys).masked_fill_(group.unseen, float("-inf"))
        return torch.bmm(torch.softmax(scores, dim=-1), values).view(slots, -1)[place]

    def _see(
        self,
        span: _Span,
        number: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        seen: torch.Tensor,
    ) -> None:
        """Attention of one sequence's new rows, query (n, heads, head_dim), over all of it, into `seen` (n,
        hidden)."""
        held = span.buffer.kv[number]
        held[0, :, span.past : span.total] = key.transpose(0, 1)
        held[1, :, span.past : span.total] = value.transpose(0, 1)
        for first, last in span.pieces():
            own = slice(first - span.past, last - span.past)
            seen[own] = self._see_block(held[:, :, : in_blocks(last)], query[own], first)

    def _see_block(self, held: torch.Tensor, query: torch.Tensor, first: int) -> torch.Tensor:
        """Queries (n, heads, head_dim) of tokens at `first` and on, all in the last block of `held` (2,
        kv_heads, keys, head_dim). The query heads of a key head are rows of one product: torch's own
        scaled_dot_product_attention took twice the time for 64 tokens over 4,000 keys."""
        heads, count = self.shape.kv_heads, len(query)
        keys, values = held
        size = query.shape[-1]
        rows = query.view(count, heads, -1, size).transpose(0, 1).reshape(heads, -1, size)
        if count == 1:  # the same bits, without turning all the keys
            scores = torch.bmm(keys, rows.transpose(1, 2)).transpose(1, 2).contiguous()
            scores[..., first + 1 :] = float("-inf")
        else:
            scores = torch.bmm(rows, keys.transpose(1, 2))
            own = first % BLOCK
            scores.view(heads, count, -1, keys.shape[1])[..., -BLOCK:] += self._later[own : own + count, None]
        seen = torch.bmm(torch.softmax(scores, dim=-1), values)
        return seen.view(heads, count, -1).transpose(0, 1).reshape(count, -1)

    def _think(self, layer: _Layer, x: torch.Tensor) -> torch.Tensor:
        gate, up = layer.gate_up(self._normed(x, layer.mlp_norm)).chunk(2, dim=-1)
        return x + layer.down(F.silu(gate) * up)


class Picker:
    """Picks next tokens the way one request wants them; equal seeds pick equally on equal logits."""

    def __init__(self, sampling: Sampling) -> None:
        self._temperature = sampling.temperature
        self._top_p = sampling.top_p
        self._dice = torch.Generator()
        if sampling.seed is None:
            self._dice.seed()
        else:
            self._dice.manual_seed(sampling.seed)

    @torch.inference_mode()
    def pick(self, logits: torch.Tensor) -> int:
        """One token id from `logits`, (vocabulary,)."""
        if self._temperature == 0:
            return int(logits.argmax())
        odds = torch.softmax(logits.float() / self._temperature, dim=-1)
        if self._top_p == 1:
            return int(torch.multinomial(odds, 1, generator=self._dice))
        odds, tokens = odds.sort(descending=True)
        # A token stays while the likelier ones before it don't reach top_p; the likeliest always does.
        odds[odds.cumsum(-1) - odds >= self._top_p] = 0
        return int(tokens[torch.multinomial(odds, 1, generator=self._dice)])
