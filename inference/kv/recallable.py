"""A long sequence most of whose keys and values are archived, and recalled as steps need them.

After ClusterKV (arXiv 2412.03213). The first tokens (sinks), the newest (a window) and what the last step
recalled lie whole in one small tensor, which is all that attention reads; everything else is in the archive,
and counts as the clusters' mean values. What a step recalls and the step before had recalled too is not
decompressed again. Some layers stay full.
"""

import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import torch

from inference.kv.archive import Archive
from inference.kv.buffers import Buffer, in_blocks
from inference.kv.cold import Cold
from inference.kv.memory import zeros
from inference.kv.recall import PIECE, Rest, find

if TYPE_CHECKING:
    from inference.kv.recall_kernel import Recaller

# Contexts up to 2,560 tokens get a cluster for 20 tokens, those from 10,240 on one for 80, as in the paper;
# in between there are 128 clusters, so that centroids stay small beside what is recalled.
LEAST_RATIO, MOST_RATIO, CLUSTERS = 20, 80, 128

# Layers archived in one pass, so that nobody who writes along waits for all of them.
LAYERS_AT_ONCE = 2


def ratio_for(tokens: int) -> int:
    return min(MOST_RATIO, max(LEAST_RATIO, tokens // CLUSTERS))


@dataclass(frozen=True, slots=True)
class Recall:
    """How a sequence is recalled. Attention reads `budget` tokens of each head (the `sinks` first ones, the
    `keep` newest, and what is recalled) and up to `fresh` more that were written since. `ratio` tokens make a
    cluster (0: as the length asks). `sharpen` times the room, and at least `looked` tokens, are looked at by
    key before it is filled; with 1 none are. `estimate`: what is not recalled counts as the mean values of
    its clusters, not as nothing. `full_layers` are not archived. `exact`: archives keep what was computed
    instead of int8. Raises ValueError for a budget that leaves no room."""

    budget: int = 1024
    ratio: int = 0
    sharpen: float = 2.0
    looked: int = 1024
    full_layers: tuple[int, ...] = (0, 1)
    sinks: int = 16
    keep: int = 16
    fresh: int = 32
    iterations: int = 20
    exact: bool = False
    estimate: bool = True

    def __post_init__(self) -> None:
        if (
            self.ratio < 0
            or self.sharpen < 1
            or self.iterations < 1
            or min(self.sinks, self.keep, self.fresh) < 1
        ):
            raise ValueError(f"no sequence can be recalled so: {self}")
        if self.room < 1:
            raise ValueError(f"{self.sinks} sinks and {self.keep} newest fill a budget of {self.budget}")

    def ratio_of(self, tokens: int) -> int:
        return self.ratio or ratio_for(tokens)

    @property
    def room(self) -> int:
        """How many tokens are recalled."""
        return self.budget - self.sinks - self.keep

    def looks_at(self, tokens: int, room: int) -> int:
        """How many of so many archived tokens are looked at to fill the room."""
        if self.sharpen == 1:
            return min(tokens, room)
        return min(tokens, max(int(self.sharpen * room), self.looked))

    def estimates(self, tokens: int, room: int) -> bool:
        """Is there a rest of so many archived tokens that is to count?"""
        return self.estimate and tokens > room


RECENT = 512


@dataclass(slots=True)
class Figures:
    """What was recalled so far: tokens over all layers and heads, how many of them had to be decompressed,
    the milliseconds that choosing and bringing took in each of the last steps, and of the last layer recalled
    the clusters by rank (kv_heads, clusters)."""

    recalled: int = 0
    decompressed: int = 0
    steps: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    order: torch.Tensor | None = None

    @property
    def hit_ratio(self) -> float:
        return 1 - self.decompressed / self.recalled if self.recalled else 0.0


class _Layer:
    """One archived layer of a sequence. `resident` (2, kv_heads, n, head_dim) is what attention reads:
    `room` recalled tokens, `sinks` first ones, and a window of those from position `since` on. Those from
    `staged` on are still in the buffer, if it isn't None."""

    def __init__(self, archive: Archive, resident: torch.Tensor, room: int, sinks: int) -> None:
        self.archive, self.resident = archive, resident
        self.room, self.sinks = room, sinks
        self.since = sinks
        self.staged: int | None = 0
        # (kv_heads, recalled), int32: the row of what lies in each slot.
        self._lying: torch.Tensor | None = None
        self._compiled = _compiled(archive, resident)

    @property
    def begun(self) -> bool:
        return self.archive.tokens > 0

    @property
    def device_bytes(self) -> int:
        """What is read at each step, and what says where it is: clusters, and what lies in each slot."""
        slots = self.resident.shape[1] * min(self.archive.tokens, self.room)
        return self.resident.nbytes + self.archive.index.nbytes + 4 * slots

    def slot(self, position: int) -> int:
        """Where in `resident` a token of the window lies."""
        return self.room + self.sinks + position - self.since

    # -- moving --

    def write(self, first: int, last: int, end: int, buffer: Buffer, layer: int, into: torch.Tensor) -> None:
        """Positions `first` to `last` (left out) of a sequence of `end` to `into` (2, kv_heads, n, head_dim),
        wherever they are."""
        staged = end if self.staged is None else self.staged
        if self.begun:
            self.archive.write(first, last, into)
            self._copy(first, min(last, self.sinks), first, self.resident[:, :, self.room :], into, 0)
            window = self.resident[:, :, self.room + self.sinks :]
            self._copy(max(first, self.since), min(last, staged), first, window, into, self.since)
        self._copy(max(first, staged), last, first, buffer.kv[layer], into, 0)

    @staticmethod
    def _copy(
        first: int, last: int, start: int, source: torch.Tensor, into: torch.Tensor, origin: int
    ) -> None:
        if last > first:
            into[:, :, first - start : last - start] = source[:, :, first - origin : last - origin]

    def settle(self, buffer: Buffer, layer: int, keep: int, ratio: int, iterations: int) -> None:
        """Archives the window and what is staged but for the newest `keep`."""
        end = buffer.length
        since = max(self.since, end - keep)
        kv = torch.empty(
            2, *self.resident.shape[1:2], end - self.since, self.resident.shape[3], dtype=self.resident.dtype
        )
        self.write(self.since, end, end, buffer, layer, kv)
        if not self.begun:
            sinks = slice(self.room, self.room + self.sinks)
            self.resident[:, :, sinks] = buffer.kv[layer, :, :, : self.sinks]
        if since > self.since:
            old = kv[:, :, : since - self.since]
            self.archive.add(self.since, old[0], old[1], ratio, iterations)
        newest = kv[:, :, since - self.since :]
        self.since = since
        self.resident[:, :, self.slot(since) : self.slot(end)] = newest
        if self.staged is not None:
            buffer.release(layer, end)
        self.staged = None

    # -- recalling --

    def recall(self, queries: torch.Tensor, how: Recall, figures: Figures) -> tuple[int, Rest | None]:
        """Brings what `queries` (kv_heads, heads for each, head_dim) ask for; how many tokens that are, and
        what the others add."""
        archive = self.archive
        looked = how.looks_at(archive.tokens, self.room)
        count = min(looked, self.room)
        estimate = how.estimates(archive.tokens, count)
        if self._compiled is not None:
            brought = self._compiled.recall(queries, looked, count, estimate=estimate)
            self._lying, figures.order, rest = self._compiled.lying, self._compiled.order, self._compiled.rest
        else:
            scores = partial(archive.scores, queries)
            found = find(queries, archive.index, scores, looked, count, estimate=estimate)
            figures.order, rest = found.order, found.rest
            brought = self._bring(archive.rows(found.places))
        figures.recalled += len(archive.keys) * count
        figures.decompressed += brought
        return count, rest

    def lying(self) -> set[int]:
        return set() if self._lying is None else set(self._lying.view(-1).tolist())

    def _bring(self, rows: torch.Tensor) -> int:
        """Makes what lies in the slots what lies at `rows` (kv_heads, m) of the archive; how many were not
        there."""
        heads, count = rows.shape
        lying = self._lying
        if lying is None or lying.shape != rows.shape:
            self._lying = rows.int()
            self._fill(rows.view(-1), torch.arange(rows.numel()), count)
            return rows.numel()
        there, needed = torch.zeros(2, heads * self.archive.capacity, dtype=torch.bool)
        there.index_fill_(0, lying.view(-1).long(), True)
        needed.index_fill_(0, rows.view(-1), True)
        # As many come as go, for each head.
        coming = there.take(rows).logical_not_().view(-1).nonzero()[:, 0]
        if len(coming):
            slots = needed.take(lying.long()).logical_not_().view(-1).nonzero()[:, 0]
            new = rows.view(-1).index_select(0, coming)
            lying.view(-1).index_copy_(0, slots, new.int())
            self._fill(new, slots, count)
        return len(coming)

    def _fill(self, rows: torch.Tensor, slots: torch.Tensor, count: int) -> None:
        """Brings `rows` to the `slots`, of which each head has `count`."""
        keys_in, values_in = self.resident.flatten(1, 2)
        heads = slots // count
        at = slots + heads * (self.resident.shape[2] - count)
        for some in range(0, len(rows), self.room):
            own = slice(some, some + self.room)
            keys, values = self.archive.take(rows[own], heads[own])
            keys_in.index_copy_(0, at[own], keys)
            values_in.index_copy_(0, at[own], values)


def _compiled(archive: Archive, resident: torch.Tensor) -> "Recaller | None":
    """What recalls this archive in compiled code, if any can."""
    from inference.kv.recall_kernel import Recaller  # loads a compiler: only for who recalls

    return Recaller(archive, resident) if Recaller.fits(archive) else None


class Recallable:
    """The plug of a sequence in `buffer`, which is full up to here. `booked` is told the bytes that room for
    `tokens` takes whenever they change. Between passes it archives LAYERS_AT_ONCE layers; one that isn't
    yet is attended to in full. Used by the thread that computes, but for `part`, whose caller holds the
    buffer's guard."""

    def __init__(self, buffer: Buffer, how: Recall) -> None:
        layers, _, heads, capacity, size = buffer.kv.shape
        self._weak = weakref.ref(buffer)  # which refers to its plug
        self.how = how
        self.booked: Callable[[int], None] = lambda nbytes: None
        self.tokens = capacity
        self.ratio = how.ratio_of(buffer.length)
        self._window = how.keep + how.fresh
        self._layers: list[_Layer | None] = [None] * layers
        self.figures = Figures()
        self._seconds = 0.0
        for layer in range(layers):
            if layer not in how.full_layers:
                archive = Archive(heads, size, capacity, buffer.kv.dtype, how.exact)
                resident = zeros((2, heads, how.budget + how.fresh, size), buffer.kv.dtype)
                self._layers[layer] = _Layer(archive, resident, how.room, how.sinks)

    @property
    def _buffer(self) -> Buffer:
        buffer = self._weak()
        assert buffer is not None
        return buffer

    # -- what it weighs --

    def _book(self) -> None:
        self.booked(self._buffer.bytes_of(self.tokens))

    def _archived(self) -> list[_Layer]:
        return [one for one in self._layers if one is not None and one.begun]

    @property
    def in_buffer(self) -> int:
        """Layers whose tokens are in the buffer, all or the newest."""
        return sum(one is None or one.staged is not None for one in self._layers)

    @property
    def device_bytes(self) -> int:
        """Of the archived layers: recalled tokens, sinks, window, centroids and the books."""
        return sum(one.device_bytes for one in self._archived())

    @property
    def host_bytes(self) -> int:
        return sum(one.archive.host_bytes for one in self._archived())

    @property
    def temporary_bytes(self) -> int:
        """The most that choosing and decompressing takes for a moment, in one layer: of all tokens that are
        looked at place, row, cluster and score, and of twice the room of them the key as it is kept; of the
        whole archive which ones are there and which are needed; of `room` tokens at a time keys and values as
        kept and as they come back."""
        some = next((one for one in self._layers if one is not None), None)
        if some is None:
            return 0
        _, heads, _, size = some.resident.shape
        item = some.resident.itemsize
        kept = item if self.how.exact else 1
        looked = self.how.looks_at(some.archive.tokens, some.room)
        keys = min(looked, PIECE * some.room) * size * kept
        looking = heads * (looked * (3 * 8 + 4 * 4) + keys + 2 * some.archive.capacity)
        taking = some.room * size * (2 * kept + 3 * item)
        return max(looking, taking)

    @property
    def nbytes(self) -> int:
        """All of it but what is in the buffer."""
        return self.device_bytes + self.host_bytes + self.temporary_bytes

    @property
    def saved_bytes(self) -> int:
        """How much more the archived layers would hold in the buffer."""
        buffer = self._weak()
        if buffer is None:  # gone since somebody began to count
            return 0
        one = buffer.kv[0, :, :, :1]
        whole = one.numel() * one.itemsize * buffer.length * len(self._archived())
        return whole - self.device_bytes - self.host_bytes

    @property
    def clusters(self) -> int:
        """Of all layers, for each head."""
        return sum(one.archive.index.sizes.shape[1] for one in self._archived())

    def recalled_rows(self) -> list[set[int]]:
        """What each archived layer recalls now, by row of its archive."""
        return [one.lying() for one in self._archived()]

    # -- as the sequence grows --

    def make_ready(self, total: int) -> None:
        """A pass up to `total` tokens begins. One of several tokens leaves them in the buffer; one of a
        single token finds the next layers archived, and room for it in the window."""
        length = self._buffer.length
        if total - length > 1:
            for layer in self._archived():
                if layer.staged is None:
                    layer.staged = length
            return
        if self._seconds:
            self.figures.steps.append(self._seconds * 1000)
            self._seconds = 0.0
        waiting = [n for n, one in enumerate(self._layers) if one is not None and one.staged is not None]
        full = [
            n
            for n, one in enumerate(self._layers)
            if one is not None and one.staged is None and length - one.since >= self._window
        ]
        due = waiting[:LAYERS_AT_ONCE] + full
        if due:
            with self._buffer.guard:
                for number in due:
                    self._settle(number)
            self._book()

    def _settle(self, number: int) -> None:
        layer, how = self._layers[number], self.how
        assert layer is not None
        layer.settle(self._buffer, number, how.keep, self.ratio, how.iterations)

    def settle(self) -> None:
        """Archives all layers now."""
        with self._buffer.guard:
            for number, layer in enumerate(self._layers):
                if layer is not None and layer.staged is not None:
                    self._settle(number)
        self._book()

    def go_on(self, length: int) -> bool:
        """The sequence is its first `length` tokens now, or has grown to that many in the buffer. Whether it
        can be: what is archived stays together."""
        before = self._buffer.length
        layers = self._archived()
        if any(length < layer.since for layer in layers):
            return False
        for layer in layers:
            end = before if layer.staged is None else layer.staged
            if length > end or layer.staged is not None:
                layer.staged = min(end, length)
        return True

    def part(self, first: int, last: int) -> torch.Tensor | Cold:
        """Positions `first` to `last` (left out) of all layers, in memory of their own: in int8 unless
        archives are exact. The caller holds the buffer's guard."""
        kv = self._buffer.kv
        whole = torch.empty(*kv.shape[:3], last - first, kv.shape[4], dtype=kv.dtype)
        for number, layer in enumerate(self._layers):
            if layer is None:
                whole[number] = kv[number, :, :, first:last]
            else:
                layer.write(first, last, self._buffer.length, self._buffer, number, whole[number])
        return whole if self.how.exact else Cold.of(whole)

    # -- attention --

    def recalls(self, layer: int) -> bool:
        one = self._layers[layer]
        return one is not None and one.begun and one.staged is None

    def whole(self, layer: int, total: int) -> torch.Tensor | None:
        """Keys and values of a layer that is archived in part, all of them with room up to `total`, (2,
        kv_heads, n, head_dim) for a pass; None when they are in the buffer."""
        one = self._layers[layer]
        if one is None or not one.begun:
            return None
        kv = torch.zeros_like(self._buffer.kv[layer, :, :, : in_blocks(total)])
        one.write(0, self._buffer.length, self._buffer.length, self._buffer, layer, kv)
        return kv

    def attend(
        self, layer: int, place: int, queries: torch.Tensor, fresh: torch.Tensor, seen: torch.Tensor
    ) -> None:
        """Of one token: see Plug.attend."""
        began = time.perf_counter()
        (asked,) = queries
        one = self._layers[layer]
        assert one is not None
        slot = one.slot(place)
        one.resident[:, :, slot] = fresh[0]
        filled, rest = one.recall(asked, self.how, self.figures)
        self._seconds += time.perf_counter() - began
        keys, values = one.resident
        scores = torch.bmm(asked, keys.transpose(1, 2))
        scores[..., filled : one.room] = scores[..., slot + 1 :] = float("-inf")  # where nothing lies
        out = seen.view(asked.shape)
        if rest is None:
            torch.bmm(torch.softmax(scores, dim=-1), values, out=out)
            return
        shares = torch.softmax(torch.cat((scores, rest.scores), -1), dim=-1)
        torch.bmm(shares[..., :-1], values, out=out)
        out.addcmul_(shares[..., -1:], rest.values)
