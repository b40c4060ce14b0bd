"""The openai engine against a server that misbehaves. That it answers well is shown by the contract's tests,
against a real vLLM."""

import email.utils
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from inference.engines import identity
from inference.engines.base import Delta, EngineFailed, EngineUnavailable, Finished, Request, Sampling
from inference.engines.openai import OpenAIEngine, estimate, most
from inference.engines.tokenizer import ChatTokenizer
from inference.understanding.turns import Turn

from .conftest import Reply, assistant, system, user
from .faulty_server import Exchange, Fault, Faulty, faulty_server

QUESTION = [user("Hello?")]


@pytest.fixture
def server() -> Iterator[Faulty]:
    with faulty_server() as running:
        yield running


@pytest.fixture
def engine(server: Faulty) -> Iterator[OpenAIEngine]:
    engine = OpenAIEngine(f"{server.url}/v1", "a-model", api_key="key", window=2048, silence=0.5)
    yield engine
    engine.close()


def ask(engine: OpenAIEngine, turns: list[Turn] = QUESTION, **sampling: Any) -> Reply:
    *deltas, finished = engine.stream(Request("r", turns, Sampling(**sampling)))
    assert isinstance(finished, Finished)
    texts = [delta for delta in deltas if isinstance(delta, Delta)]
    return Reply("".join(delta.text for delta in texts), texts, finished)


def refusing(status: int, body: str = "", **headers: str) -> Any:
    return lambda exchange: exchange.refuse(status, body, **headers)


def test_an_answer_and_its_usage(engine: OpenAIEngine, server: Faulty) -> None:
    reply = ask(engine, [system("Be kind."), *QUESTION], max_tokens=7, stop=("END",))
    assert reply.text == "Hello there"
    assert [delta.text for delta in reply.deltas] == ["Hello", " there"]
    assert reply.finished == Finished("stop", 9, 5, 3, False, False, ())
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["Authorization"] == "Bearer key"
    assert asked.body == {
        "model": "a-model",
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello?"}],
        "max_tokens": 7,
        "temperature": 0.0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "stop": ["END"],
    }


def test_sampling_is_sent_where_it_matters(engine: OpenAIEngine, server: Faulty) -> None:
    ask(engine, temperature=0.7, top_p=0.9, seed=3)
    ask(engine, temperature=0.0, top_p=0.9, seed=3)
    first, second = (exchange.body for exchange in server.asked)
    assert (first["temperature"], first["top_p"], first["seed"]) == (0.7, 0.9, 3)
    assert not {"top_p", "seed", "stop"} & set(second)


# --- asked again ------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529, 408])
def test_busy_once(engine: OpenAIEngine, server: Faulty, status: int) -> None:
    server.faults = [refusing(status)]
    assert ask(engine).text == "Hello there"
    assert len(server.asked) == 2
    assert 0.2 < server.asked[1].at - server.asked[0].at < 1.5


def test_waits_grow_and_end(engine: OpenAIEngine, server: Faulty) -> None:
    server.faults = [refusing(503, '{"error": {"message": "overloaded,\\n come later"}}')] * 9
    with pytest.raises(EngineUnavailable, match="status 503: overloaded, come later"):
        ask(engine)
    assert len(server.asked) == 3
    first, second, third = (asked.at for asked in server.asked)
    assert 0.25 <= second - first < 0.9 and 0.5 <= third - second < 1.4


def test_the_server_says_when_to_come_again(engine: OpenAIEngine, server: Faulty) -> None:
    def by_date(exchange: Exchange) -> None:
        exchange.refuse(503, Retry_After=email.utils.formatdate(time.time() + 2, usegmt=True))

    server.faults = [refusing(429, Retry_After="1.2"), by_date]
    assert ask(engine).text == "Hello there"
    first, second, third = (asked.at for asked in server.asked)
    assert 1.2 <= second - first < 2.2
    assert 1 <= third - second < 3  # a date has whole seconds only


def test_too_long_a_wait_is_no_wait(engine: OpenAIEngine, server: Faulty) -> None:
    server.faults = [refusing(429, Retry_After="3600")]
    began = time.monotonic()
    with pytest.raises(EngineUnavailable, match="429"):
        ask(engine)
    assert time.monotonic() - began < 1 and len(server.asked) == 1


def test_a_break_before_the_first_token_is_tried_again(engine: OpenAIEngine, server: Faulty) -> None:
    def breaks(exchange: Exchange) -> None:
        exchange.begin()
        exchange.say({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
        exchange.break_off()

    server.faults = [Exchange.break_off, breaks]
    assert ask(engine).text == "Hello there"
    assert len(server.asked) == 3


def test_an_error_inside_the_stream(engine: OpenAIEngine, server: Faulty) -> None:
    def fails(exchange: Exchange) -> None:
        exchange.begin()
        exchange.say({"error": {"message": "engine overloaded", "code": 503}})

    def refuses(exchange: Exchange) -> None:
        exchange.begin()
        exchange.say({"error": {"message": "too long", "code": 400}})

    server.faults = [fails]
    assert ask(engine).text == "Hello there"
    server.faults = [refuses]
    with pytest.raises(EngineFailed, match="too long"):
        ask(engine)
    assert len(server.asked) == 3


# --- never an answer --------------------------------------------------------------------------------


def read_until_error(engine: OpenAIEngine, kind: type[Exception], match: str) -> str:
    """The text that came before the error."""
    texts: list[str] = []
    with pytest.raises(kind, match=match):
        for event in engine.stream(Request("r", QUESTION)):
            assert isinstance(event, Delta), "an error never looks like an end"
            texts.append(event.text)
    return "".join(texts)


def test_a_break_in_the_middle(engine: OpenAIEngine, server: Faulty) -> None:
    def breaks(exchange: Exchange) -> None:
        exchange.begin()
        exchange.text("Hel")
        exchange.break_off()

    server.faults = [breaks]
    assert read_until_error(engine, EngineUnavailable, "Error") == "Hel"
    assert len(server.asked) == 1


def test_an_end_in_the_middle(engine: OpenAIEngine, server: Faulty) -> None:
    """A proxy that was restarted ends the stream politely; the answer had no finish_reason yet."""

    def ends(exchange: Exchange) -> None:
        exchange.begin()
        exchange.text("Hel")

    server.faults = [ends]
    assert read_until_error(engine, EngineUnavailable, "in the middle") == "Hel"


def test_silence_in_the_middle(engine: OpenAIEngine, server: Faulty) -> None:
    def hangs(exchange: Exchange) -> None:
        exchange.begin()
        exchange.text("Hel")
        exchange.gone()

    server.faults = [hangs]
    began = time.monotonic()
    assert read_until_error(engine, EngineUnavailable, "ReadTimeout") == "Hel"
    assert 0.4 < time.monotonic() - began < 2


def test_an_error_in_the_middle(engine: OpenAIEngine, server: Faulty) -> None:
    def fails(exchange: Exchange) -> None:
        exchange.begin()
        exchange.text("Hel")
        exchange.say({"error": {"message": "worker died", "type": "server_error"}})

    server.faults = [fails]
    assert read_until_error(engine, EngineUnavailable, "worker died") == "Hel"


def test_a_withheld_answer(engine: OpenAIEngine, server: Faulty) -> None:
    def withholds(exchange: Exchange) -> None:
        exchange.begin()
        exchange.text("Hel", "content_filter")

    server.faults = [withholds]
    read_until_error(engine, EngineFailed, "content_filter")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 301])
def test_a_refusal_is_final(engine: OpenAIEngine, server: Faulty, status: int) -> None:
    server.faults = [refusing(status, '{"error": {"message": "no such model"}}')]
    read_until_error(engine, EngineFailed, str(status))
    assert len(server.asked) == 1


def test_something_else_than_a_stream(engine: OpenAIEngine, server: Faulty) -> None:
    def page(exchange: Exchange) -> None:
        exchange.refuse(200, "<html>Welcome to the hotel's network</html>", content_type="text/html")

    def noise(exchange: Exchange) -> None:
        exchange.begin()
        exchange.say("not JSON")

    server.faults = [page, noise]
    read_until_error(engine, EngineFailed, "no stream of events")
    read_until_error(engine, EngineFailed, "something else than JSON")


def test_nobody_there() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    engine = OpenAIEngine(f"http://127.0.0.1:{port}/v1", "a-model", window=2048, attempts=2)
    read_until_error(engine, EngineUnavailable, f"127.0.0.1:{port}/v1: ConnectError")
    engine.close()


# --- cancelling -------------------------------------------------------------------------------------


def test_a_cancel_closes_the_connection(engine: OpenAIEngine, server: Faulty) -> None:
    closed = threading.Event()

    def drips(exchange: Exchange) -> None:
        exchange.begin()
        exchange.text("one ")
        exchange.text("two ")
        if exchange.gone(0.45):
            closed.set()

    server.faults = [drips]
    stop = threading.Event()
    stream = engine.stream(Request("r", QUESTION, cancelled=stop.is_set))
    assert isinstance(next(stream), Delta)
    stop.set()
    (finished,) = stream
    assert isinstance(finished, Finished) and finished.reason == "cancelled"
    assert closed.wait(1)


def thinks(exchange: Exchange) -> None:
    exchange.gone(4)


@pytest.mark.parametrize(
    "fault", [thinks, refusing(429, Retry_After="15")], ids=["no answer yet", "waiting to ask again"]
)
def test_a_cancel_while_nothing_comes(server: Faulty, fault: Fault) -> None:
    """Neither a server that thinks nor a long wait keeps a person who has stopped it."""
    engine = OpenAIEngine(f"{server.url}/v1", "a-model", window=2048, silence=5)
    server.faults = [fault]
    began = time.monotonic()
    stream = engine.stream(Request("r", QUESTION, cancelled=lambda: time.monotonic() - began > 0.3))
    (finished,) = stream
    assert isinstance(finished, Finished) and finished.reason == "cancelled"
    assert 0.3 < time.monotonic() - began < 2
    engine.close()


def test_a_dropped_stream_closes_the_connection(engine: OpenAIEngine, server: Faulty) -> None:
    closed = threading.Event()

    def drips(exchange: Exchange) -> None:
        exchange.begin()
        exchange.text("one")
        if exchange.gone(0.45):
            closed.set()

    server.faults = [drips]
    stream = engine.stream(Request("r", QUESTION))
    next(stream)
    stream.close()
    assert closed.wait(1)


# --- text -------------------------------------------------------------------------------------------


def test_stop_strings_across_deltas_and_beyond_the_apis_four(engine: OpenAIEngine, server: Faulty) -> None:
    stops = ("1", "2", "3", "4", "lo th")
    reply = ask(engine, stop=stops)
    assert (reply.text, reply.finished.reason) == ("Hel", "stop")
    assert server.asked[0].body["stop"] == list(stops[:4])


def test_broken_characters_are_left_out(engine: OpenAIEngine, server: Faulty) -> None:
    def odd(exchange: Exchange) -> None:
        exchange.begin()
        for text in ("a\ud83d", "b", "\ufffd"):
            exchange.text(text)
        exchange.text("", "length")

    server.faults = [odd]
    reply = ask(engine)
    assert (reply.text, reply.finished.reason) == ("ab", "length")
    assert all(delta.text for delta in reply.deltas)


def test_without_usage_it_is_estimated(engine: OpenAIEngine, server: Faulty) -> None:
    def silent(exchange: Exchange) -> None:
        exchange.begin()
        exchange.text("Hello, how are you?", "stop")

    server.faults = [silent]
    finished = ask(engine).finished
    assert finished.prompt_tokens == estimate(QUESTION)
    assert 4 <= finished.completion_tokens <= 7
    assert finished.cached_tokens == 0


# --- the window -------------------------------------------------------------------------------------


def test_a_server_that_counts_no_tokens(engine: OpenAIEngine, server: Faulty) -> None:
    """/tokenize is asked for once, then the estimate cuts."""
    server.faults = [refusing(404)]
    history = [turn for n in range(99) for turn in (user(f"Fact {n}?"), assistant("It is so. " * 20))]
    finished = ask(engine, [*history, user("And?")], max_tokens=100).finished
    assert finished.history_cut and not finished.prompt_cut
    assert [exchange.path for exchange in server.asked] == ["/tokenize", "/v1/chat/completions"]
    sent = server.asked[1].body["messages"]
    assert sent[-1]["content"] == "And?" and sent[0]["role"] == "user"
    assert 0.8 * (2048 - 100) < estimate(sent) <= 2048 - 100


def test_short_prompts_are_not_counted(engine: OpenAIEngine, server: Faulty) -> None:
    ask(engine)
    assert [exchange.path for exchange in server.asked] == ["/v1/chat/completions"]


@pytest.mark.parametrize(
    ("text", "least", "greatest"),
    [
        ("The cache keeps what was computed, and a person who asks again is answered at once. " * 20, 1, 1.6),
        ("缓存系统需要考虑很多问题，例如一致性、过期时间和内存占用。" * 20, 0.6, 1.3),
        ("def f(x):\n    return {k: v**2 for k, v in x.items() if v > 3}\n" * 20, 0.6, 1.4),
    ],
    ids=["english", "chinese", "code"],
)
def test_the_estimate(model_dir: Any, text: str, least: float, greatest: float) -> None:
    turns = [system("Answer."), user(text)]
    counted = ChatTokenizer(model_dir).count(turns)
    assert least < estimate(turns) / counted < greatest
    assert most(turns) >= counted


# --- what can't be ----------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://x/v1", "http://"])
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(ValueError, match="http"):
        OpenAIEngine(url, "a-model")


def test_a_model_without_a_name() -> None:
    with pytest.raises(ValueError, match="name of a model"):
        OpenAIEngine("http://localhost/v1", "")


def test_the_key_and_the_password_are_not_shown() -> None:
    url = "http://me:secret@localhost:9/v1/"
    engine = OpenAIEngine(url, "m", api_key="key", window=99, attempts=1)
    assert "secret" not in str(engine.identity())
    assert engine.identity() == identity("openai", base_url=url, model="m", api_key="key")
    with pytest.raises(EngineUnavailable) as raised:
        list(engine.stream(Request("r", QUESTION)))
    assert "secret" not in str(raised.value) and "key" not in str(raised.value)
    engine.close()
