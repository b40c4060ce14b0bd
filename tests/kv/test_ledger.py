"""The ledger against the tensors, after any sequence of what can happen to a store."""

from typing import Any

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from inference.kv.budget import Budget
from inference.kv.cold import Cold, cold_bytes
from inference.kv.ledger import DoesNotFit, Ledger, killers
from inference.kv.prefix_store import Lease, PrefixStore
from inference.kv.shape import Shape
from inference.kv.snapshot import snapshot

from .tensors import PER_TOKEN, SHAPE, buffer, kv_of

# Few tokens and short runs: sequences meet, part and end inside each other all the time.
TOKENS = st.lists(st.integers(0, 2), min_size=1, max_size=12)
SCOPES = st.sampled_from(["a", "b"])
SESSIONS = st.sampled_from(["", "p", "q", "r"])


class StoreMachine(RuleBasedStateMachine):
    leases: Bundle[tuple[str, list[int], Lease]] = Bundle("leases")

    cold = False

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        budget = Budget(40 * PER_TOKEN, 20 * PER_TOKEN, 60 * PER_TOKEN)
        self.store = PrefixStore(SHAPE, budget, clock=lambda: self.now, cold=self.cold)
        self.held: list[tuple[str, list[int]]] = []

    @rule(scope=SCOPES, tokens=TOKENS, session=SESSIONS, room=st.integers(0, 3))
    def publish(self, scope: str, tokens: list[int], session: str, room: int) -> None:
        self.now += 1
        held = self.store.publish(scope, tokens, kv_of(tokens, scope, room), session)
        assert held == self.store.match(scope, tokens) <= len(tokens)

    @rule(target=leases, scope=SCOPES, tokens=TOKENS)
    def acquire(self, scope: str, tokens: list[int]) -> tuple[str, list[int], Lease]:
        self.now += 1
        into = buffer(tokens)
        lease = self.store.acquire(scope, tokens, into)
        assert lease.length < len(tokens)
        same = near if self.cold else torch.equal
        assert same(into[..., : lease.length, :], kv_of(tokens[: lease.length], scope))
        assert into[..., lease.length :, :].isnan().all()
        self.held.append((scope, tokens[: lease.length]))
        return scope, tokens[: lease.length], lease

    @rule(lease=consumes(leases))
    def release(self, lease: tuple[str, list[int], Lease]) -> None:
        lease[2].release()
        if lease[:2] in self.held:  # not when all was forgotten in between
            self.held.remove(lease[:2])

    @rule(tokens=st.integers(1, 50))
    def evict(self, tokens: int) -> None:
        before = self.store.ledger.stored
        freed = self.store.evict(tokens * PER_TOKEN)
        assert self.store.ledger.stored == before - freed

    @rule(session=SESSIONS)
    def end_session(self, session: str) -> None:
        self.store.end_session(session)

    @rule()
    def sweep(self) -> None:
        self.store.sweep(5)

    @rule(scope=st.sampled_from(["a", "b", None]))
    def reset(self, scope: str | None) -> None:
        self.store.reset(scope)
        self.held = [one for one in self.held if scope not in (None, one[0])]

    @invariant()
    def the_ledger_is_what_torch_holds(self) -> None:
        ledger = self.store.ledger
        assert ledger.total == ledger.stored == self.store.real_bytes()
        assert self.cold or ledger.stored == self.store.counts()["tokens"] * PER_TOKEN
        assert sum(ledger.by_scope().values()) == ledger.stored

    @invariant()
    def figures_counted_along_are_those_of_the_tree(self) -> None:
        nodes = [node for _, node in self.store._nodes()]
        counts = self.store.counts()
        assert counts["nodes"] == len(nodes)
        assert counts["tokens"] == sum(len(node.tokens) for node in nodes)
        assert 0 <= counts["found"] <= counts["asked"]

    @invariant()
    def the_snapshot_adds_up(self) -> None:
        pins: dict[Any, int] = {}
        for known in self.store._sessions.values():
            for node in known.tip.path():
                pins[node] = pins.get(node, 0) + 1
        totals = snapshot(self.store.ledger, self.store.holdings()).totals
        shared = sum(node.nbytes for node, count in pins.items() if count > 1)
        unique = sum(node.nbytes for node, count in pins.items() if count == 1)
        assert (totals["stored_shared_bytes"], totals["stored_unique_bytes"]) == (shared, unique)
        assert totals["stored_unpinned_bytes"] == self.store.real_bytes() - shared - unique
        assert totals["held_bytes"] == self.store.real_bytes()

    @invariant()
    def the_budget_holds(self) -> None:
        locked = sum(len(tokens) for _, tokens in self.held)
        most = max(self.store.limit, 60 * PER_TOKEN if locked else 0)
        if self.cold:  # where a cold node parts, the steps of its keys are held twice
            most += self.store.counts()["nodes"] * cold_bytes(SHAPE.sizes(0))
        assert self.store.ledger.stored <= most

    @invariant()
    def what_is_in_use_is_there(self) -> None:
        for scope, tokens in self.held:
            assert self.store.match(scope, tokens) == len(tokens)

    @invariant()
    def the_tree_is_sound(self) -> None:
        pins: dict[Any, int] = {}
        for session, known in self.store._sessions.items():
            assert session in known.tip.tips
            for node in known.tip.path():
                pins[node] = pins.get(node, 0) + 1
        for _, node in self.store._nodes():
            assert node.tokens and node.parent is not None and node.kv is not None
            assert node.parent.children[node.tokens[0]] is node
            if isinstance(node.kv, Cold):
                assert node.nbytes == cold_bytes(SHAPE.sizes(len(node.tokens)))
            else:
                assert node.kv.shape == SHAPE.sizes(len(node.tokens))
            assert node.pins == pins.get(node, 0)
            assert node.locks <= node.parent.locks or node.parent.parent is None
            assert all(self.store._sessions[one].tip is node for one in node.tips)

    def teardown(self) -> None:
        for session in "pqr":
            self.store.end_session(session)
        assert self.store.holdings() == []


StoreMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestTheStore = StoreMachine.TestCase


class ColdStoreMachine(StoreMachine):
    cold = True


ColdStoreMachine.TestCase.settings = StoreMachine.TestCase.settings
TestTheColdStore = ColdStoreMachine.TestCase


def near(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.allclose(one, other, atol=0.006)


# -- the figures by themselves --


def test_bytes_per_token_of_the_model_that_comes_along(model_dir: Any) -> None:
    assert Shape.of_model(model_dir, "bfloat16").bytes_per_token == 2 * 30 * 3 * 64 * 2 == 23_040
    assert Shape.of_model(model_dir, "float32").bytes_per_token == 46_080


def test_shapes_from_configurations() -> None:
    plain = {"num_hidden_layers": 4, "num_attention_heads": 8, "hidden_size": 64}
    assert Shape.of_config(plain, "float16") == Shape(4, 8, 8, 2)
    assert Shape.of_config({**plain, "num_key_value_heads": 2, "head_dim": 16}, "float32") == Shape(
        4, 2, 16, 4
    )
    assert Shape.of_config({"text_config": {**plain, "head_dim": 128}}, "bfloat16") == Shape(4, 8, 128, 2)
    with pytest.raises(ValueError, match="num_hidden_layers"):
        Shape.of_config({"num_attention_heads": 8}, "float16")
    with pytest.raises(ValueError, match="int3"):
        Shape.of_config(plain, "int3")
    with pytest.raises(ValueError, match="at least 1"):
        Shape(0, 1, 1, 1)


def test_what_a_card_would_need() -> None:
    needs = Ledger(SHAPE).needs(sessions=3)
    assert [(one.tokens, one.bytes) for one in needs] == [
        (length, 3 * length * PER_TOKEN) for length in (4096, 16384, 32768)
    ]


def test_requests_and_the_one_that_does_not_fit() -> None:
    ledger = Ledger(SHAPE, limit=100 * PER_TOKEN)
    ledger.store("s", 10 * PER_TOKEN)
    ledger.open("small", "s", "", 15)
    ledger.open("large", "s", "p", 70)
    assert (ledger.live, ledger.total) == (85 * PER_TOKEN, 95 * PER_TOKEN)
    with pytest.raises(DoesNotFit) as later:
        ledger.open("next", "s", "", 6)
    assert later.value.ever and later.value.missing == PER_TOKEN
    with pytest.raises(DoesNotFit) as never:
        ledger.open("next", "s", "", 101)
    assert not never.value.ever
    assert [one.request for one in ledger.requests()] == ["large", "small"]
    assert [one.request for one in killers(ledger.requests())] == ["large"]
    ledger.close("large")
    ledger.close("large")
    assert killers(ledger.requests()) == []
    ledger.open("next", "s", "", 6)


def test_books_that_do_not_balance_are_an_error() -> None:
    ledger = Ledger(SHAPE)
    ledger.store("s", 3)
    with pytest.raises(ValueError, match="never held"):
        ledger.free("s", 4)
    ledger.free("s", 3)
    assert ledger.by_scope() == {}


def test_a_warning_comes_before_a_request_does_not_fit(caplog: pytest.LogCaptureFixture) -> None:
    ledger = Ledger(SHAPE, limit=100 * PER_TOKEN)
    ledger.store("s", 40 * PER_TOKEN)  # can be evicted: no reason to warn
    ledger.open("first", "s", "", 40)
    assert (ledger.room, ledger.tight, caplog.text) == (60 * PER_TOKEN, 0, "")
    ledger.free("s", 40 * PER_TOKEN)
    ledger.open("second", "s", "", 45)
    assert (ledger.room, ledger.tight, ledger.refused) == (15 * PER_TOKEN, 1, 0)
    assert "request second took" in caplog.text and "most hold: second" in caplog.text
    with pytest.raises(DoesNotFit):
        ledger.open("third", "s", "", 20)
    assert (ledger.tight, ledger.refused) == (1, 1)
    assert Ledger(SHAPE).room is None


def test_a_request_that_shrinks_leaves_room_for_others() -> None:
    ledger = Ledger(SHAPE, 10 * SHAPE.bytes_per_token)
    ledger.open("a", "s", "", 8)
    with pytest.raises(DoesNotFit):
        ledger.open("b", "s", "", 4)
    ledger.resize("a", 3 * SHAPE.bytes_per_token)
    ledger.open("b", "s", "", 4)
    assert ledger.live == 7 * SHAPE.bytes_per_token
    ledger.close("a")
    ledger.resize("a", 10**6)  # it is over
    assert ledger.live == 4 * SHAPE.bytes_per_token
