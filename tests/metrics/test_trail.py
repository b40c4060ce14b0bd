"""One trace for each question, through web, queue and engine; and nothing of it where nobody wants it."""

import json
import sys
import uuid
from typing import Any

import pytest
import structlog

from config import tracing
from config.celery import app
from inference import service, tasks, trail, workers
from inference.models import Generation, Status
from inference.redis import client
from inference.understanding.turns import Turn

QUESTION = "What is the capital of France?"


@pytest.fixture(autouse=True)
def _valkey(db: None) -> None:
    client().flushdb()
    workers.announce("generate")


@pytest.fixture(scope="module")
def spans() -> Any:
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="the extra `otel` is not installed")
    from opentelemetry import trace
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)  # once in a process
    return exporter


def asked() -> Generation:
    turns: list[Turn] = [{"role": "user", "content": QUESTION}]
    return service.ask(uuid.uuid4(), turns)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What was handed to Celery, which sends nothing: nobody else is to work on it."""
    messages: list[dict[str, Any]] = []

    def send(task: str, args: tuple[str], **options: Any) -> None:
        headers = json.loads(json.dumps(options["headers"]))  # as they travel
        messages.append({"task": task, "args": list(args), "headers": headers})

    monkeypatch.setattr(app, "send_task", send)
    return messages


@pytest.mark.django_db(transaction=True)
def test_a_question_is_one_trace(spans: Any, sent: list[dict[str, Any]]) -> None:
    generation = asked()
    for task in (tasks.answer, tasks.generate):
        message = sent.pop(0)
        assert (message["task"], message["args"]) == (task.name, [str(generation.pk)])
        task.apply(args=message["args"], headers=message["headers"], throw=True)
    generation.refresh_from_db()
    assert generation.status == Status.COMPLETE
    mine = [
        span
        for span in spans.get_finished_spans()
        if span.attributes.get("reprise.generation") == str(generation.pk)
    ]
    assert sorted(span.name for span in mine) == ["answer", "ask", "engine", "generate"]
    assert len({span.context.trace_id for span in mine}) == 1
    by_name = {span.name: span for span in mine}
    parents = {name: span.parent.span_id if span.parent else None for name, span in by_name.items()}
    ids = {name: span.context.span_id for name, span in by_name.items()}
    assert parents == {
        "ask": None,
        "answer": ids["ask"],
        "generate": ids["answer"],
        "engine": ids["generate"],
    }
    engine = by_name["engine"].attributes
    assert engine["reprise.completion_tokens"] == generation.completion_tokens > 0
    assert engine["reprise.prompt_tokens"] == generation.prompt_tokens


def test_what_is_logged_within_a_stage_names_its_answer() -> None:
    generation = uuid.uuid4()
    with trail.stage("answer", generation):
        assert structlog.contextvars.get_contextvars() == {"generation": str(generation)}
    assert structlog.contextvars.get_contextvars() == {}


def test_without_the_extra_nothing_is_traced_and_all_else_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trail, "trace", None)
    monkeypatch.setattr(trail, "propagate", None)
    with trail.stage("answer", "some", {"generation": "some"}):
        trail.note(tokens=1)
        assert structlog.contextvars.get_contextvars() == {"generation": "some"}
    assert trail.headers("some") == {"reprise_trail": {"generation": "some"}}


@pytest.mark.parametrize("request_", [object(), None])
def test_a_task_without_a_trail_begins_one(request_: object) -> None:
    """Sent by the release before this one, or by hand."""
    assert trail.carried_by(request_) == {}


def test_nobody_is_traced_who_does_not_ask_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", raising=False)
    assert not tracing.configure("reprise-web")


def test_asked_for_without_what_sends_it_is_said_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with structlog.testing.capture_logs() as logs:
        assert not tracing.configure("reprise-web")
    assert logs[0]["event"] == "tracing_not_installed"
