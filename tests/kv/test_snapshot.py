"""What a ledger tells of itself: the largest of each kind, in bounded space."""

import json

from inference.kv.budget import Budget
from inference.kv.ledger import ENDED_KNOWN, Ledger
from inference.kv.prefix_store import PrefixStore
from inference.kv.snapshot import TOP, RequestRow, ScopeRow, SessionRow, Snapshot, snapshot

from .tensors import PER_TOKEN, SHAPE, kv_of

ID = "0123456789abcdef0123456789abcdef0123"


def test_what_is_shared_and_what_is_not() -> None:
    ledger = Ledger(SHAPE, limit=1000 * PER_TOKEN)
    store = PrefixStore(SHAPE, Budget.fixed(100 * PER_TOKEN), ledger)
    for session, tokens in (("p", [1, 2, 3, 4]), ("q", [1, 2, 3, 5, 6]), ("", [7])):
        store.publish("s", tokens, kv_of(tokens, "s"), session)
    ledger.open("r#0", "other", "p", 64)
    taken = snapshot(ledger, store.holdings(), {"hit_ratio": 0.5})
    assert taken.totals["held_bytes"] == (3 + 1 + 2 + 1 + 64) * PER_TOKEN
    assert taken.totals["stored_bytes"] == store.real_bytes()
    assert taken.totals["stored_shared_bytes"] == 3 * PER_TOKEN
    assert taken.totals["stored_unique_bytes"] == 3 * PER_TOKEN
    assert taken.totals["stored_unpinned_bytes"] == PER_TOKEN
    assert (taken.totals["limit_bytes"], taken.totals["hit_ratio"]) == (1000 * PER_TOKEN, 0.5)
    assert taken.sessions == [
        SessionRow("q", "s", 5, 5 * PER_TOKEN, 3 * PER_TOKEN, 2 * PER_TOKEN),
        SessionRow("p", "s", 4, 4 * PER_TOKEN, 3 * PER_TOKEN, PER_TOKEN),
    ]
    assert taken.scopes == [
        ScopeRow("other", 0, 64 * PER_TOKEN, 0),
        ScopeRow("s", 7 * PER_TOKEN, 0, 2),
    ]


def test_running_requests_come_first_and_killers_are_named() -> None:
    ledger = Ledger(SHAPE)
    for name, tokens in (("over", 90), ("small", 1), ("large", 9)):
        ledger.open(name, "s", "p", tokens)
    ledger.close("over")
    assert snapshot(ledger).requests == [
        RequestRow("large", "p", "s", 9, 9 * PER_TOKEN, running=True, killer=True),
        RequestRow("small", "p", "s", 1, PER_TOKEN, running=True, killer=False),
        RequestRow("over", "p", "s", 90, 90 * PER_TOKEN, running=False, killer=False),
    ]
    for number in range(ENDED_KNOWN):
        ledger.open(f"{number}", "s", "p", 1)
        ledger.close(f"{number}")
    assert "over" not in {one.request for one in ledger.ended()}


def test_it_stays_small_however_many_there_are() -> None:
    ledger = Ledger(SHAPE)
    store = PrefixStore(SHAPE, Budget.fixed(10**9), ledger)
    for number in range(150):
        tokens = [1, 2, *range(3, 4 + number)]
        store.publish(f"{ID}{number}", tokens, kv_of(tokens), f"{ID}-{number}")
        ledger.open(f"{ID}#{number}", f"{ID}{number}", f"{ID}-{number}", number + 1)
    taken = snapshot(ledger, store.holdings())
    assert [len(rows) for rows in (taken.scopes, taken.sessions, taken.requests)] == [TOP] * 3
    assert taken.sessions[0].session == f"{ID}-149" and taken.requests[0].request == f"{ID}#149"
    assert taken.totals["sessions"] == 150
    assert len(json.dumps(taken.as_dict())) < 20_000


def test_an_engine_without_books() -> None:
    assert Snapshot().as_dict() == {"totals": {}, "scopes": (), "sessions": (), "requests": ()}
