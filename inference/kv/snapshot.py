"""A ledger at one moment, small enough to be sent along every few seconds."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from inference.kv.ledger import Holding, Ledger, Live, killers

# Rows of each table: with ids of 40 characters, a snapshot is some 12 kB of JSON.
TOP = 20


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """Bytes kept for reuse and of running requests, and how many sessions may come back."""

    scope: str
    stored_bytes: int
    live_bytes: int
    sessions: int


@dataclass(frozen=True, slots=True)
class SessionRow:
    """What a session would hold by itself, and the parts of it that other sessions pin too and that none
    does. Known by its id only."""

    session: str
    scope: str
    tokens: int
    bytes: int
    shared_bytes: int
    unique_bytes: int


@dataclass(frozen=True, slots=True)
class RequestRow:
    """The tokens that a request has (or, no longer `running`, had) room for. `killer`: see `killers`."""

    request: str
    session: str
    scope: str
    tokens: int
    bytes: int
    running: bool
    killer: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Figures by name, and the TOP rows of each table, the largest first; of requests, running ones come
    before those that ended lately. An engine that keeps no such books gives what figures it has."""

    totals: Mapping[str, int | float] = field(default_factory=dict)
    scopes: Sequence[ScopeRow] = ()
    sessions: Sequence[SessionRow] = ()
    requests: Sequence[RequestRow] = ()

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def snapshot(
    ledger: Ledger, holdings: Sequence[Holding] = (), more: Mapping[str, int | float] | None = None
) -> Snapshot:
    """Of `ledger` and of what sessions pin; `more` are totals that neither of them knows."""
    stored, live, idle = ledger.parts()
    running = ledger.requests()
    unique = sum(one.unique for one in holdings)
    pinned = round(sum(one.portion for one in holdings))
    totals: dict[str, int | float] = {
        "held_bytes": stored + live + idle,
        "stored_bytes": stored,
        "stored_shared_bytes": max(0, pinned - unique),
        "stored_unique_bytes": unique,
        "stored_unpinned_bytes": max(0, stored - pinned),
        "live_bytes": live,
        "idle_bytes": idle,
        "live_sequences": len(running),
        "sessions": len(holdings),
        "sessions_if_unshared_bytes": sum(one.bytes for one in holdings),
        "bytes_per_token": ledger.shape.bytes_per_token,
        "requests_tight": ledger.tight,
        "requests_refused": ledger.refused,
    }
    if ledger.limit is not None:
        totals["limit_bytes"] = ledger.limit
    return Snapshot(
        totals | dict(more or {}),
        _scopes(ledger.by_scope(), running, holdings),
        [_session(one) for one in holdings[:TOP]],
        _requests(running, ledger.ended()),
    )


def _scopes(
    stored: Mapping[str, int], running: Iterable[Live], holdings: Iterable[Holding]
) -> list[ScopeRow]:
    live: Counter[str] = Counter()
    for one in running:
        live[one.scope] += one.bytes
    sessions = Counter(one.scope for one in holdings)
    rows = [
        ScopeRow(scope, stored.get(scope, 0), live[scope], sessions[scope])
        for scope in {*stored, *live, *sessions}
    ]
    return sorted(rows, key=lambda row: (-row.stored_bytes - row.live_bytes, row.scope))[:TOP]


def _session(held: Holding) -> SessionRow:
    return SessionRow(held.session, held.scope, held.tokens, held.bytes, held.shared, held.unique)


def _requests(running: Sequence[Live], ended: Sequence[Live]) -> list[RequestRow]:
    killing = {one.request for one in killers(running)}
    rows = [
        RequestRow(
            one.request, one.session, one.scope, one.tokens, one.bytes, now, now and one.request in killing
        )
        for some, now in ((running, True), (ended, False))
        for one in some
    ]
    return rows[:TOP]
