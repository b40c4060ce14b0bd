"""Which worker a session belongs to."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from inference.affinity import choose, ranked

SESSIONS = [f"session-{number}" for number in range(600)]
seats = st.sets(st.text(min_size=1, max_size=12), min_size=1, max_size=12)
loads = st.dictionaries(st.text(min_size=1, max_size=12), st.integers(0, 30), min_size=1, max_size=8)


@given(seats, st.text())
def test_everyone_comes_to_the_same_answer(seats: set[str], session: str) -> None:
    """In whatever order they heard of the workers, and whoever names one twice."""
    order = ranked(session, sorted(seats))
    assert order == ranked(session, [*sorted(seats, reverse=True), *seats])
    assert sorted(order) == sorted(seats)


@given(seats, st.text(), st.data())
def test_who_goes_leaves_the_order_of_the_others(seats: set[str], session: str, data: st.DataObject) -> None:
    """So only its own sessions move, each to its second choice; and whoever comes takes only what it wins."""
    gone = data.draw(st.sampled_from(sorted(seats)))
    before = ranked(session, seats)
    assert ranked(session, seats - {gone}) == [seat for seat in before if seat != gone]


def test_sessions_are_spread_evenly_and_few_move() -> None:
    four = [f"generate.generate-100-{number}@host" for number in range(4)]
    before = {session: ranked(session, four)[0] for session in SESSIONS}
    share = Counter(before.values())
    assert all(len(SESSIONS) / 4 * 0.7 < share[seat] < len(SESSIONS) / 4 * 1.3 for seat in four), share
    after = {session: ranked(session, [*four, "a fifth"])[0] for session in SESSIONS}
    moved = {session for session in SESSIONS if before[session] != after[session]}
    assert {after[session] for session in moved} == {"a fifth"}
    assert 0.1 < len(moved) / len(SESSIONS) < 0.3


@given(loads, st.text(), st.integers(1, 10))
def test_a_long_queue_is_passed_by(waiting: dict[str, int], session: str, long: int) -> None:
    chosen = choose(session, waiting, long)
    order = ranked(session, waiting)
    short = [seat for seat in order if waiting[seat] < long]
    if short:
        assert chosen == short[0]
    else:
        assert chosen is not None and waiting[chosen] == min(waiting.values())
        fewest = [seat for seat in order if waiting[seat] == waiting[chosen]]
        assert chosen == fewest[0]


def test_without_workers_there_is_no_choice() -> None:
    assert choose("session", {}, 4) is None
