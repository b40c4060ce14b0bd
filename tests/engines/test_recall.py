"""Long conversations whose keys and values are archived and recalled, with the real model."""

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from inference.engines.base import Finished, Request, Sampling
from inference.engines.torch import TorchEngine
from inference.kv.recallable import Recall, Recallable
from inference.understanding.turns import Turn

from .conftest import Reply, ask, assistant, system, user

NOTES = "".join(
    f"Note {number}: the boat number {number} lies at quay {number * 7 % 10} and belongs to person {number}. "
    for number in range(30)
)
LONG: list[Turn] = [system(NOTES), user("Tell me about the boats, at length.")]
WRITTEN = 24


@pytest.fixture(scope="module")
def recalling(model_dir: Path) -> Iterator[TorchEngine]:
    """Recalls everything from 256 tokens on, at a budget that fills several times in a test."""
    yield TorchEngine(model_dir, recall={"min_tokens": 256, "share": 0.0, "budget": 192})


def plugs(engine: TorchEngine) -> list[Recallable]:
    return list(engine._recalls._known)


def let_go(engine: TorchEngine) -> None:
    """Until the computing thread, too, refers to no sequence that is over."""
    until = time.monotonic() + 30
    while plugs(engine) and time.monotonic() < until:
        time.sleep(0.02)
    assert not plugs(engine)


def fresh(engine: TorchEngine, *turns: Turn | str, session: str = "", tokens: int = WRITTEN) -> Reply:
    engine.reset()
    let_go(engine)
    return ask(engine, *turns, max_tokens=tokens, session=session)


@pytest.fixture(scope="module")
def alone(recalling: TorchEngine) -> tuple[int, ...]:
    return fresh(recalling, *LONG, session="a").finished.output_token_ids


def test_with_room_for_the_whole_context_tokens_are_those_of_full_attention(exact: TorchEngine) -> None:
    model, tokenizer = exact._model, exact._tokenizer
    ids = tokenizer.encode(LONG)
    written = []
    for recalled in (False, True):
        buffer = model.new_buffer(1024)
        logits = model.step([(buffer, ids)])
        if recalled:
            buffer.plug = plug = Recallable(buffer, Recall(budget=1024, exact=True))
            plug.settle()
        answer = []
        for _ in range(90):  # enough for the window to be archived
            answer.append(int(logits[0].argmax()))
            logits = model.step([(buffer, [answer[-1]])])
        written.append(answer)
    assert written[0] == written[1]


def test_a_budget_that_holds_the_context_leaves_it_whole(model_dir: Path, engine: TorchEngine) -> None:
    roomy = TorchEngine(model_dir, recall={"min_tokens": 64, "share": 0.0, "budget": 1024})
    full, ours = fresh(engine, *LONG), fresh(roomy, *LONG)
    assert ours.finished.output_token_ids == full.finished.output_token_ids
    assert not plugs(roomy) and "recall_sequences" not in roomy.kv_report()


def test_a_long_one_is_recalled_and_told(recalling: TorchEngine, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        reply = fresh(recalling, *LONG, session="a")
    assert "archived" in caplog.text and reply.finished.completion_tokens == WRITTEN
    report = recalling.kv_report()
    assert report["recall_sequences"] == 1 and report["recall_clusters"] > 28
    assert report["recall_saved_bytes"] > 0 < report["recall_p50_us"]
    assert 0 < report["recall_decompressed"] < report["recall_tokens"]
    assert report["idle_bytes"] < recalling.ledger.cost(reply.finished.prompt_tokens + WRITTEN)


def test_a_short_one_stays_as_it_is(recalling: TorchEngine, engine: TorchEngine) -> None:
    ours, full = (fresh(one, "What is the capital of France?") for one in (recalling, engine))
    assert ours.finished.output_token_ids == full.finished.output_token_ids
    let_go(recalling)


def test_others_beside_it_change_nothing(
    recalling: TorchEngine, engine: TorchEngine, alone: tuple[int, ...]
) -> None:
    recalling.reset()
    short = [f"What is {n} plus {n}?" for n in range(3)]
    expected = [fresh(engine, one).finished.output_token_ids for one in short]
    found: dict[int, tuple[int, ...]] = {}

    def run(number: int, *turns: Turn | str) -> None:
        found[number] = ask(
            recalling, *turns, max_tokens=WRITTEN, session=f"{number}"
        ).finished.output_token_ids

    threads = [threading.Thread(target=run, args=(9, *LONG))]
    threads += [threading.Thread(target=run, args=(n, one)) for n, one in enumerate(short)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[9] == alone
    assert [found[n][: len(one)] for n, one in enumerate(expected)] == [one[:WRITTEN] for one in expected]


@pytest.mark.parametrize("forgotten", [False, True])
def test_the_next_turn_reads_only_what_is_new(recalling: TorchEngine, forgotten: bool) -> None:
    """From its own archive, or, when that is gone, from what was stored of it in int8."""
    first = fresh(recalling, *LONG, session="a")
    held = recalling.ledger.stored
    assert held < 0.6 * recalling.ledger.cost(first.finished.prompt_tokens)
    if forgotten:
        recalling._buffers.forget()
        let_go(recalling)
    later = [*LONG, assistant(first.text), user("And what about boat number 3?")]
    second = ask(recalling, *later, max_tokens=8, session="a")
    assert second.finished.cached_tokens >= first.finished.prompt_tokens + WRITTEN - 1 - 4
    assert len(plugs(recalling)) == 1


def test_room_is_given_back_while_it_is_written(recalling: TorchEngine) -> None:
    recalling.reset()
    stream = recalling.stream(Request("r", LONG, Sampling(max_tokens=60), session="a"))
    next(stream)
    before = recalling.ledger.live
    live = [recalling.ledger.live for _ in stream]
    assert min(live[:-1]) < 0.85 * before  # of 800 tokens; the more there are, the less is left
    assert recalling.ledger.live == 0


def test_one_that_is_stopped_leaves_the_others_archive_intact(
    recalling: TorchEngine, alone: tuple[int, ...]
) -> None:
    recalling.reset()
    kept = recalling.stream(Request("kept", LONG, Sampling(max_tokens=WRITTEN), session="a"))
    next(kept)
    other = recalling.stream(Request("other", [*LONG[:1], user("Which quays are there?")], session="b"))
    next(other)
    other.close()
    *_, last = kept
    assert isinstance(last, Finished) and last.output_token_ids == alone
    assert recalling.ledger.live == 0
    assert recalling.ledger.stored == recalling._store.real_bytes()


def test_a_branch_begins_where_it_parts(recalling: TorchEngine, alone: tuple[int, ...]) -> None:
    first = fresh(recalling, *LONG, session="a")
    branch = [*LONG[:1], user("Which boat lies at quay 7?")]
    ask(recalling, *branch, max_tokens=6, session="a")
    again = ask(recalling, *LONG, assistant(first.text), user("Thank you."), max_tokens=2, session="a")
    assert again.finished.cached_tokens > first.finished.prompt_tokens
    assert first.finished.output_token_ids == alone


def test_a_model_that_does_not_bear_int8_keeps_exact_archives(
    model_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("inference.kv.cold.stands", lambda kv, logits_behind: False)
    with caplog.at_level(logging.WARNING):
        engine = TorchEngine(model_dir, recall={"min_tokens": 256, "share": 0.0, "budget": 192})
    assert "kept as computed" in caplog.text
    assert ask(engine, *LONG, max_tokens=4).text
    assert plugs(engine)[0].how.exact
    assert isinstance(engine._store._roots[""].children[1].kv, torch.Tensor)


@pytest.mark.parametrize("options", [{"min_tokens": 1, "budget": 32}, {"min_tokens": -1}])
def test_options_that_make_no_sense_are_refused(model_dir: Path, options: dict[str, int]) -> None:
    with pytest.raises(ValueError):
        TorchEngine(model_dir, recall=options)
