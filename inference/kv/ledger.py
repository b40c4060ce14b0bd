"""Who holds how many bytes of keys and values. Counts only: it never sees a tensor."""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inference.kv.shape import Shape

CONTEXTS = (4096, 16384, 32768)


class DoesNotFit(Exception):
    """The memory set aside can't take this request. `ever`: whether it could if nobody else asked."""

    def __init__(self, needed: int, free: int, ever: bool) -> None:
        super().__init__(f"The request needs {needed} bytes for keys and values; {free} are free.")
        self.needed, self.free, self.ever = needed, free, ever


@dataclass(frozen=True, slots=True)
class Live:
    """A request being computed: the tokens it has room for, and the bytes of that room."""

    request: str
    scope: str
    session: str
    tokens: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Holding:
    """What a session's pinned path holds in the store. `shared` is the part of `bytes` that other sessions
    pin too."""

    session: str
    scope: str
    tokens: int
    bytes: int
    shared: int

    @property
    def unique(self) -> int:
        return self.bytes - self.shared


@dataclass(frozen=True, slots=True)
class Need:
    """What a card without this store needs for `contexts` sessions of `tokens` tokens each."""

    tokens: int
    sessions: int
    bytes: int


class Ledger:
    """Bytes stored by scope, and bytes of requests on their way. `limit`, in bytes, bounds both together
    (None: no bound). Thread-safe."""

    def __init__(self, shape: Shape, limit: int | None = None) -> None:
        self.shape = shape
        self.limit = limit
        self._stored: dict[str, int] = {}
        self._live: dict[str, Live] = {}
        self._lock = threading.Lock()

    # -- the store's entries --

    def store(self, scope: str, tokens: int) -> None:
        """`tokens` more are held in `scope`."""
        with self._lock:
            self._stored[scope] = self._stored.get(scope, 0) + self.cost(tokens)

    def free(self, scope: str, tokens: int) -> None:
        """`tokens` fewer are held in `scope`. Raises ValueError for more than there were."""
        with self._lock:
            left = self._stored.get(scope, 0) - self.cost(tokens)
            if left < 0:
                raise ValueError(f"scope {scope!r} frees {-left} bytes that it never held")
            if left:
                self._stored[scope] = left
            else:
                self._stored.pop(scope, None)

    # -- the requests' --

    def open(self, request: str, scope: str, session: str, tokens: int) -> Live:
        """A request takes room for `tokens`. Raises DoesNotFit, and then it holds nothing."""
        live = Live(request, scope, session, tokens, self.cost(tokens))
        with self._lock:
            if self.limit is not None:
                free = self.limit - self._total()
                if live.bytes > free:
                    raise DoesNotFit(live.bytes, max(0, free), live.bytes <= self.limit)
            self._live[request] = live
        return live

    def close(self, request: str) -> None:
        """A request is over; closing it twice does nothing."""
        with self._lock:
            self._live.pop(request, None)

    # -- figures --

    def cost(self, tokens: int) -> int:
        """Bytes of `tokens` tokens: 2 × layers × kv_heads × head_dim × bytes of an item, each."""
        return tokens * self.shape.bytes_per_token

    @property
    def stored(self) -> int:
        """Bytes held for reuse."""
        with self._lock:
            return sum(self._stored.values())

    @property
    def live(self) -> int:
        """Bytes of the requests being computed."""
        with self._lock:
            return sum(one.bytes for one in self._live.values())

    @property
    def total(self) -> int:
        with self._lock:
            return self._total()

    def _total(self) -> int:
        return sum(self._stored.values()) + sum(one.bytes for one in self._live.values())

    def by_scope(self) -> dict[str, int]:
        """Stored bytes of each scope that holds any."""
        with self._lock:
            return dict(self._stored)

    def requests(self) -> list[Live]:
        """The requests on their way, the one that holds most first."""
        with self._lock:
            return sorted(self._live.values(), key=lambda one: -one.bytes)

    def needs(self, sessions: int = 1, contexts: Sequence[int] = CONTEXTS) -> list[Need]:
        """What `sessions` that share nothing need, at each of the `contexts` lengths."""
        return [Need(tokens, sessions, sessions * self.cost(tokens)) for tokens in contexts]


def killers(requests: Iterable[Live], share: float = 0.25) -> list[Live]:
    """The requests that each hold at least `share` of what all of them hold, the largest first; none when
    only one is there."""
    held = sorted(requests, key=lambda one: -one.bytes)
    whole = sum(one.bytes for one in held)
    return [one for one in held if one.bytes >= share * whole] if len(held) > 1 else []
