"""A real HTTP server that misbehaves as a third party's does, on demand: busy, broken, silent, rude."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Fault = Callable[["Exchange"], None]


@dataclass(frozen=True)
class Asked:
    """A request as it came, and when."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float


class Exchange(BaseHTTPRequestHandler):
    """One request; faults answer it, step by step."""

    protocol_version = "HTTP/1.1"
    server: "_Listener"

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        body = json.loads(self.rfile.read(length) or b"{}")
        if self._page():
            return
        faulty = self.server.faulty
        with faulty.lock:
            faulty.asked.append(Asked(self.path, dict(self.headers.items()), body, time.monotonic()))
            fault = faulty.faults.pop(0) if faulty.faults else answer
        fault(self)

    def do_GET(self) -> None:
        if not self._page():
            self.refuse(404)

    def _page(self) -> bool:
        page = self.server.faulty.pages.get(self.path)
        if page is not None:
            self.refuse(200, json.dumps(page), content_type="application/json")
        return page is not None

    def refuse(self, status: int, body: str = "", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def begin(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def say(self, event: object) -> None:
        data = event if isinstance(event, str) else json.dumps(event)
        self.wfile.write(f"data: {data}\n\n".encode())
        self.wfile.flush()

    def text(self, text: str, finish: str | None = None) -> None:
        self.say({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]})

    def break_off(self) -> None:
        """As when a server dies: a reset, not an end. What was sent has time to arrive first."""
        time.sleep(0.1)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.connection.close()

    def gone(self, seconds: float = 5.0) -> bool:
        """Whether the other side closes the connection within that time."""
        self.connection.settimeout(seconds)
        try:
            return self.connection.recv(1) == b""
        except TimeoutError:
            return False
        except OSError:
            return True

    def log_message(self, format: str, *args: object) -> None:
        pass


def answer(exchange: Exchange) -> None:
    """The whole answer "Hello there", as the API gives it."""
    exchange.begin()
    exchange.say({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
    exchange.text("Hello")
    exchange.text(" there", "stop")
    details = {"prompt_tokens_details": {"cached_tokens": 5}}
    exchange.say({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3, **details}})
    exchange.say("[DONE]")


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    faulty: "Faulty"

    def handle_error(self, request: object, client_address: object) -> None:
        """Broken connections are what these tests are about."""


@dataclass
class Faulty:
    """`faults` answer one request each, in turn; after them all is well. `asked`: what came. `pages` are JSON
    answers that are always the same, and don't count as asked."""

    url: str
    faults: list[Fault] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    pages: dict[str, dict[str, Any]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


@contextmanager
def faulty_server() -> Iterator[Faulty]:
    listener = _Listener(("127.0.0.1", 0), Exchange)
    listener.faulty = Faulty(f"http://127.0.0.1:{listener.server_address[1]}")
    thread = threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield listener.faulty
    finally:
        listener.shutdown()
        listener.server_close()
