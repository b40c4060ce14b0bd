"""Where sequences are computed: room for their keys and values, kept warm for whoever goes on."""

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import torch

from inference.kv.cold import Cold
from inference.kv.ledger import Ledger
from inference.kv.memory import Mapping
from inference.kv.shape import Shape

# A token looks over all keys up to the end of its block of this many positions. A product over fewer or more
# of them may add up in another order: one token in fifty then came out with other bits.
BLOCK = 64

# Room is reserved in doublings from here, so that a conversation's next prompt fits where the last one is.
# What is reserved costs nothing until it is written.
LEAST_CAPACITY = 512

# Sequences side by side.
SLOTS = 8


def in_blocks(tokens: int) -> int:
    """`tokens`, rounded up to whole blocks."""
    return -(-tokens // BLOCK) * BLOCK


class Slab:
    """Room for `slots` sequences of up to `capacity` tokens side by side, so that one operation reaches all
    of them: `kv` is (layers, 2, slots, kv_heads, capacity, head_dim)."""

    __slots__ = ("_free", "_memory", "kv")

    def __init__(self, shape: Shape, dtype: torch.dtype, slots: int, capacity: int) -> None:
        layers, two, heads, _, size = shape.sizes(capacity)
        self._memory = Mapping((layers, two, slots, heads, capacity, size), dtype)
        self.kv = self._memory.tensor
        self._free = list(range(slots))

    @property
    def capacity(self) -> int:
        return self.kv.shape[4]

    @property
    def in_use(self) -> int:
        return self.kv.shape[2] - len(self._free)

    @property
    def full(self) -> bool:
        return not self._free

    def take(self) -> int:
        """The first free slot. Not thread-safe; `free_again` may come in between all the same."""
        slot = min(self._free)
        self._free.remove(slot)
        return slot

    def free_again(self, slot: int) -> None:
        """Nobody refers to the slot's buffer any more; its memory goes back to the system."""
        for part in self.kv[:, :, slot].flatten(0, 1):
            self._memory.give_back(part)
        self._free.append(slot)

    def give_back(self, layer: int, slot: int, first: int, end: int) -> None:
        """The memory of the positions `first` to `end` (left out) of a slot in one layer goes back to the
        system."""
        for kind in self.kv[layer, :, slot]:
            for head in kind:
                self._memory.give_back(head[first:end])


class Plug(Protocol):
    """What keeps most of a sequence elsewhere: see recallable.Recallable."""

    @property
    def nbytes(self) -> int: ...

    @property
    def in_buffer(self) -> int: ...

    def make_ready(self, total: int) -> None: ...

    def go_on(self, length: int) -> bool: ...

    def part(self, first: int, last: int) -> torch.Tensor | Cold: ...

    def recalls(self, layer: int) -> bool:
        """Whether `attend` is asked in this layer; otherwise all tokens are attended to."""
        ...

    def whole(self, layer: int, total: int) -> torch.Tensor | None: ...

    def attend(
        self, layer: int, place: int, queries: torch.Tensor, fresh: torch.Tensor, seen: torch.Tensor
    ) -> None:
        """n new tokens at `place` and on: takes their keys and values `fresh` (n, 2, kv_heads, head_dim) and
        puts what their `queries` (n, kv_heads, heads for each, head_dim), divided by the root of head_dim,
        see into `seen` (n, heads * head_dim)."""
        ...


class Buffer:
    """Room for the keys and values of one sequence: `kv` is (layers, 2, kv_heads, capacity, head_dim) with a
    capacity of whole blocks, of which `length` positions are filled. Memory is taken from the system as it
    fills, and stays taken: `touched` positions have. With a `plug` most of it is
    kept elsewhere; whoever moves or copies from there holds `guard`."""

    __slots__ = ("__weakref__", "_clean", "guard", "kv", "length", "plug", "slab", "slot", "touched")

    def __init__(self, slab: Slab, slot: int) -> None:
        self.slab, self.slot = slab, slot
        self.kv = slab.kv[:, :, slot]
        self.length = self.touched = self._clean = 0
        self.plug: Plug | None = None
        self.guard = threading.Lock()
        weakref.finalize(self, slab.free_again, slot).atexit = False

    @classmethod
    def new(cls, shape: Shape, dtype: torch.dtype, capacity: int) -> Self:
        """An empty one for at least `capacity` tokens, by itself."""
        slab = Slab(shape, dtype, 1, in_blocks(capacity))
        return cls(slab, slab.take())

    @property
    def capacity(self) -> int:
        return self.kv.shape[3]

    def go_on_from(self, length: int) -> None:
        """The first `length` positions are filled, and what stands behind them is of no use. One whose plug
        can't go on from there is empty then."""
        if self.plug is not None and not self.plug.go_on(length):
            for layer in range(len(self.kv)):
                self.release(layer, self.capacity)
            self.plug, length, self.touched = None, 0, 0
        self.length = self._clean = length
        self.touched = max(self.touched, in_blocks(length))

    def make_ready(self, total: int) -> None:
        """For tokens up to `total`: zeros from there to the end of its block, where they are read before
        anything is written. Times 0, what happens to lie there may be no number."""
        if self.plug is not None:
            self.plug.make_ready(total)
        end = in_blocks(total)
        if end > self._clean:
            if self.plug is None:
                self.kv[..., total:end, :] = 0
            else:
                layers = [layer for layer in range(len(self.kv)) if not self.plug.recalls(layer)]
                self.kv[layers, ..., total:end, :] = 0
            self._clean = end
            self.touched = max(self.touched, end)

    def release(self, layer: int, end: int) -> None:
        """The memory of the first `end` positions in one layer goes back to the system."""
        self.slab.give_back(layer, self.slot, 0, end)

    def trim(self, tokens: int) -> None:
        """The memory behind the first `tokens` positions, in whole blocks, goes back to the system."""
        end = in_blocks(tokens)
        if self.touched > end:
            for layer in range(len(self.kv)):
                self.slab.give_back(layer, self.slot, end, self.touched)
            self.touched = end

    def part(self, first: int, last: int) -> torch.Tensor | Cold:
        """The keys and values at positions `first` to `last` (left out), to be copied or kept while `guard`
        is held."""
        return self.kv[..., first:last, :] if self.plug is None else self.plug.part(first, last)

    def bytes_of(self, tokens: int) -> int:
        """What room for `tokens` takes."""
        layers = self.kv.shape[0]
        whole = self.kv[..., :1, :].numel() * self.kv.itemsize * tokens
        if self.plug is None:
            return whole
        return whole * self.plug.in_buffer // layers + self.plug.nbytes


@dataclass(eq=False, slots=True)
class _Idle:
    """A buffer nobody computes in, and the tokens whose keys and values it still holds."""

    buffer: Buffer
    scope: str
    tokens: list[int]


class Buffers:
    """Buffers of at most `positions` tokens each. Those given back are kept, up to `keep` bytes, which
    `ledger` knows as idle: a conversation that comes back finds its own as it left it, and anybody else
    memory that the system need not hand out again. Copying 4,000 tokens of SmolLM2-135M took 40 ms into such
    memory, and 250 into new. Thread-safe."""

    def __init__(self, ledger: Ledger, dtype: torch.dtype, positions: int, keep: int) -> None:
        self._ledger, self._dtype, self._positions = ledger, dtype, positions
        self._keep = keep
        self._slabs: list[Slab] = []
        self._idle: list[_Idle] = []  # the one given back last at the end
        self._lock = threading.Lock()

    def take(self, scope: str, prompt: Sequence[int], tokens: int) -> Buffer:
        """One with room for `tokens`. Its `length` says how many of the first of `prompt` it holds. No memory
        behind that room is taken from the system: whoever booked it has booked all there is."""
        with self._lock:
            found, held = self._best(scope, prompt, tokens)
            if found is not None:
                self._idle.remove(found)
                self._book()
        if found is None:
            return self._new(self._capacity(tokens))
        found.buffer.go_on_from(held)
        found.buffer.trim(tokens)
        return found.buffer

    def _new(self, capacity: int) -> Buffer:
        with self._lock:
            self._slabs = [slab for slab in self._slabs if slab.in_use]
            for slab in self._slabs:
                if slab.capacity == capacity and not slab.full:
                    return Buffer(slab, slab.take())
            slab = Slab(self._ledger.shape, self._dtype, SLOTS, capacity)
            self._slabs.append(slab)
            return Buffer(slab, slab.take())

    def _best(self, scope: str, prompt: Sequence[int], tokens: int) -> tuple[_Idle | None, int]:
        """One that holds the most of `prompt`, and little else; otherwise the one idle for longest, once as
        many are kept as may be."""
        large = [one for one in self._idle if one.buffer.capacity >= tokens]
        held = [agreeing(one.tokens, prompt) if one.scope == scope else 0 for one in large]
        own = [(n, place) for place, n in enumerate(held) if 2 * n > len(large[place].tokens)]
        if own:
            n, place = max(own)
            return large[place], n
        full = self._ledger.idle + self._ledger.cost(in_blocks(tokens)) > self._keep
        return (large[0], held[0]) if large and full else (None, 0)

    def _capacity(self, tokens: int) -> int:
        capacity = LEAST_CAPACITY
        while capacity < tokens:
            capacity *= 2
        return max(in_blocks(tokens), min(capacity, in_blocks(self._positions)))

    def give_back(self, buffer: Buffer, scope: str, tokens: Sequence[int]) -> None:
        """Nobody computes in `buffer` any more; it holds what belongs to `tokens`."""
        with self._lock:
            self._idle.append(_Idle(buffer, scope, list(tokens)))
            self._shrink(self._keep)

    def forget(self, keep: int = 0) -> None:
        """Lets go of those idle for longest, down to `keep` bytes."""
        with self._lock:
            self._shrink(keep)

    def _shrink(self, keep: int) -> None:
        while self._idle and self._book() > keep:
            del self._idle[0]
        self._book()

    def _book(self) -> int:
        self._ledger.idle = sum(one.buffer.bytes_of(one.buffer.touched) for one in self._idle)
        return self._ledger.idle


def agreeing(one: Sequence[int], other: Sequence[int]) -> int:
    """How many leading tokens are the same."""
    most = min(len(one), len(other))
    if one[:most] == other[:most]:
        return most
    return next(n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
