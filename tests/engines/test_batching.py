"""Several answers at once, each as if it were alone."""

import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from inference.engines.base import Delta, EngineFailed, Finished, Request, Sampling
from inference.engines.batching import AHEAD, Batch
from inference.engines.torch import TorchEngine

from .conftest import ask, generated, user

QUESTIONS = ("What is the capital of France?", "Name three colours.", "Count to twenty.", "word " * 90)


@pytest.fixture
def passes(exact: TorchEngine, monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """How many tokens of each sequence every pass of the model computed."""
    seen: list[list[int]] = []
    step = exact._model.step

    def counted(parts: Any, *more: Any) -> Any:
        seen.append([len(tokens) for _, tokens in parts])
        return step(parts, *more)

    monkeypatch.setattr(exact._model, "step", counted)
    return seen


def together(engine: TorchEngine, requests: list[Request]) -> list[list[Delta | Finished]]:
    """Every stream read by a thread of its own."""
    found: list[list[Delta | Finished]] = [[] for _ in requests]

    def read(place: int) -> None:
        found[place].extend(engine.stream(requests[place]))

    threads = [threading.Thread(target=read, args=(place,)) for place in range(len(requests))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def written(events: list[Delta | Finished]) -> list[int]:
    assert isinstance(events[-1], Finished)
    return list(events[-1].output_token_ids)


def test_a_batch_is_what_transformers_generates_one_by_one(
    exact: TorchEngine, plain: Any, passes: list[list[int]]
) -> None:
    requests = [
        Request(f"{n}", [user(question)], Sampling(max_tokens=10), cache_salt=f"batch {n}")
        for n, question in enumerate(QUESTIONS)
    ]
    answers = together(exact, requests)
    for request, events in zip(requests, answers, strict=True):
        assert written(events) == generated(plain, exact._tokenizer.encode(request.turns), 10)
    assert any(one.count(1) >= 3 for one in passes), "they were to be computed together"


def test_who_comes_later_joins_between_two_tokens(exact: TorchEngine, passes: list[list[int]]) -> None:
    alone = written(
        together(exact, [Request("x", [user("Hello")], Sampling(max_tokens=5), cache_salt="x")])[0]
    )
    passes.clear()
    with closing(exact.stream(Request("a", [user("Count to fifty.")], cache_salt="a"))) as first:
        for _ in range(3):
            next(first)
        begun = len(passes)
        late: list[list[Delta | Finished]] = []
        request = Request("b", [user("Hello")], Sampling(max_tokens=5), cache_salt="b")
        thread = threading.Thread(target=lambda: late.extend(together(exact, [request])))
        thread.start()
        while thread.is_alive():
            next(first)
        thread.join()
    assert written(late[0]) == alone
    joined = passes[begun:]
    assert any(one[0] == 1 and len(one) == 2 and one[1] > 1 for one in joined), "its prompt, beside a token"
    assert any(one == [1, 1] for one in joined)


def test_each_has_its_own_sampling_and_end(exact: TorchEngine) -> None:
    def requests(name: str) -> list[Request]:
        wishes = (
            Sampling(max_tokens=7),
            Sampling(max_tokens=7, stop=("tal of Fra",)),
            Sampling(max_tokens=3, temperature=1.3, seed=5),
            Sampling(max_tokens=7, temperature=1.3, top_p=0.8, seed=6),
        )
        return [
            Request(f"{n}", [user(QUESTIONS[0])], wish, cache_salt=f"{name} {n}")
            for n, wish in enumerate(wishes)
        ]

    at_once = together(exact, requests("at once"))
    one_by_one = [list(exact.stream(request)) for request in requests("one by one")]
    assert at_once == one_by_one
    reasons = [events[-1].reason for events in at_once if isinstance(events[-1], Finished)]
    assert reasons == ["length", "stop", "length", "length"]


def test_one_is_cancelled_and_the_others_go_on(exact: TorchEngine) -> None:
    alone = ask(exact, "Count to twenty.", max_tokens=10, scope="alone").finished.output_token_ids
    stop = threading.Event()
    requests = [
        Request("goes on", [user("Count to twenty.")], Sampling(max_tokens=10), cache_salt="goes on"),
        Request("stops", [user("Count to fifty.")], cancelled=stop.is_set, cache_salt="stops"),
    ]
    threading.Timer(0.3, stop.set).start()
    went, stopped = together(exact, requests)
    assert written(went) == list(alone)
    assert isinstance(stopped[-1], Finished) and stopped[-1].reason == "cancelled"


def test_one_that_breaks_breaks_alone(exact: TorchEngine) -> None:
    """A token outside the vocabulary is what corrupt input looks like to the model."""
    alone = ask(exact, "Count to twenty.", max_tokens=6, scope="sound").finished.output_token_ids
    bad = exact._prepare(Request("bad", [user("hi")], cache_salt="bad"))
    bad.prompt.append(10**6)
    failures: list[EngineFailed] = []

    def read_bad() -> None:
        try:
            list(exact._events(bad))
        except EngineFailed as problem:
            failures.append(problem)

    with closing(
        exact.stream(Request("good", [user("Count to twenty.")], Sampling(max_tokens=6), cache_salt="good"))
    ) as good:
        events: list[Delta | Finished] = [next(good)]
        thread = threading.Thread(target=read_bad)
        thread.start()
        events.extend(good)
        thread.join()
    assert written(events) == list(alone)
    assert len(failures) == 1 and "The model failed" in str(failures[0])


def test_a_reader_who_stops_reading_holds_nobody_up(exact: TorchEngine, passes: list[list[int]]) -> None:
    with closing(exact.stream(Request("slow", [user("Count to fifty.")], cache_salt="slow"))) as slow:
        next(slow)
        ask(exact, "Count to twenty.", max_tokens=12, scope="quick")
        live = exact.kv_report()["live_tokens"]
        assert live <= exact.count_tokens([user("Count to fifty.")]) + AHEAD + 1


def test_more_than_a_batch_wait_in_line(
    exact: TorchEngine, passes: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact, "_batch", Batch(exact._model, 2))
    requests = [
        Request(f"{n}", [user(f"Say {n}.")], Sampling(max_tokens=4), cache_salt=f"line {n}") for n in range(5)
    ]
    answers = together(exact, requests)
    assert all(len(written(events)) > 0 for events in answers)
    assert max(map(len, passes)) == 2
    with pytest.raises(ValueError, match="at least one"):
        Batch(exact._model, 0)


def test_a_program_ends_at_once_and_in_peace(model_dir: Path) -> None:
    """Right after an answer, and in the middle of one that nobody reads any more."""
    program = f"""
import time
from inference.engines.base import Request, Sampling
from inference.engines.torch import TorchEngine
engine = TorchEngine({str(model_dir)!r})
turns = [{{"role": "user", "content": "Count to fifty."}}]
*_, finished = engine.stream(Request("whole", turns, Sampling(max_tokens=2)))
left = engine.stream(Request("left", turns))
print(next(left).text, flush=True)
print(time.time())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert time.time() - float(ended.stdout.split()[-1]) < 4


def test_the_computing_thread_leaves_and_comes_back(
    exact: TorchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inference.engines.batching.LINGER_SECONDS", 0.05)
    batch = Batch(exact._model, 2)
    monkeypatch.setattr(exact, "_batch", batch)
    first = ask(exact, "Hello", max_tokens=2, scope="thread 1")
    deadline = time.monotonic() + 5
    while batch._thread is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert batch._thread is None
    again = ask(exact, "Hello", max_tokens=2, scope="thread 2")
    assert again.finished.output_token_ids == first.finished.output_token_ids
