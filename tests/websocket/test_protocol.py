"""The frames as they are agreed on with clients: each type, each field."""

from typing import Any, get_args
from uuid import uuid4

import pytest
from pydantic import TypeAdapter

from chat import protocol

CLIENT = {
    "message.send": {"client_id", "conversation", "text", "parent"},
    "message.regenerate": {"client_id", "message"},
    "message.edit": {"client_id", "message", "text"},
    "generation.stop": {"generation", "seen"},
    "generation.resume": {"generation", "after"},
    "ping": set(),
}
SERVER = {
    "message.accepted": {"client_id", "conversation", "message", "reply", "generation"},
    "generation.snapshot": {"generation", "text", "seq"},
    "generation.delta": {"generation", "seq", "text"},
    "generation.done": {"generation", "status", "served_by", "entry", "usage", "timings"},
    "cache.invalidated": {"conversation", "signal", "entries"},
    "error": {"code", "message", "retryable", "client_id"},
    "pong": set(),
}


def fields(union: Any) -> dict[str, set[str]]:
    models = get_args(union)
    return {get_args(m.model_fields["type"].annotation)[0]: set(m.model_fields) - {"type"} for m in models}


def test_the_frames_are_the_agreed_ones() -> None:
    assert fields(get_args(protocol.ClientFrame)[0]) == CLIENT
    assert fields(protocol.ServerFrame) == SERVER
    assert set(protocol.Usage.model_fields) == {"prompt_tokens", "cached_tokens", "completion_tokens"}
    assert set(protocol.Timings.model_fields) == {"queue_ms", "lookup_ms", "first_token_ms", "total_ms"}


@pytest.mark.parametrize("code", [*protocol.FAILURES, "", "never heard of"])
def test_a_failed_answer_is_explained_and_may_be_tried_again(code: str) -> None:
    error = protocol.failure(code, "c1")
    assert error.code and error.message and error.retryable and error.client_id == "c1"


def test_an_invalidation_survives_the_way_to_the_client() -> None:
    frame = protocol.Invalidated(conversation=uuid4(), signal="correction", entries=2)
    assert TypeAdapter(protocol.ServerFrame).validate_json(protocol.encode(frame)) == frame
