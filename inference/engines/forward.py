"""The model on torch: any number of sequences, each with any number of new tokens, in one pass.

The weights come from transformers; the arithmetic of a Llama is written out here, because a token costs 135 M
multiplications and what stands around them counts: no cache is copied to grow it, projections that read the
same input are one, and sequences of different lengths are computed together without padding.

In bf16 a token's keys, values and logits come out in the same bits whoever is computed beside it and however
its prompt is cut into passes, so reuse and batching change no answer. Two rules see to that, both measured on
an AMD EPYC with avx512_bf16: no product with weights has a single row, and a token looks over a number
of keys that its own position decides.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM
from transformers.utils import logging

from inference.engines.attention import Reader, Rows, Span, in_order, readers
from inference.engines.base import EngineUnavailable, Sampling
from inference.engines.projection import Projection
from inference.engines.threads import FAR, Threads, measured
from inference.kv.buffers import BLOCK, Buffer
from inference.kv.memory import keep_what_is_freed
from inference.kv.shape import Shape

ARCHITECTURE = "llama"


class Aborted(Exception):
    """The pass was given up between two layers; no sequence has grown."""


Part = tuple[Buffer, Sequence[int]]
"""A sequence, and the tokens (at least one) to compute behind what it holds."""


def _together(*modules: Any) -> Projection:
    """As one product, for linear modules that read the same input."""
    biases = [one.bias for one in modules if one.bias is not None]
    return Projection([one.weight for one in modules], biases)


# All projections of SmolLM2-135M took 20.8 ms with one row, 23.6 with two, 17.8 with four, 18.0 with six and
# 22.4 with eight, on one thread; and one row gives other bits than any other number does.
LEAST_ROWS = 4


@dataclass(frozen=True, slots=True)
class _Layer:
    norm: torch.Tensor
    qkv: Projection
    out: Projection
    mlp_norm: torch.Tensor
    gate_up: Projection
    down: Projection

    @classmethod
    def of(cls, layer: Any) -> "_Layer":
        attention, mlp = layer.self_attn, layer.mlp
        return cls(
            norm=layer.input_layernorm.weight.detach().float(),
            qkv=_together(attention.q_proj, attention.k_proj, attention.v_proj),
            out=_together(attention.o_proj),
            mlp_norm=layer.post_attention_layernorm.weight.detach().float(),
            gate_up=_together(mlp.gate_proj, mlp.up_proj),
            down=_together(mlp.down_proj),
        )


# Tokens whose logits are computed in fp32.
RECKONED_AGAIN = 8


class Model:
    """A causal language model from `model_dir`, computed on as many `threads`, or (None) as are best on this
    machine. Holds no state between calls: the keys and values live in the caller's buffers. Thread-safe as
    long as no buffer is in two passes at once. Raises EngineUnavailable for an architecture other than
    Llama's."""

    def __init__(self, model_dir: Path, dtype: str, threads: int | None) -> None:
        keep_what_is_freed()
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
        self._threads: Threads | None = None
        self._threads = Threads(threads, threads, threads) if threads else self._fastest()

    def _fastest(self) -> Threads:
        """As measured with a single token, with half a chunk of a prompt, and with a whole one so far into it
        that it is beyond doubt: it makes four times as many pairs as are called far."""

        def going(rows: int, past: int) -> Callable[[], object]:
            def go() -> None:
                buffer.go_on_from(past)
                self.step([(buffer, [0] * rows)])

            return go

        far = min(4 * FAR // 256, self.positions - 256)
        buffer = self.new_buffer(far + 256)
        passes = (going(1, 0), going(128, 0), going(256, far))
        return measured((self.shape, self.dtype, len(self._embedding)), *passes)

    def _take_weights(self, model: Any) -> None:
        self._embedding: torch.Tensor = model.model.embed_tokens.weight.detach()
        self._head = _together(model.lm_head)
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
        # (heads + 2 kv_heads, 1): queries are divided by the root of their size, and values not turned.
        queries, keys = torch.ones(self._heads, 1), torch.ones(self.shape.kv_heads, 1)
        scale = self.shape.head_dim**-0.5
        self._turns = torch.cat((queries * scale, keys, keys * 0)).to(self.dtype)
        self._still = torch.cat((queries * 0, keys * 0, keys)).to(self.dtype)
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
        x, spans = self._through(parts, aborted)
        last = {id(span.buffer): span.end - 1 for span in spans}
        ends = [last[id(buffer)] for buffer, _ in parts]
        ends += [0] * (self._rows(len(ends)) - len(ends))
        logits = self._logits(self._normed(x[ends], self._norm), len(spans))
        for span in spans:
            span.buffer.length = span.total
        return logits

    def _through(
        self, parts: Sequence[Part], aborted: Callable[[], bool] | None = None
    ) -> tuple[torch.Tensor, list[Span]]:
        """All layers: what is known of each token then, (rows, hidden), and the rows of each sequence."""
        spans = self._spans(parts)
        ids = self._ids(parts, spans)
        filling = self._rows(len(ids)) - len(ids)  # rows of no sequence, which nobody reads
        if self._threads is not None:
            pairs = sum((span.end - span.start) * span.past for span in spans)
            self._threads.use(len(ids), pairs)
        # What the layers add up is kept in fp32: bf16 would lose what is small beside the sum.
        x = F.embedding(F.pad(ids, (0, filling)), self._embedding).float()
        turn = self._turn(spans, filling)
        rows = Rows(len(x), self._heads, self.shape, self.dtype)
        reading = readers(spans, rows, self._later)
        for number, layer in enumerate(self._layers):
            if aborted is not None and aborted():
                raise Aborted
            self._attend(number, layer, x, rows, turn, reading)
            self._think(layer, x)
        return x, spans

    @torch.inference_mode()
    def every(self, buffer: Buffer, tokens: Sequence[int]) -> torch.Tensor:
        """As `step` of one sequence, but the logits behind each of its tokens, (tokens, vocabulary)."""
        x, (span,) = self._through([(buffer, tokens)])
        buffer.length = span.total
        return self._logits(self._normed(x, self._norm), len(tokens))

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
        saw, for this model; so there are thirteen numbers, not 256."""
        if not self._head.packed:
            return count
        if count <= 8:
            return max(LEAST_ROWS, 1 << (count - 1).bit_length())
        step = 16 if count <= 64 else 32
        return -(-count // step) * step

    def _spans(self, parts: Sequence[Part]) -> list[Span]:
        for buffer, tokens in parts:
            if buffer.length + len(tokens) > buffer.capacity:
                raise IndexError(
                    f"{buffer.length} + {len(tokens)} tokens don't fit a buffer of {buffer.capacity}"
                )
        spans = in_order([(buffer, len(tokens)) for buffer, tokens in parts])
        for span in spans:
            span.buffer.make_ready(span.total)
        return spans

    def _ids(self, parts: Sequence[Part], spans: Sequence[Span]) -> torch.Tensor:
        """(rows,), in the order of the spans."""
        read = {id(buffer): tokens for buffer, tokens in parts}
        ids = [token for span in spans for token in read[id(span.buffer)]]
        if not 0 <= min(ids) <= max(ids) < len(self._embedding):
            raise IndexError("a token is outside the vocabulary")
        return torch.tensor(ids)

    def _turn(self, spans: Sequence[Span], filling: int) -> tuple[torch.Tensor, torch.Tensor]:
        """By what each row's queries, keys and values are turned, (rows, heads + 2 kv_heads, head_dim) each:
        cosine and sine of its position; queries are shortened with it, and values stay what they are."""
        places = torch.cat(
            [*(torch.arange(span.past, span.total) for span in spans), torch.zeros(filling).long()]
        )
        return (
            torch.addcmul(self._still, self._cos[places][:, None], self._turns),
            self._sin[places][:, None] * self._turns,
        )

    def _normed(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """x / rms(x) * weight, of x (rows, hidden), in the model's dtype. In the bits of F.rms_norm, which
        took twice as long."""
        scale = torch.rsqrt(x.square().mean(-1, keepdim=True).add_(self._epsilon))
        return torch.mul(x * scale, weight, out=torch.empty(x.shape, dtype=self.dtype))

    def _attend(
        self,
        number: int,
        layer: _Layer,
        x: torch.Tensor,
        rows: Rows,
        turn: tuple[torch.Tensor, torch.Tensor],
        reading: Sequence[Reader],
    ) -> None:
        """Adds to x (rows, hidden) what its tokens see of their sequences."""
        cos, sin = turn
        qkv = layer.qkv(self._normed(x, layer.norm)).view(rows.turned.shape)
        torch.addcmul(qkv * cos, qkv.roll(self.shape.head_dim // 2, -1), sin, out=rows.turned)
        for reader in reading:
            reader.attend(number)
        x += layer.out(rows.seen)

    def _think(self, layer: _Layer, x: torch.Tensor) -> None:
        gate, up = layer.gate_up(self._normed(x, layer.mlp_norm)).chunk(2, dim=-1)
        x += layer.down(F.silu(gate).mul_(up))


@torch.inference_mode()
def chances(logits: torch.Tensor, tokens: Sequence[int]) -> tuple[float, ...]:
    """How likely each of `tokens` is to be the next one, by `logits`, (vocabulary,)."""
    odds = torch.softmax(logits.float(), dim=-1)
    return tuple(odds[list(tokens)].tolist())


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
