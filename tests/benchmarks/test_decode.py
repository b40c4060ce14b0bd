"""Nobody whose speed is compared has a prompt from the round before."""

import json
from pathlib import Path

import pytest

from benchmarks.decode import Embedded, turns
from benchmarks.vllm_decode import Vllm
from tests.engines.conftest import model_dir  # noqa: F401  (a fixture)
from tests.engines.faulty_server import Exchange, faulty_server


def test_the_torch_engine_reads_its_prompts_in_every_round(model_dir: Path) -> None:  # noqa: F811
    embedded = Embedded(model_dir, tokens=2)
    assert [embedded.write(2)[0] for _ in range(2)] == [4, 4]
    asked = embedded._engine.kv_report()
    assert asked["stored_asked"] > 0 and asked["stored_found"] == 0


def test_vllm_reads_its_prompts_in_every_round() -> None:
    def answers(cached: int) -> object:
        usage = {"completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": cached}}
        return lambda exchange: Exchange.refuse(exchange, 200, json.dumps({"usage": usage}))

    with faulty_server() as server:
        server.pages["/v1/models"] = {"data": [{"id": "served"}]}
        server.faults = [answers(0), answers(0), answers(16)]  # type: ignore[list-item]
        vllm = Vllm(server.url, 3, turns)
        assert [vllm.read(0), vllm.read(0)] == [3, 3]
        first, second = (asked.body for asked in server.asked)
        assert first.pop("cache_salt") != second.pop("cache_salt") and first == second
        with pytest.raises(RuntimeError, match="not read the whole prompt"):
            vllm.read(0)
