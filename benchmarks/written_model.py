"""A model that knows the answers: an endpoint as OpenAI's, in this process, that gives the written answer to
each question of the traffic, at the pace of the bundled model.

The bundled model knows no Chinese and contradicts itself from wording to wording, so that with it one learns
what a cache does beside a poor model. This one gives a question that is asked in other words another of the
answers that were written for it, if there are more than one. It needs the history to tell follow-ups apart.
"""

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from benchmarks.mixed_questions import Intent, intents, one_offs
from inference.engines.openai import estimate
from inference.understanding.normalise import normalise

MODEL = "written-answers"
# Of the bundled model on two cores: seconds until the first token, and between two.
FIRST_SECONDS, TOKEN_SECONDS = 0.1, 0.04

Message = Mapping[str, str]


class Answers:
    """What was written for each question of the traffic."""

    def __init__(self) -> None:
        self._intents: dict[str, list[tuple[Intent, int]]] = {}
        self._after: dict[str, Intent] = {}
        for intent in [*intents(), *one_offs()]:
            self._add(intent)
            if intent.follow_up:
                self._add(intent.follow_up)
                self._after[intent.follow_up.label] = intent

    def _add(self, intent: Intent) -> None:
        for at, wording in enumerate(intent.wordings):
            self._intents.setdefault(normalise(wording), []).append((intent, at))

    def to(self, messages: Sequence[Message]) -> str:
        """The answer to the last message; an excuse where it is none of the traffic's questions."""
        *history, asked = [message["content"] for message in messages if message["role"] == "user"]
        could = self._intents.get(normalise(asked))
        if not could:
            return "I don't know."
        intent, at = next(
            ((one, at) for one, at in could if one.label not in self._after or self._follows(one, history)),
            could[0],
        )
        return intent.answers[at % len(intent.answers)]

    def _follows(self, intent: Intent, history: Sequence[str]) -> bool:
        before = self._intents.get(normalise(history[-1]), []) if history else []
        return any(one is self._after[intent.label] for one, _ in before)


class Knows(Protocol):
    """What gives answers."""

    def to(self, messages: Sequence[Message]) -> str: ...


class _Handler(BaseHTTPRequestHandler):
    answers: Knows
    pace: float
    protocol_version = "HTTP/1.0"

    def do_GET(self) -> None:
        self._json({"object": "list", "data": [{"id": MODEL, "object": "model", "max_model_len": 8192}]})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.endswith("/chat/completions"):
            self.send_error(404)
            return
        text = self.answers.to(asked["messages"])
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in _events(text, asked["messages"], self.pace):
            self.wfile.write(f"data: {event}\n\n".encode())
            self.wfile.flush()

    def _json(self, body: Mapping[str, Any]) -> None:
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _events(text: str, messages: list[Any], pace: float) -> Iterator[str]:
    time.sleep(FIRST_SECONDS * pace)
    tokens = estimate([{"role": "assistant", "content": text}])
    size = -(-len(text) // tokens)
    for at in range(0, len(text), size):
        yield json.dumps({"choices": [{"index": 0, "delta": {"content": text[at : at + size]}}]})
        time.sleep(TOKEN_SECONDS * pace)
    yield json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    usage = {"prompt_tokens": estimate(messages), "completion_tokens": tokens}
    yield json.dumps({"choices": [], "usage": usage})
    yield "[DONE]"


@contextmanager
def serving(answers: Knows | None = None, pace: float = 1.0) -> Iterator[dict[str, str]]:
    """The settings of a stack that is to be answered by it: from the traffic's answers, or from others, in
    `pace` times its time (0: at once)."""
    handler = type("Handler", (_Handler,), {"answers": answers or Answers(), "pace": pace})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {
            "ENGINE": "openai",
            "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1",
            "OPENAI_MODEL": MODEL,
            "OPENAI_API_KEY": "none",
        }
    finally:
        server.shutdown()
        server.server_close()
