"""Who holds how many bytes of keys and values. Counts only: it never sees a tensor."""

import logging
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from inference.kv.shape import Shape

log = logging.getLogger(__name__)

CONTEXTS = (4096, 16384, 32768)

# Requests that ended last and are still known.
ENDED_KNOWN = 200


class DoesNotFit(Exception):
    """The memory set aside can't take this request: `missing` bytes have to go first. `ever`: whether it
    could if nobody else asked."""

    def __init__(self, needed: int, free: int, ever: bool) -> None:
        super().__init__(f"The request needs {needed} bytes for keys and values; {max(0, free)} are free.")
        self.missing, self.ever = needed - free, ever


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
    pin too; `portion` counts each of those as its bytes divided by the sessions that pin it, so that the
    portions of all sessions add up to the bytes that are pinned."""

    session: str
    scope: str
    tokens: int
    bytes: int
    shared: int
    portion: float

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
    """Bytes stored by scope, bytes of requests on their way, and `idle` ones of buffers that wait for the
    next request. `limit`, in bytes, bounds them all together (None: no bound). Thread-safe."""

    def __init__(self, shape: Shape, limit: int | None = None) -> None:
        self.shape = shape
        self.limit = limit
        self.idle = 0
        self.tight = 0
        self.refused = 0
        self._stored: dict[str, int] = {}
        self._live: dict[str, Live] = {}
        self._ended: deque[Live] = deque(maxlen=ENDED_KNOWN)
        self._lock = threading.Lock()

    # -- the store's entries --

    def store(self, scope: str, nbytes: int) -> None:
        """`nbytes` more are held in `scope`."""
        with self._lock:
            self._stored[scope] = self._stored.get(scope, 0) + nbytes

    def free(self, scope: str, nbytes: int) -> None:
        """`nbytes` fewer are held in `scope`. Raises ValueError for more than there were."""
        with self._lock:
            left = self._stored.get(scope, 0) - nbytes
            if left < 0:
                raise ValueError(f"scope {scope!r} frees {-left} bytes that it never held")
            if left:
                self._stored[scope] = left
            else:
                self._stored.pop(scope, None)

    # -- the requests' --

    def open(self, request: str, scope: str, session: str, tokens: int) -> Live:
        """A request takes room for `tokens`. Raises DoesNotFit, and then it holds nothing. Warns, and counts
        in `tight`, when another one as large would find no room, were all evicted that can be."""
        live = Live(request, scope, session, tokens, self.cost(tokens))
        with self._lock:
            if self.limit is not None:
                free = self.limit - self._total()
                if live.bytes > free:
                    self.refused += 1
                    raise DoesNotFit(live.bytes, free, live.bytes <= self.limit)
            self._live[request] = live
            room = self._room()
            self.tight += (short := room is not None and room < live.bytes)
        if short:
            held = ", ".join(f"{one.request} {one.bytes}" for one in killers(self.requests()))
            log.warning(
                "%d bytes are left for keys and values of requests, and request %s took %d; most hold: %s",
                room,
                request,
                live.bytes,
                held or request,
            )
        return live

    @property
    def room(self) -> int | None:
        """Bytes that requests could still take if all were evicted that can be; None: no bound."""
        with self._lock:
            return self._room()

    def _room(self) -> int | None:
        if self.limit is None:
            return None
        return max(0, self.limit - sum(one.bytes for one in self._live.values()))

    def resize(self, request: str, nbytes: int) -> None:
        """A request holds `nbytes` now; one that is over holds none."""
        with self._lock:
            if (live := self._live.get(request)) is not None:
                self._live[request] = replace(live, bytes=nbytes)

    def close(self, request: str) -> None:
        """A request is over; closing it twice does nothing."""
        with self._lock:
            if (live := self._live.pop(request, None)) is not None:
                self._ended.append(live)

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
        return sum(self._parts())

    def _parts(self) -> tuple[int, int, int]:
        return sum(self._stored.values()), sum(one.bytes for one in self._live.values()), self.idle

    def parts(self) -> tuple[int, int, int]:
        """Bytes stored, live and idle, of one moment: together the total."""
        with self._lock:
            return self._parts()

    def by_scope(self) -> dict[str, int]:
        """Stored bytes of each scope that holds any."""
        with self._lock:
            return dict(self._stored)

    def requests(self) -> list[Live]:
        """The requests on their way, the one that holds most first."""
        with self._lock:
            return sorted(self._live.values(), key=lambda one: -one.bytes)

    def ended(self) -> list[Live]:
        """The last ENDED_KNOWN requests that are over, the one that held most first."""
        with self._lock:
            return sorted(self._ended, key=lambda one: -one.bytes)

    def needs(self, sessions: int = 1, contexts: Sequence[int] = CONTEXTS) -> list[Need]:
        """What `sessions` that share nothing need, at each of the `contexts` lengths."""
        return [Need(tokens, sessions, sessions * self.cost(tokens)) for tokens in contexts]


def killers(requests: Iterable[Live], share: float = 0.25) -> list[Live]:
    """The requests that each hold at least `share` of what all of them hold, the largest first; none when
    only one is there."""
    held = sorted(requests, key=lambda one: -one.bytes)
    whole = sum(one.bytes for one in held)
    return [one for one in held if one.bytes >= share * whole] if len(held) > 1 else []
