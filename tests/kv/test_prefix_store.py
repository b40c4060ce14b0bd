import threading
from collections.abc import Sequence

import pytest
import torch

from inference.kv.budget import Budget
from inference.kv.prefix_store import HOT_HITS, Lease, PrefixStore

from .tensors import PER_TOKEN, SHAPE, buffer, kv_of


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def store_of(tokens: int, clock: Clock | None = None) -> PrefixStore:
    return PrefixStore(SHAPE, Budget.fixed(tokens * PER_TOKEN), clock=clock or Clock())


def put(store: PrefixStore, tokens: Sequence[int], scope: str = "s", session: str = "") -> int:
    return store.publish(scope, tokens, kv_of(tokens, scope), session)


def take(store: PrefixStore, tokens: Sequence[int], scope: str = "s") -> Lease:
    """Reads a prefix and checks that it is this prefix's, and nothing else was written."""
    into = buffer(tokens)
    lease = store.acquire(scope, tokens, into)
    assert torch.equal(into[..., : lease.length, :], kv_of(tokens[: lease.length], scope))
    assert into[..., lease.length :, :].isnan().all()
    return lease


def use(store: PrefixStore, tokens: Sequence[int], scope: str = "s") -> int:
    lease = take(store, tokens, scope)
    lease.release()
    return lease.length


def run(*parts: int) -> list[int]:
    return [token for part in parts for token in range(part, part + 10)]


def test_the_longest_common_prefix_is_found_at_any_token() -> None:
    store = store_of(1000)
    assert use(store, run(0)) == 0
    put(store, run(0, 100))
    for same in range(20):
        assert use(store, [*run(0, 100)[:same], 999, 998]) == same
    assert use(store, [*run(0, 100), 5, 6]) == 20


def test_at_least_one_token_is_left_to_compute() -> None:
    store = store_of(1000)
    put(store, run(0))
    assert use(store, run(0)) == 9
    assert use(store, run(0)[:1]) == 0
    assert use(store, []) == 0


def test_sequences_that_part_share_what_they_share() -> None:
    store = store_of(1000)
    assert put(store, run(0, 100)) == 20
    assert put(store, run(0, 200)) == 20
    assert put(store, run(0)[:5]) == 5
    assert store.ledger.stored == store.real_bytes() == 30 * PER_TOKEN
    assert use(store, [*run(0, 100), 1]) == use(store, [*run(0, 200), 1]) == 20


def test_scopes_never_see_each_other() -> None:
    store = store_of(1000)
    put(store, run(0, 100), "one")
    assert use(store, run(0, 100), "other") == 0
    put(store, run(0, 100), "other")
    assert use(store, run(0, 100), "one") == use(store, run(0, 100), "other") == 19
    assert store.ledger.by_scope() == {"one": 20 * PER_TOKEN, "other": 20 * PER_TOKEN}
    store.reset("one")
    assert store.match("one", run(0)) == 0 and store.match("other", run(0)) == 10
    assert store.ledger.by_scope() == {"other": 20 * PER_TOKEN}


def test_only_what_is_new_is_copied_and_nothing_beyond() -> None:
    store = store_of(1000)
    put(store, run(0))
    tokens = run(0, 100)
    kv = kv_of(tokens, "s", room=50)
    assert store.publish("s", tokens, kv) == 20
    assert store.real_bytes() == 20 * PER_TOKEN
    kv.zero_()  # the buffer is used again: what is stored stays
    assert use(store, [*tokens, 1]) == 20


@pytest.mark.parametrize("sizes", [(2, 2, 2, 5, 4), (1, 2, 2, 20, 4), (2, 2, 2, 20, 5)])
def test_a_tensor_that_does_not_fit_is_refused(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="keys and values of size"):
        store_of(1000).publish("s", run(0), torch.zeros(sizes))


# -- eviction --


def test_over_85_percent_at_least_20_percent_is_freed() -> None:
    store = store_of(100)
    for part in range(8):
        put(store, run(part * 100))
    assert store.ledger.stored == 80 * PER_TOKEN and store.evicted == 0
    put(store, run(900))
    # 90 would be over 85: 20 of 100 go, then 10 come.
    assert store.ledger.stored == store.real_bytes() == 70 * PER_TOKEN
    assert [store.match("s", run(part * 100)) for part in (0, 1, 2, 7, 9)] == [0, 0, 10, 10, 10]


def test_the_least_recently_used_leaf_goes_first() -> None:
    store = store_of(1000)
    for part in (100, 200, 300):
        put(store, run(0, part))
    use(store, [*run(0, 100), 1])
    assert store.evict(1) == 10 * PER_TOKEN
    assert store.match("s", run(0, 200)) == 10, "only the leaf, not the prefix others use"
    assert store.evict(1) == 10 * PER_TOKEN
    assert store.match("s", run(0, 300)) == 10 and store.match("s", run(0, 100)) == 20


def test_half_of_a_split_allocation_is_really_freed() -> None:
    store = store_of(1000)
    put(store, run(0, 100))
    put(store, run(0)[:7])
    use(store, [*run(0)[:7], 999])
    put(store, run(0)[:7], session="keeps")
    assert store.counts()["nodes"] == 2
    assert store.evict(1) == 13 * PER_TOKEN
    assert store.ledger.stored == store.real_bytes() == 7 * PER_TOKEN
    assert use(store, run(0)) == 7


def test_nothing_in_use_is_evicted() -> None:
    store = store_of(1000)
    put(store, run(0, 100))
    put(store, run(0, 200))
    lease = take(store, [*run(0, 100), 1])
    put(store, [*run(0, 100)[:15], 999])  # splits what is leased
    assert store.evict(10_000 * PER_TOKEN) == 11 * PER_TOKEN
    assert store.match("s", run(0, 100)) == 20
    lease.release()
    lease.release()
    store.evict(10_000 * PER_TOKEN)
    assert store.counts()["nodes"] == store.ledger.stored == store.real_bytes() == 0


def test_hot_entries_outlive_newer_ones_for_five_minutes(clock: Clock) -> None:
    store = store_of(1000, clock)
    put(store, run(0))
    for _ in range(HOT_HITS + 1):
        use(store, run(0))
    put(store, run(100))
    store.evict(1)
    assert (store.match("s", run(0)), store.match("s", run(100))) == (10, 0)
    clock.now += 301
    put(store, run(100))
    store.evict(1)
    assert (store.match("s", run(0)), store.match("s", run(100))) == (0, 10)


def test_a_hundred_hits_are_not_enough(clock: Clock) -> None:
    store = store_of(1000, clock)
    put(store, run(0))
    for _ in range(HOT_HITS):
        use(store, run(0))
    put(store, run(100))
    store.evict(1)
    assert store.match("s", run(0)) == 0


def test_frozen_sessions_go_first_and_live_tips_last() -> None:
    store = store_of(1000)
    put(store, run(0, 100), session="live")
    put(store, run(200))
    for _ in range(HOT_HITS + 1):
        use(store, run(200))
    put(store, run(300))
    put(store, run(0, 400), session="ends")
    assert store.end_session("ends") and not store.end_session("ends")
    order = []
    while store.evict(1):
        order.append([store.match("s", tokens) for tokens in (run(0, 100), run(200), run(300), run(0, 400))])
    assert order == [
        [20, 10, 10, 10],  # the frozen session's own part; the prefix is the live one's too
        [20, 10, 0, 10],  # then what nobody is at the end of, though it's newer
        [20, 0, 0, 10],  # then the hot one
        [10, 0, 0, 10],  # the live session's tip, and then what is its tip now
        [0, 0, 0, 0],
    ]


def test_what_a_frozen_session_left_thaws_when_it_is_used() -> None:
    store = store_of(1000)
    put(store, run(0), session="ends")
    store.end_session("ends")
    put(store, run(100))
    use(store, run(0))
    store.evict(1)
    assert (store.match("s", run(0)), store.match("s", run(100))) == (10, 0)


def test_sessions_that_never_say_goodbye_are_swept(clock: Clock) -> None:
    store = store_of(1000, clock)
    put(store, run(0), session="silent")
    clock.now += 100
    put(store, run(100), session="talks")
    assert store.sweep(3600) == 0
    assert store.sweep(50) == 1
    assert [one.session for one in store.holdings()] == ["talks"]
    store.evict(1)
    assert store.match("s", run(0)) == 0


def test_more_than_the_budget_is_refused_and_nothing_half_is_kept() -> None:
    store = store_of(15)
    assert put(store, run(0, 100)) == 0
    assert (store.counts()["nodes"], store.refused, store.ledger.stored) == (0, 1, 0)
    lease_on = put(store, run(0)) and take(store, [*run(0), 1])
    assert put(store, run(500)) == 0, "what is there is in use"
    assert lease_on and store.match("s", run(0)) == 10


def test_a_session_that_outgrew_the_budget_still_has_its_place() -> None:
    store = store_of(20)
    put(store, run(0), session="a")
    assert put(store, run(0, 100, 200), session="a") == 10
    assert store.holdings()[0].tokens == 10


def test_reset_forgets_what_is_in_use_too() -> None:
    store = store_of(1000)
    put(store, run(0), session="a")
    lease = take(store, [*run(0), 1])
    store.reset()
    assert store.ledger.stored == store.real_bytes() == 0 and store.match("s", run(0)) == 0
    put(store, run(0))
    lease.release()
    assert store.evict(1) == 10 * PER_TOKEN, "the old lease holds nothing of the new"


# -- figures --


def test_what_sessions_hold_and_share() -> None:
    store = store_of(1000)
    put(store, run(0, 100), session="a")
    put(store, run(0, 200, 300), session="b")
    a, b = sorted(store.holdings(), key=lambda one: one.session)
    assert (a.tokens, a.bytes, a.shared, a.unique) == (20, 20 * PER_TOKEN, 10 * PER_TOKEN, 10 * PER_TOKEN)
    assert (b.tokens, b.unique) == (30, 20 * PER_TOKEN)
    put(store, run(500), session="a")  # a branch: the old one is nobody's now
    b, a = store.holdings()
    assert (b.shared, a.tokens) == (0, 10)


# -- the budget --


def test_the_budget_follows_the_hit_ratio_with_patience() -> None:
    budget = Budget(1000, 500, 2000)

    def window(found: int) -> int:
        for _ in range(64):
            budget.observe(found, 100)
        return budget.limit

    assert window(20) == 1000, "one window moves nothing"
    assert window(45) == 1000 and window(20) == 1000, "nor do two that aren't in a row"
    assert window(20) == 800
    assert [window(61) for _ in range(4)] == [800, 1000, 1000, 1250]
    assert [window(61) for _ in range(8)][-1] == 2000
    assert [window(0) for _ in range(20)][-1] == 500


def test_a_budget_that_shrinks_makes_the_store_shrink() -> None:
    store = PrefixStore(SHAPE, Budget(100 * PER_TOKEN, 50 * PER_TOKEN, 100 * PER_TOKEN), clock=Clock())
    for part in range(8):
        put(store, run(part * 100))
    for _ in range(128 * 4):
        assert use(store, run(5000)) == 0
    assert store.limit == 50 * PER_TOKEN
    assert store.ledger.stored == store.real_bytes() <= store.limit


@pytest.mark.parametrize("figures", [(0, 0, 0), (10, 20, 30), (40, 20, 30)])
def test_bounds_that_make_no_budget(figures: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="floor <= limit <= ceiling"):
        Budget(*figures)


# -- threads --


def test_threads_share_a_store() -> None:
    store = PrefixStore(SHAPE, Budget.fixed(120 * PER_TOKEN))
    wrong: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for n in range(60):
                tokens = run(0, 100 * ((seed + n) % 3), 1000 + 10 * ((seed * n) % 7))
                lease = take(store, tokens, f"scope {n % 2}")
                put(store, tokens, f"scope {n % 2}", f"session {seed}")
                assert store.match(f"scope {n % 2}", tokens) >= lease.length
                lease.release()
        except BaseException as problem:
            wrong.append(problem)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert store.ledger.stored == store.real_bytes() <= store.limit
