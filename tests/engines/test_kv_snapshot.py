"""What the real engine says it holds, against the tensors that it holds."""

from pathlib import Path

import pytest

from inference.engines.base import Request
from inference.engines.torch import TorchEngine
from inference.kv.buffers import in_blocks

from .conftest import ask, system, user

RULES = system("You answer in one short sentence, politely, and never twice the same way.")
MIB = 2**20


@pytest.fixture(scope="module")
def keeping(model_dir: Path) -> TorchEngine:
    """One of its own: others' sessions would be counted too."""
    return TorchEngine(model_dir, window=1024, kv_budget=64 * MIB, kv_limit=256 * MIB)


def test_totals_are_the_tensors_bytes(keeping: TorchEngine) -> None:
    assert keeping._store
    for session, question in (("p", "Why is the sky blue?"), ("q", "Why is the sea salt?")):
        ask(keeping, RULES, user(question), scope="s", session=session, max_tokens=8)
    turns = [RULES, user("Count to fifty.")]
    stream = keeping.stream(Request("long", turns, cache_salt="s", session="r"))
    next(stream)
    running = keeping.kv_snapshot()
    (buffer,) = keeping._live.values()
    room = in_blocks(min(1024, keeping.count_tokens(turns) + 512))
    assert running.totals["live_bytes"] == buffer.kv[..., :room, :].nbytes
    assert 0 < running.totals["live_tokens"] <= buffer.length
    (first, *_) = running.requests
    assert first.request.startswith("long#") and (first.session, first.tokens) == ("r", room)
    assert first.running and not first.killer  # alone, it keeps nobody out
    stream.close()

    totals = keeping.kv_snapshot().totals
    idle = [one.buffer for one in keeping._buffers._idle]
    assert totals["stored_bytes"] == keeping._store.real_bytes() > 0
    assert totals["idle_bytes"] == sum(one.kv[..., : one.touched, :].nbytes for one in idle)
    assert totals["live_bytes"] == totals["live_tokens"] == 0
    assert totals["held_bytes"] == totals["stored_bytes"] + totals["idle_bytes"]
    assert totals["stored_tokens"] * totals["bytes_per_token"] == totals["stored_bytes"]
    parts = [totals[f"stored_{part}_bytes"] for part in ("shared", "unique", "unpinned")]
    assert sum(parts) == totals["stored_bytes"] and parts[0] > 0
    assert (totals["budget_bytes"], totals["limit_bytes"]) == (64 * MIB, 256 * MIB)
    assert 0 < totals["hit_ratio"] < 1


def test_sessions_share_what_they_begin_with(keeping: TorchEngine) -> None:
    keeping.reset()
    for session, question in (("p", "Name a fruit."), ("q", "Name a river in Europe.")):
        ask(keeping, RULES, user(question), scope="s", session=session, max_tokens=4)
    rows = {row.session: row for row in keeping.kv_snapshot().sessions}
    assert set(rows) == {"p", "q"}
    assert rows["p"].shared_bytes == rows["q"].shared_bytes > 0
    assert all(row.bytes == row.shared_bytes + row.unique_bytes for row in rows.values())
    keeping.end_session("q")
    (row,) = keeping.kv_snapshot().sessions
    assert (row.session, row.shared_bytes, row.unique_bytes) == ("p", 0, rows["p"].bytes)


def test_an_engine_that_keeps_nothing(model_dir: Path) -> None:
    engine = TorchEngine(model_dir, window=256, kv_budget=0)
    ask(engine, "Name a fruit.", max_tokens=2)
    taken = engine.kv_snapshot()
    assert taken.totals["stored_bytes"] == taken.totals["sessions"] == 0
    assert "budget_bytes" not in taken.totals and not taken.sessions
