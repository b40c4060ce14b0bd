"""Ways to look over a part of a context only, behind one interface, to be measured against each other.

Each sees `budget` tokens of the prompt, the same ones for all heads of a group, and everything that was
written behind it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
import torch.nn.functional as F

from inference.kv.archive import Archive
from inference.kv.buffers import Buffer
from inference.kv.recall import Rest, find
from inference.kv.recallable import Recall

SINKS = 16


class Method(Protocol):
    """For one layer at a time."""

    name: str

    def begin(self, keys: torch.Tensor, values: torch.Tensor, queries: torch.Tensor) -> None:
        """The prompt's keys and values (kv_heads, n, head_dim), and its newest queries (kv_heads, heads for
        each, w, head_dim), divided by the root of head_dim."""
        ...

    def seen(self, queries: torch.Tensor, budget: int) -> "Sight":
        """What each of `queries` (kv_heads, heads for each, t, head_dim) sees, `budget` tokens each."""
        ...


@dataclass(frozen=True, slots=True)
class Sight:
    """Which tokens of the prompt are seen, `mask` (kv_heads, t, n), bool, and what the rest adds: `scores`
    (kv_heads, heads for each, t, 1) and `values` (kv_heads, heads for each, t, head_dim)."""

    mask: torch.Tensor
    rest: Rest | None = None


def _highest(worth: torch.Tensor, budget: int) -> torch.Tensor:
    """The `budget` highest along the last axis, as a mask."""
    at = worth.topk(min(budget, worth.shape[-1]), dim=-1).indices
    return torch.zeros_like(worth, dtype=torch.bool).scatter_(-1, at, True)


class Window:
    """The first tokens and the newest: StreamingLLM (arXiv 2309.17453)."""

    name = "streaming_llm"

    def begin(self, keys: torch.Tensor, values: torch.Tensor, queries: torch.Tensor) -> None:
        self._tokens = keys.shape[1]

    def seen(self, queries: torch.Tensor, budget: int) -> Sight:
        places = torch.arange(self._tokens)
        mask = (places < SINKS) | (places >= self._tokens - (budget - SINKS))
        return Sight(mask.expand(queries.shape[0], queries.shape[2], -1))


class Snap:
    """What the end of the prompt looked at: SnapKV (arXiv 2404.14469). Chosen once; the last tokens stay."""

    name = "snapkv"
    _pool = 7

    def begin(self, keys: torch.Tensor, values: torch.Tensor, queries: torch.Tensor) -> None:
        heads, tokens, _ = keys.shape
        last = queries.shape[2]
        scores = queries.flatten(1, 2).float() @ keys[:, : tokens - last].float().transpose(1, 2)
        worth = torch.softmax(scores, dim=-1).sum(1)
        worth = F.max_pool1d(worth, self._pool, 1, self._pool // 2)
        self._worth = torch.cat((worth, torch.full((heads, last), float("inf"))), -1)

    def seen(self, queries: torch.Tensor, budget: int) -> Sight:
        return Sight(_highest(self._worth, budget)[:, None].expand(-1, queries.shape[2], -1))


class Quest:
    """Pages of 16 tokens by the most their keys could score: Quest (arXiv 2406.10774). For a group of heads a
    page is worth what it could be to the one that wants it most."""

    name = "quest"
    _page = 16

    def begin(self, keys: torch.Tensor, values: torch.Tensor, queries: torch.Tensor) -> None:
        heads, self._tokens, size = keys.shape
        beyond = -self._tokens % self._page
        pages = F.pad(keys.float(), (0, 0, 0, beyond), value=float("nan")).view(heads, -1, self._page, size)
        self._most = pages.nan_to_num(nan=float("-inf")).amax(2)
        self._least = pages.nan_to_num(nan=float("inf")).amin(2)

    def seen(self, queries: torch.Tensor, budget: int) -> Sight:
        q = queries.float()
        bound = torch.einsum("hetd,hpd->hetp", q.clamp(min=0), self._most)
        bound += torch.einsum("hetd,hpd->hetp", q.clamp(max=0), self._least)
        worth = torch.softmax(bound, dim=-1).amax(1)
        return Sight(_highest(worth.repeat_interleave(self._page, -1)[..., : self._tokens], budget))


class Recalled:
    """Ours: sinks, the newest, and what is recalled from an archive, by the very code that serves."""

    def __init__(self, how: Recall, name: str = "recall") -> None:
        self.name, self._how = name, how

    def begin(self, keys: torch.Tensor, values: torch.Tensor, queries: torch.Tensor) -> None:
        how = self._how
        heads, self._tokens, size = keys.shape
        last = self._tokens - how.keep
        self._archive = Archive(heads, size, last - how.sinks, keys.dtype, how.exact)
        own = slice(how.sinks, last)
        self._archive.add(how.sinks, keys[:, own], values[:, own], how.ratio_of(self._tokens), how.iterations)

    def seen(self, queries: torch.Tensor, budget: int) -> Sight:
        how, archive = self._how, self._archive
        mask = torch.zeros(queries.shape[0], queries.shape[2], self._tokens, dtype=torch.bool)
        mask[..., : how.sinks] = mask[..., self._tokens - how.keep :] = True
        room = min(archive.tokens, budget - how.sinks - how.keep)
        looked, estimate = how.looks_at(archive.tokens, room), how.estimates(archive.tokens, room)
        rests = []
        for step in range(queries.shape[2]):
            asked = queries[:, :, step].contiguous()
            scores = partial(archive.scores, asked)
            found = find(asked, archive.index, scores, looked, room, estimate=estimate)
            mask[:, step].scatter_(1, archive.positions.gather(1, found.places).long(), True)
            rests += [] if found.rest is None else [found.rest]
        if not rests:
            return Sight(mask)
        scores_of, values_of = ([getattr(one, name) for one in rests] for name in ("scores", "values"))
        return Sight(mask, Rest(torch.stack(scores_of, 2), torch.stack(values_of, 2)))


@dataclass(frozen=True, slots=True)
class Seen:
    """What a pass looked at in one layer: all `scores` q·k (kv_heads, heads for each, t, n), -inf for later
    tokens, and the `mask` (kv_heads, t, prompt) of what was seen of the prompt."""

    layer: int
    scores: torch.Tensor
    mask: torch.Tensor


class Masked:
    """A plug that attends over what `methods`, one for each layer, see of the prompt that `buffer` holds; in
    the layers of `full` over everything. `watch` is told what was seen in the others."""

    def __init__(
        self,
        buffer: Buffer,
        methods: "list[Method]",
        budget: int,
        full: tuple[int, ...],
        watch: Callable[[Seen], None] | None = None,
    ) -> None:
        self._kv, self._prompt = buffer.kv, buffer.length
        self._methods, self._budget, self._full, self._watch = methods, budget, full, watch

    nbytes = 0

    @property
    def in_buffer(self) -> int:
        return self._kv.shape[0]

    def make_ready(self, total: int) -> None:
        """Everything is in the buffer."""

    def go_on(self, length: int) -> bool:
        return length >= self._prompt

    def part(self, first: int, last: int) -> torch.Tensor:
        return self._kv[..., first:last, :]

    def recalls(self, layer: int) -> bool:
        return True

    def whole(self, layer: int, total: int) -> None:
        return None

    def attend(
        self, layer: int, place: int, queries: torch.Tensor, fresh: torch.Tensor, seen: torch.Tensor
    ) -> None:
        count = len(queries)
        self._kv[layer, :, :, place : place + count] = fresh.permute(1, 2, 0, 3)
        keys, values = self._kv[layer, :, :, : place + count].float()
        asked = queries.permute(1, 2, 0, 3)
        scores = torch.einsum("hetd,hnd->hetn", asked.float(), keys)
        places = torch.arange(place, place + count)
        scores.masked_fill_(torch.arange(place + count) > places[:, None], float("-inf"))
        rest = None
        if layer not in self._full:
            sight = self._methods[layer].seen(asked, self._budget)
            rest = sight.rest
            if self._watch is not None:
                self._watch(Seen(layer, scores, sight.mask))
            scores[..., : self._prompt].masked_fill_(~sight.mask[:, None], float("-inf"))
        if rest is None:
            out = torch.einsum("hetn,hnd->thed", torch.softmax(scores, dim=-1), values)
        else:
            shares = torch.softmax(torch.cat((scores, rest.scores.float()), -1), dim=-1)
            out = torch.einsum("hetn,hnd->thed", shares[..., :-1], values)
            out += (shares[..., -1:] * rest.values.float()).permute(2, 0, 1, 3)
        seen.copy_(out.reshape(count, -1))
