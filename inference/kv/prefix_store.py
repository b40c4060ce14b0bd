"""Keys and values of token prefixes, for the next prompt that begins alike: a radix tree over token ids.

After SGLang's radix cache (Zheng et al., 2024): a namespace per scope, nodes that split where sequences part,
reference locks while in use, eviction of leaves. Here the nodes hold the tensors themselves.
"""

import heapq
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch

from inference.kv.budget import Budget
from inference.kv.buffers import agreeing
from inference.kv.cold import Cold, cold_bytes
from inference.kv.ledger import Holding, Ledger
from inference.kv.memory import packed
from inference.kv.shape import Shape

# Past EVICT_ABOVE of the budget at least EVICT_SHARE of it is freed at once: evicting a little at every
# publication would walk the leaves every time.
EVICT_ABOVE = 0.85
EVICT_SHARE = 0.20
# An entry with more hits than this, one of them in the last five minutes, is kept while others can go.
HOT_HITS = 100
HOT_SECONDS = 300.0

# The order in which leaves go.
FROZEN, PLAIN, HOT, TIP = range(4)

TOKEN_AXIS = 3
"""Tensors are (layers, 2, kv_heads, tokens, head_dim)."""


Part = Callable[[int, int], torch.Tensor | Cold]
"""Gives the keys and values from one position to another (left out)."""


class _Block:
    """One allocation, and the nodes whose tensors lie in it: more than one only after a split."""

    __slots__ = ("nodes",)

    def __init__(self, node: "_Node") -> None:
        self.nodes = {node}


@dataclass(slots=True, eq=False)
class _Node:
    """A run of tokens behind its parent's. The root of a scope has no tokens, no tensor and no parent."""

    tokens: tuple[int, ...]
    parent: "_Node | None" = None
    kv: torch.Tensor | Cold | None = None
    block: _Block | None = None
    children: dict[int, "_Node"] = field(default_factory=dict)
    locks: int = 0
    pins: int = 0
    tips: set[str] = field(default_factory=set)
    frozen: bool = False
    hits: int = 0
    hit_at: float = -HOT_SECONDS
    used_at: float = 0.0

    @property
    def nbytes(self) -> int:
        return self.kv.nbytes if self.kv is not None else 0

    def path(self) -> "Iterator[_Node]":
        """This node and those above it, the root left out."""
        node = self
        while node.parent is not None:
            yield node
            node = node.parent


@dataclass(slots=True)
class _Session:
    scope: str
    tip: _Node
    seen_at: float


class Lease:
    """A reused prefix of `length` tokens whose nodes aren't evicted until `release`, which may be called
    twice."""

    def __init__(self, store: "PrefixStore", node: _Node, length: int) -> None:
        self._store, self._node = store, node
        self.length = length

    def release(self) -> None:
        self._store._unlock(self)


class PrefixStore:
    """Holds tensors of `shape` in `budget` bytes, booked in `ledger`. Thread-safe; one lock, held while
    tensors are copied (4,000 tokens of SmolLM2-135M in bf16 are 92 MB). `clock` gives seconds. `cold`: under
    pressure the nodes used longest ago are kept in int8 before others are evicted."""

    def __init__(
        self,
        shape: Shape,
        budget: Budget,
        ledger: Ledger | None = None,
        clock: Callable[[], float] = time.monotonic,
        cold: bool = False,
    ) -> None:
        self.shape = shape
        self.ledger = ledger or Ledger(shape)
        self._budget = budget
        self._clock = clock
        self._roots: dict[str, _Node] = {}
        self._sessions: dict[str, _Session] = {}
        self._lock = threading.RLock()
        self._cold = cold
        self._node_count = self._token_count = 0  # counted along: the lock is no place to walk a large tree
        self.asked = self.found = 0
        self.evicted = 0
        self.cooled = 0
        self.refused = 0

    # -- reading --

    def acquire(self, scope: str, tokens: Sequence[int], into: torch.Tensor, *, held: int = 0) -> Lease:
        """The longest stored prefix of `tokens`, less the last one (a model has to compute at least one token
        to say what comes next), copied to the start of `into`, whose size is `shape.sizes(n)` for an n that
        takes it, and which has the first `held` already. The lease's nodes stay until it is released."""
        limit = max(0, len(tokens) - 1)
        with self._lock:
            node, length = self._longest(scope, tuple(tokens[:limit]))
            now = self._clock()
            place = length
            for one in node.path():
                one.locks += 1
                one.hits += 1
                one.hit_at = one.used_at = now
                one.frozen = False
            for one, start in reversed(_places(node)):
                assert one.kv is not None
                count = min(len(one.tokens), place - start)
                known = min(count, max(0, held - start))
                place_for = into[..., start + known : start + count, :]
                if isinstance(one.kv, Cold):
                    one.kv.write(known, count, place_for)
                else:
                    place_for.copy_(one.kv[..., known:count, :])
            self.asked += limit
            self.found += max(length, held)
            self._budget.observe(max(length, held), limit)
            self._fit()
            return Lease(self, node, length)

    def _unlock(self, lease: Lease) -> None:
        with self._lock:
            node, lease._node = lease._node, _Node(())
            for one in node.path():
                one.locks -= 1

    def match(self, scope: str, tokens: Sequence[int]) -> int:
        """How many leading tokens are stored; touches nothing."""
        with self._lock:
            return self._longest(scope, tuple(tokens))[1]

    def _longest(self, scope: str, tokens: tuple[int, ...]) -> tuple[_Node, int]:
        """The deepest node that `tokens` reach into, and how many of them are held down to there."""
        node, at = self._roots.get(scope) or _Node(()), 0
        while at < len(tokens) and (child := node.children.get(tokens[at])) is not None:
            same = agreeing(child.tokens, tokens[at : at + len(child.tokens)])
            node, at = child, at + same
            if same < len(child.tokens):
                break
        return node, at

    # -- writing --

    def publish(self, scope: str, tokens: Sequence[int], kv: torch.Tensor | Part, session: str = "") -> int:
        """Stores the keys and values of `tokens`, all of them computed: `kv` is (layers, 2, kv_heads, n,
        head_dim) with n ≥ len(tokens), from position 0, or gives those between two positions. Only what isn't
        held yet is copied, and kept in int8 if it is given so. `session` is now
        at the end of this path. Returns how many of the tokens are held afterwards: all, or, when the budget
        can't take the rest, those that were held before. Raises ValueError for a tensor that doesn't fit."""
        whole = tuple(tokens)
        part = self._part_of(kv, len(whole)) if isinstance(kv, torch.Tensor) else kv
        with self._lock:
            root = self._roots.setdefault(scope, _Node(()))
            node, held = self._longest(scope, whole)
            _lock_path(node, 1)
            fits = self._make_room(self.ledger.cost(len(whole) - held))
            _lock_path(node, -1)
            self._roots[scope] = root  # making room may have found it empty
            grows = held < len(whole) and fits
            if grows or session:  # otherwise nothing begins or ends in the middle of the node
                node = self._ending_at(scope, node, held)
            if grows:
                node = self._grow(scope, node, whole[held:], part(held, len(whole)))
                held = len(whole)
            self.refused += held < len(whole)
            now = self._clock()
            for one in node.path():
                one.used_at, one.frozen = now, False
            if session:
                self._move_tip(session, scope, node, now)
            self._drop_empty(scope)
            return held

    def _part_of(self, kv: torch.Tensor, tokens: int) -> Part:
        if kv.shape[TOKEN_AXIS] < tokens or kv.shape != self.shape.sizes(kv.shape[TOKEN_AXIS]):
            raise ValueError(f"keys and values of size {tuple(kv.shape)} for {tokens} tokens")
        return lambda first, last: kv[..., first:last, :]

    def _ending_at(self, scope: str, node: _Node, length: int) -> _Node:
        """The node whose tokens end `length` tokens below the root: `node`, or what splitting it gives."""
        beyond = sum(len(one.tokens) for one in node.path()) - length
        return self._split(scope, node, len(node.tokens) - beyond) if beyond else node

    def _grow(self, scope: str, parent: _Node, tokens: tuple[int, ...], kv: torch.Tensor | Cold) -> _Node:
        leaf = _Node(tokens, parent, packed(kv) if isinstance(kv, torch.Tensor) else kv)
        leaf.block = _Block(leaf)
        parent.children[tokens[0]] = leaf
        self._node_count += 1
        self._token_count += len(tokens)
        self.ledger.store(scope, leaf.nbytes)
        return leaf

    def _split(self, scope: str, node: _Node, at: int) -> _Node:
        """`node` keeps its tokens from `at` on, and everybody who refers to it; returns the new node above it
        with those before. Both lie in one allocation, so nothing is copied and no byte is added; but a cold
        one is copied, and the steps of its keys are held twice."""
        assert node.parent is not None and node.kv is not None and node.block is not None
        kv, count = node.kv, len(node.tokens)
        upper = _Node(
            node.tokens[:at],
            node.parent,
            kv.part(0, at) if isinstance(kv, Cold) else kv[..., :at, :],
            node.block,
            {node.tokens[at]: node},
            locks=node.locks,
            pins=node.pins,
            frozen=node.frozen,
            hits=node.hits,
            hit_at=node.hit_at,
            used_at=node.used_at,
        )
        self._node_count += 1
        node.parent.children[upper.tokens[0]] = upper
        node.parent, node.tokens = upper, node.tokens[at:]
        if isinstance(kv, Cold):
            node.kv = kv.part(at, count)
            upper.block = _Block(upper)
            self.ledger.store(scope, upper.nbytes + node.nbytes - kv.nbytes)
        else:
            node.kv = kv[..., at:, :]
            node.block.nodes.add(upper)
        return upper

    # -- making room --

    @property
    def limit(self) -> int:
        """The budget now, in bytes."""
        return self._budget.limit

    def _make_room(self, needed: int) -> bool:
        """Evicts as it must for `needed` more bytes; whether they fit now."""
        limit = self._budget.limit
        over = self.ledger.stored + needed - EVICT_ABOVE * limit
        if needed and over > 0:
            self._evict(max(over, EVICT_SHARE * limit))
        return self.ledger.stored + needed <= limit

    def _fit(self) -> None:
        """Evicts what a smaller budget has no room for."""
        if self.ledger.stored > self._budget.limit:
            self._make_room(1)

    def evict(self, goal: float) -> int:
        """Frees at least `goal` bytes if that many aren't locked; returns how many it freed."""
        with self._lock:
            return self._evict(goal)

    def _evict(self, goal: float) -> int:
        """Leaf by leaf: frozen ones, then the least recently used, then hot ones, then the tips of live
        sessions; a parent left without children joins the leaves. Where cold ones may be kept in int8, that
        is done before any goes that isn't frozen."""
        freed = self._evict_leaves(goal, FROZEN) if self._cold else 0
        if self._cold and freed < goal:
            freed += self._cool(goal - freed)
        return freed + self._evict_leaves(goal - freed, TIP)

    def _cool(self, goal: float) -> int:
        """Puts the nodes that were used longest ago in int8 until `goal` bytes are freed; returns how many
        were. Some that share an allocation free nothing until the last of them is done, so each gets its
        own."""
        warm = [
            (node.used_at, place, scope, node)
            for place, (scope, node) in enumerate(self._nodes())
            if isinstance(node.kv, torch.Tensor) and not node.locks
        ]
        freed = 0
        for _, _, scope, node in sorted(warm, key=lambda one: one[:2]):
            assert isinstance(node.kv, torch.Tensor)
            less = node.nbytes - cold_bytes(self.shape.sizes(len(node.tokens)))
            if freed >= goal or less <= 0:
                continue
            kv = node.kv
            self._leave_block(node)
            node.kv, node.block = Cold.of(kv), _Block(node)
            self.ledger.free(scope, less)
            freed += less
            self.cooled += 1
        return freed

    def _leave_block(self, node: _Node) -> None:
        """`node` lies in its allocation no more; the others would keep all of it alive, so they move."""
        assert node.block is not None
        for other in node.block.nodes - {node}:
            assert isinstance(other.kv, torch.Tensor)
            other.kv, other.block = packed(other.kv), _Block(other)

    def _evict_leaves(self, goal: float, most: int) -> int:
        """Those of rank `most` and below."""
        order = itertools.count()
        leaves = [
            (*rank, next(order), scope, leaf)
            for scope, leaf in self._leaves()
            if (rank := self._rank(leaf))[0] <= most
        ]
        heapq.heapify(leaves)
        freed = 0
        while leaves and freed < goal:
            *_, scope, leaf = heapq.heappop(leaves)
            parent = leaf.parent
            freed += self._remove(scope, leaf)
            self.evicted += 1
            if parent is None or parent.parent is None or parent.children or parent.locks:
                continue
            if (rank := self._rank(parent))[0] <= most:
                heapq.heappush(leaves, (*rank, next(order), scope, parent))
        for scope in list(self._roots):
            self._drop_empty(scope)
        return freed

    def _leaves(self) -> Iterator[tuple[str, _Node]]:
        for scope, node in self._nodes():
            if not node.children and not node.locks:
                yield scope, node

    def _rank(self, node: _Node) -> tuple[int, float]:
        if node.tips:
            return TIP, node.used_at
        if node.frozen:
            return FROZEN, node.used_at
        hot = node.hits > HOT_HITS and self._clock() - node.hit_at <= HOT_SECONDS
        return (HOT if hot else PLAIN), node.used_at

    def _remove(self, scope: str, leaf: _Node) -> int:
        """Takes a leaf out; sessions that ended there end at its parent now. Returns the bytes freed."""
        assert leaf.parent is not None and leaf.block is not None
        del leaf.parent.children[leaf.tokens[0]]
        for session in leaf.tips:
            self._sessions[session].tip = leaf.parent
            leaf.parent.tips.add(session)
        self._leave_block(leaf)
        freed = leaf.nbytes
        self._forget(leaf)
        self.ledger.free(scope, freed)
        return freed

    def _forget(self, node: _Node) -> None:
        node.kv = node.block = None
        self._node_count -= 1
        self._token_count -= len(node.tokens)

    def _drop_empty(self, scope: str) -> None:
        """Scopes come and go with versions: one that holds nothing is forgotten."""
        root = self._roots.get(scope)
        if root is not None and not root.children and not root.tips:
            del self._roots[scope]

    def reset(self, scope: str | None = None) -> None:
        """Forgets everything, or everything of one scope, what is in use too: a lease's tokens were copied
        when it was taken."""
        with self._lock:
            for name in [scope] if scope is not None else list(self._roots):
                root = self._roots.pop(name, None)
                for node in _below(root) if root else ():
                    self.ledger.free(name, node.nbytes)
                    self._forget(node)
            gone = [key for key, one in self._sessions.items() if scope in (None, one.scope)]
            for key in gone:
                del self._sessions[key]

    # -- sessions --

    def _move_tip(self, session: str, scope: str, node: _Node, now: float) -> None:
        self._unpin(session)
        for one in node.path():
            one.pins += 1
        node.tips.add(session)
        self._sessions[session] = _Session(scope, node, now)

    def _unpin(self, session: str) -> _Session | None:
        known = self._sessions.pop(session, None)
        if known is not None:
            known.tip.tips.discard(session)
            for one in known.tip.path():
                one.pins -= 1
        return known

    def end_session(self, session: str) -> bool:
        """Releases the session's pin: what no other live session pins goes first from now on. Whether the
        session was known."""
        with self._lock:
            known = self._unpin(session)
            if known is None:
                return False
            for one in known.tip.path():
                one.frozen = one.frozen or not one.pins
            self._drop_empty(known.scope)
            return True

    def sweep(self, idle_seconds: float) -> int:
        """Ends the sessions that published nothing for `idle_seconds`; returns how many."""
        with self._lock:
            before = self._clock() - idle_seconds
            idle = [key for key, one in self._sessions.items() if one.seen_at < before]
            return sum(self.end_session(key) for key in idle)

    # -- figures --

    def holdings(self) -> list[Holding]:
        """What each live session pins, the largest first. Nobody who reads or writes waits for all of it:
        the lock is held for one session at a time, so each is right by itself, and all together are while
        nothing changes."""
        with self._lock:
            sessions = list(self._sessions)
        found = [held for one in sessions if (held := self._holding(one)) is not None]
        return sorted(found, key=lambda one: -one.bytes)

    def _holding(self, session: str) -> Holding | None:
        """None for one that has ended."""
        with self._lock:
            known = self._sessions.get(session)
            if known is None:
                return None
            path = [(len(one.tokens), one.nbytes, one.pins) for one in known.tip.path()]
        return Holding(
            session,
            known.scope,
            tokens=sum(tokens for tokens, _, _ in path),
            bytes=sum(nbytes for _, nbytes, _ in path),
            shared=sum(nbytes for _, nbytes, pins in path if pins > 1),
            portion=sum(nbytes / pins for _, nbytes, pins in path),
        )

    def counts(self) -> dict[str, int]:
        """`nodes`, `tokens` and `sessions` held; of prompts' tokens those `asked` for and `found`, `evicted`,
        `cooled` and `refused` so far."""
        with self._lock:
            return {
                "nodes": self._node_count,
                "tokens": self._token_count,
                "sessions": len(self._sessions),
                "asked": self.asked,
                "found": self.found,
                "evicted": self.evicted,
                "cooled": self.cooled,
                "refused": self.refused,
            }

    def real_bytes(self) -> int:
        """Bytes of the distinct allocations that the tree refers to, asked of torch: what the ledger must
        say."""
        with self._lock:
            kept = (
                one.untyped_storage()
                for _, node in self._nodes()
                if node.kv is not None
                for one in (node.kv.tensors() if isinstance(node.kv, Cold) else [node.kv])
            )
            return sum({one.data_ptr(): one.nbytes() for one in kept}.values())

    def _nodes(self) -> Iterator[tuple[str, _Node]]:
        for scope, root in self._roots.items():
            for node in _below(root):
                yield scope, node


def _below(root: _Node) -> Iterator[_Node]:
    waiting = list(root.children.values())
    while waiting:
        node = waiting.pop()
        waiting.extend(node.children.values())
        yield node


def _places(node: _Node) -> list[tuple[_Node, int]]:
    """The nodes from `node` up, each with the position of its first token."""
    path = list(node.path())
    end, found = sum(len(one.tokens) for one in path), []
    for one in path:
        end -= len(one.tokens)
        found.append((one, end))
    return found


def _lock_path(node: _Node, by: int) -> None:
    for one in node.path():
        one.locks += by
