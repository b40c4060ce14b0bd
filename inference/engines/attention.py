"""What the tokens of a pass see of their sequences.

All that is the same in every layer, views above all, is made once a pass: with one token, making it anew in
each layer took half as long as the products with the weights.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import torch

from inference.kv.buffers import BLOCK, Buffer, Plug, in_blocks
from inference.kv.shape import Shape

# Up to this many keys a token's bits are the same however many of them are looked over with it.
GROUPED_KEYS = 1024


@dataclass(frozen=True, slots=True)
class Span:
    """The rows `start` to `end` of a pass: one sequence's new tokens, at positions `past` and on."""

    buffer: Buffer
    start: int
    end: int
    past: int

    @property
    def total(self) -> int:
        return self.past + self.end - self.start

    @property
    def slab(self) -> int | None:
        """Where others may be that can be attended to together with it; None if it is attended to alone."""
        single = self.end - self.start == 1 and in_blocks(self.total) <= GROUPED_KEYS
        if self.buffer.plug is not None:
            return None
        return id(self.buffer.slab) if single else None


class Rows:
    """What the rows of a pass hold within a layer: `turned` (rows, heads + 2 kv_heads, head_dim), their
    queries, keys and values; and `seen` (rows, heads * head_dim), what becomes of them."""

    __slots__ = ("_kv_heads", "seen", "turned")

    def __init__(self, count: int, heads: int, shape: Shape, dtype: torch.dtype) -> None:
        self._kv_heads = shape.kv_heads
        self.turned = torch.empty(count, heads + 2 * shape.kv_heads, shape.head_dim, dtype=dtype)
        self.seen = torch.zeros(count, heads * shape.head_dim, dtype=dtype)

    def queries(self, rows: slice) -> torch.Tensor:
        """(n, kv_heads, heads for each, head_dim)."""
        asked = self.turned[rows, : -2 * self._kv_heads]
        return asked.view(len(asked), self._kv_heads, -1, asked.shape[-1])

    def fresh(self, rows: slice) -> torch.Tensor:
        """Their keys and values, (n, 2, kv_heads, head_dim)."""
        fresh = self.turned[rows, -2 * self._kv_heads :]
        return fresh.view(len(fresh), 2, self._kv_heads, fresh.shape[-1])


class Reader(Protocol):
    """Some rows of a pass."""

    def attend(self, layer: int) -> None:
        """Adds their keys and values to their sequences, and puts into `seen` what they see of them."""


def readers(spans: Sequence[Span], rows: Rows, later: torch.Tensor) -> list[Reader]:
    """Those of all spans. `later` (BLOCK, BLOCK): -inf where a token of a block doesn't see its block."""
    found: list[Reader] = []
    for slab, members in groupby(spans, lambda span: span.slab):
        together = list(members)
        if slab is not None and len(together) > 1:
            found.append(_Group(rows, together))
        else:
            for span in together:
                found += _alone(span, rows, later)
    return found


def _alone(span: Span, rows: Rows, later: torch.Tensor) -> list[Reader]:
    if span.buffer.plug is not None:
        return [_Plugged(span, span.buffer.plug, rows, later)]
    return list(_pieces(span, span.buffer.kv, rows, later))


def in_order(parts: Sequence[tuple[Buffer, int]]) -> list[Span]:
    """The spans of sequences and numbers of new tokens, those side by side that are attended to together."""
    spans = [Span(buffer, 0, count, buffer.length) for buffer, count in parts]
    spans.sort(key=lambda span: (span.slab or 0, span.buffer.slot))
    placed, start = [], 0
    for span in spans:
        placed.append(Span(span.buffer, start, start + span.end, span.past))
        start += span.end
    return placed


def _pieces(span: Span, kv: torch.Tensor, rows: Rows, later: torch.Tensor) -> Iterator[Reader]:
    """A reader for the new tokens in each block, over `kv` (layers, 2, kv_heads, n, head_dim)."""
    for block in range(span.past // BLOCK * BLOCK, span.total, BLOCK):
        first, last = max(span.past, block), min(span.total, block + BLOCK)
        own = slice(span.start + first - span.past, span.start + last - span.past)
        if last - first == 1:
            yield _Token(rows, own, kv, first)
        else:
            yield _Piece(rows, own, kv, first, later)


class _Plugged:
    """The new tokens of a sequence that a plug keeps elsewhere."""

    def __init__(self, span: Span, plug: Plug, rows: Rows, later: torch.Tensor) -> None:
        self._span, self._plug, self._rows, self._later = span, plug, rows, later
        own = slice(span.start, span.end)
        self._queries, self._fresh, self._seen = rows.queries(own), rows.fresh(own), rows.seen[own]
        self._in_buffer = list(_pieces(span, span.buffer.kv, rows, later))

    def attend(self, layer: int) -> None:
        past, total = self._span.past, self._span.total
        if self._plug.recalls(layer):
            self._plug.attend(layer, past, self._queries, self._fresh, self._seen)
        elif (kv := self._plug.whole(layer, total)) is not None:
            for piece in _pieces(self._span, kv[None], self._rows, self._later):
                piece.attend(0)
            self._span.buffer.kv[layer, :, :, past:total] = kv[:, :, past:total]
        else:
            for piece in self._in_buffer:
                piece.attend(layer)


class _Piece:
    """Tokens at `first` and on, in one block. The query heads of a key head are rows of one product: torch's
    own scaled_dot_product_attention took twice the time for 64 tokens over 4,000 keys.

    Rows are filled up to a power of two, since oneDNN keeps code for every size of product it saw: behind up
    to 448 keys, pieces of all lengths took 522 MB, those of six lengths 52."""

    def __init__(self, rows: Rows, own: slice, kv: torch.Tensor, first: int, later: torch.Tensor) -> None:
        count = own.stop - own.start
        last = first + count
        held = kv[:, :, :, : in_blocks(last)]
        self._keys = held[:, 0].transpose(-1, -2).unbind(0)
        self._values = held[:, 1].unbind(0)
        self._room = held[:, :, :, first:last].unbind(0)
        self._fresh = rows.fresh(own).permute(1, 2, 0, 3)
        queries = rows.queries(own).transpose(0, 1)  # (kv_heads, count, heads for each, head_dim)
        heads, _, each, size = queries.shape
        filled = queries.new_zeros(heads, 1 << (count - 1).bit_length(), each, size)
        self._sizes = filled.shape
        self._rows = filled.flatten(1, 2)
        self._queries, self._asked = queries, filled[:, :count]
        self._seen = rows.seen[own].view(count, heads, each, size).transpose(0, 1)
        self._later = later[first % BLOCK :][:count, None]

    def attend(self, layer: int) -> None:
        self._room[layer].copy_(self._fresh)
        self._asked.copy_(self._queries)
        scores = torch.bmm(self._rows, self._keys[layer])
        count = len(self._later)
        scores.view(*self._sizes[:3], -1)[:, :count, :, -BLOCK:] += self._later
        seen = torch.bmm(torch.softmax(scores, dim=-1), self._values[layer])
        self._seen.copy_(seen.view(self._sizes)[:, :count])


class _Token:
    """One token at `place`. In the bits of a _Piece of one, without turning all the keys."""

    def __init__(self, rows: Rows, own: slice, kv: torch.Tensor, place: int) -> None:
        held = kv[:, :, :, : in_blocks(place + 1)]
        self._keys, self._values = held[:, 0].unbind(0), held[:, 1].unbind(0)
        self._room = held[:, :, :, place].unbind(0)
        self._fresh = rows.fresh(own)[0]
        queries = rows.queries(own)[0]
        self._columns = queries.transpose(1, 2)
        self._seen = rows.seen[own].view(queries.shape)
        heads, each, _ = queries.shape
        self._scores = queries.new_full((heads, each, held.shape[3]), float("-inf"))
        self._known = self._scores[..., : place + 1]

    def attend(self, layer: int) -> None:
        self._room[layer].copy_(self._fresh)
        scores = torch.bmm(self._keys[layer], self._columns).transpose(1, 2)
        self._known.copy_(scores[..., : self._known.shape[-1]])
        torch.bmm(torch.softmax(self._scores, dim=-1), self._values[layer], out=self._seen)


class _Group:
    """One token each of sequences in one slab, by rising slot. They are attended to at once, with all slots
    in between, each in the same bits as by itself."""

    def __init__(self, rows: Rows, spans: Sequence[Span]) -> None:
        kv = spans[0].buffer.slab.kv
        own = slice(spans[0].start, spans[-1].end)
        slots = torch.tensor([span.buffer.slot for span in spans])
        positions = torch.tensor([span.past for span in spans])
        low, high = spans[0].buffer.slot, spans[-1].buffer.slot + 1
        keys = in_blocks(int(positions.max()) + 1)
        held = kv[:, :, low:high].flatten(2, 3)[..., :keys, :]
        self._keys, self._values = held[:, 0].unbind(0), held[:, 1].unbind(0)
        self._room = kv.permute(0, 2, 4, 1, 3, 5).unbind(0)
        self._at, self._fresh = (slots, positions), rows.fresh(own)
        self._asked, self._place = rows.queries(own), slots - low
        self._queries = self._asked.new_zeros(high - low, *self._asked.shape[1:])
        self._columns = self._queries.flatten(0, 1).transpose(1, 2)
        self._seen = rows.seen[own]
        known = torch.zeros(high - low, dtype=torch.int64)
        known[self._place] = positions
        self._unseen = (torch.arange(keys) > known[:, None])[:, None, None]

    def attend(self, layer: int) -> None:
        self._room[layer].index_put_(self._at, self._fresh)
        self._queries.index_copy_(0, self._place, self._asked)
        scores = torch.bmm(self._keys[layer], self._columns).transpose(1, 2).contiguous()
        slots, heads, each, _ = self._queries.shape
        scores.view(slots, heads, each, -1).masked_fill_(self._unseen, float("-inf"))
        seen = torch.bmm(torch.softmax(scores, dim=-1), self._values[layer])
        torch.index_select(seen.view(slots, -1), 0, self._place, out=self._seen)
