import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer

from inference.engines.base import Delta, EngineFailed, Finished, Request, Sampling
from inference.engines.batching import CHUNK
from inference.engines.torch import TorchEngine
from inference.understanding.turns import Turn

from .conftest import Reply, ask, assistant, generated, system, user

CONVERSATIONS: dict[str, list[Turn]] = {
    "no system prompt": [user("What is the capital of France?")],
    "system prompt": [system("You are a pirate."), user("Name three colours.")],
    "several turns": [
        system("Answer briefly."),
        user("My cat is called Luna."),
        assistant("What a lovely name!"),
        user("What is my cat called, and is that a common name?"),
    ],
    "longer than a chunk": [
        user("Here is a list: " + ", ".join(map(str, range(150))) + ". What comes next?")
    ],
}


@pytest.mark.parametrize("turns", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_greedy_is_what_transformers_generates(
    exact: TorchEngine, plain: Any, model_dir: Path, turns: list[Turn]
) -> None:
    tokenizer: Any = AutoTokenizer.from_pretrained(model_dir)
    prompt = tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_tensors="pt")[
        "input_ids"
    ]
    expected = generated(plain, prompt[0].tolist(), 24)
    reply = ask(exact, *turns, max_tokens=24)
    assert reply.finished.prompt_tokens == prompt.shape[1]
    assert list(reply.finished.output_token_ids) == expected
    assert reply.text == tokenizer.decode(expected, skip_special_tokens=True)
    assert reply.finished.reason == ("stop" if expected[-1] in (0, 2) else "length")
    assert reply.finished.completion_tokens == len(expected)


def test_chances_are_what_transformers_gives(exact: TorchEngine, plain: Any) -> None:
    turns = CONVERSATIONS["several turns"]
    words = ("Luna", "Your", "No")
    found = ask(exact, *turns, max_tokens=1, choices=words).finished.chances
    ids = exact._tokenizer.encode(turns)
    with torch.inference_mode():
        odds = plain(torch.tensor([ids])).logits[0, -1].softmax(-1)
    expected = [float(odds[exact._tokenizer.encode_plain(word)[0]]) for word in words]
    assert found == pytest.approx(expected, rel=1e-3)
    assert 0 < sum(found) <= 1


@pytest.mark.parametrize("chunk", [7, 64])
def test_a_prompt_in_chunks_is_the_prompt_at_once(exact: TorchEngine, plain: Any, chunk: int) -> None:
    ids = exact._tokenizer.encode(CONVERSATIONS["several turns"])
    with torch.inference_mode():
        expected = plain(torch.tensor([ids])).logits[0, -1]
    buffer = exact._model.new_buffer(len(ids))
    for start in range(0, len(ids), chunk):
        (logits,) = exact._model.step([(buffer, ids[start : start + chunk])])
    torch.testing.assert_close(logits, expected, atol=1e-3, rtol=1e-4)
    assert buffer.length == len(ids)


def test_bf16_stays_close_to_fp32(engine: TorchEngine, exact: TorchEngine) -> None:
    """Same prompt, same next token, and logits within bf16's reach, on the one-token path too."""
    ids = exact._tokenizer.encode(CONVERSATIONS["several turns"])
    found = []
    for one in (engine, exact):
        buffer = one._model.new_buffer(len(ids))
        one._model.step([(buffer, ids[:-1])])
        found.append(one._model.step([(buffer, ids[-1:])])[0].float())
    assert found[0].argmax() == found[1].argmax()
    assert torch.nn.functional.cosine_similarity(found[0], found[1], dim=0) > 0.999


def test_cancelled_while_reading_the_prompt(engine: TorchEngine) -> None:
    """Seen at once, whatever the model is at; what was half read is nobody's."""
    stopped_at = 0.0

    def cancelled() -> bool:
        nonlocal stopped_at
        if not stopped_at and engine.kv_report()["live_tokens"] >= CHUNK:
            stopped_at = time.monotonic()
        return bool(stopped_at)

    stored = engine.kv_report()["stored_bytes"]
    reply = ask(engine, "word " * 3000, cancelled=cancelled)
    assert time.monotonic() - stopped_at < 0.05
    assert reply.finished.reason == "cancelled"
    assert reply.deltas == [] and reply.finished.output_token_ids == ()
    assert reply.finished.prompt_tokens > 3000
    report = engine.kv_report()
    assert (report["live_sequences"], report["live_tokens"], report["live_bytes"]) == (0, 0, 0)
    assert report["stored_bytes"] == stored


def test_cancelled_while_writing(engine: TorchEngine) -> None:
    stop = threading.Event()
    stream = engine.stream(Request("r", [user("Count to fifty.")], Sampling(), stop.is_set))
    texts = [event.text for _, event in zip(range(5), stream, strict=False) if isinstance(event, Delta)]
    stop.set()
    (finished,) = list(stream)  # not one token more
    assert isinstance(finished, Finished) and finished.reason == "cancelled"
    assert finished.completion_tokens == len(finished.output_token_ids) == 5
    assert engine._tokenizer.decode(finished.output_token_ids) == "".join(texts)


def test_a_stream_that_is_dropped_frees_its_cache(engine: TorchEngine) -> None:
    stream = engine.stream(Request("r", [user("Count to fifty.")]))
    next(stream)
    report = engine.kv_report()
    assert report["live_sequences"] == 1
    # 30 layers, keys and values, 3 heads of 64, two bytes each, and room for a whole answer, in blocks of 64.
    blocks = -(-(engine.count_tokens([user("Count to fifty.")]) + 512) // 64)
    assert report["live_bytes"] == blocks * 64 * 30 * 2 * 3 * 64 * 2
    assert report["live_bytes"] > report["live_tokens"] * 23_040 > 0
    stream.close()
    assert engine.kv_report()["live_sequences"] == 0


def test_stop_strings_across_tokens(exact: TorchEngine) -> None:
    whole = ask(exact, "What is the capital of France?")
    assert whole.text == "The capital of France is Paris."
    # Begins inside one token and ends inside another.
    cut = ask(exact, "What is the capital of France?", stop=("nowhere", "tal of Fra"))
    assert cut.text == "The capi"
    assert cut.finished.reason == "stop"
    assert cut.finished.output_token_ids == whole.finished.output_token_ids[:4]
    # Only begun: what was held back comes after all.
    held = ask(exact, "What is the capital of France?", stop=("Paris.!",))
    assert held.text == whole.text
    shown = [token for delta in held.deltas for token in delta.token_ids]
    assert tuple(shown) == held.finished.output_token_ids


@pytest.mark.parametrize("ask_for", ["Repeat: 🎉🎉🎉", "Repeat after me: 你好，世界。你好，世界。"])
def test_deltas_hold_whole_characters(engine: TorchEngine, ask_for: str) -> None:
    reply = ask(engine, system("You repeat."), ask_for, max_tokens=31)
    whole = engine._tokenizer.decode(reply.finished.output_token_ids)
    assert max(map(ord, whole)) > 0x2000, "the model was to write more than ASCII"
    assert reply.text == whole.rstrip("\ufffd")
    assert all(delta.text and "\ufffd" not in delta.text for delta in reply.deltas)


def test_two_at_once_do_not_mix(exact: TorchEngine) -> None:
    questions = ["What is the capital of France?", "Name three colours.", "Count to twenty."]
    alone = [ask(exact, question, max_tokens=12).finished.output_token_ids for question in questions]
    together: dict[str, Reply] = {}
    most = 0

    def worker(question: str) -> None:
        together[question] = ask(exact, question, max_tokens=12)

    threads = [threading.Thread(target=worker, args=(question,)) for question in questions]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        most = max(most, exact.kv_report()["live_sequences"])
        time.sleep(0.005)
    assert most == 3
    assert [together[question].finished.output_token_ids for question in questions] == alone


def test_a_seed_makes_chance_repeatable(exact: TorchEngine) -> None:
    """In fp32: in bf16 a prompt that was read before leaves other last bits than one read now."""

    def story(seed: int | None, top_p: float = 0.9) -> tuple[int, ...]:
        told = ask(exact, "Tell me a story.", max_tokens=6, temperature=1.2, top_p=top_p, seed=seed)
        return told.finished.output_token_ids

    assert story(1) == story(1)
    assert story(1, 1.0) == story(1, 1.0)
    assert story(1) != story(2)
    assert len({story(None) for _ in range(3)}) > 1


def test_top_p_keeps_the_likeliest_tokens_only(engine: TorchEngine) -> None:
    logits = torch.log(torch.tensor([0.05, 0.5, 0.15, 0.3]))

    def picked(top_p: float) -> set[int]:
        picker = engine._forward.Picker(Sampling(temperature=1.0, top_p=top_p, seed=7))
        return {picker.pick(logits) for _ in range(400)}

    assert picked(0.01) == {1}
    assert picked(0.7) == {1, 3}
    assert picked(0.9) == {1, 2, 3}
    assert picked(1.0) == {0, 1, 2, 3}


def test_a_history_of_a_thousand_messages_is_cut(exact: TorchEngine) -> None:
    history = [turn for n in range(500) for turn in (user(f"Tell me fact {n}."), assistant("A fact. " * 20))]
    turns = [system("Answer briefly."), *history, user("What is the capital of France?")]
    began = time.monotonic()
    fitted = exact._prepare(Request("r", turns, Sampling(max_tokens=8))).fitted
    assert time.monotonic() - began < 1
    assert fitted.turns[0] == turns[0] and fitted.turns[-1] == turns[-1]
    assert fitted.turns[1]["role"] == "user"
    reply = ask(exact, *turns, max_tokens=8)
    assert reply.finished.history_cut and not reply.finished.prompt_cut
    assert 800 < reply.finished.prompt_tokens <= 1024 - 8
    assert reply.finished.completion_tokens > 0


LONG_CHINESE = ("缓存系统需要考虑很多问题，例如一致性、过期时间和内存占用。" * 300)[:8000]


def test_eight_thousand_chinese_characters(engine: TorchEngine, exact: TorchEngine) -> None:
    assert engine.count_tokens([user(LONG_CHINESE)]) > engine.window
    calls = iter(range(100))
    first = ask(engine, "你好", assistant("你好！"), LONG_CHINESE, cancelled=lambda: next(calls) == 1)
    assert first.finished.prompt_cut and first.finished.history_cut
    assert 7600 < first.finished.prompt_tokens <= 8192 - 512
    # Read to its end where that takes seconds: in the small window.
    reply = ask(exact, LONG_CHINESE, max_tokens=4)
    assert reply.finished.prompt_cut and not reply.finished.history_cut
    assert reply.finished.completion_tokens == 4


def test_max_tokens_and_the_window_end_an_answer(exact: TorchEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(exact, "Count to fifty.", max_tokens=1).finished.reason == "length"
    monkeypatch.setattr(exact, "_window", 80)
    reply = ask(exact, "Tell me a long story about a cat.", max_tokens=1000)
    assert reply.finished.reason == "length"
    assert reply.finished.prompt_tokens <= 60
    assert reply.finished.prompt_tokens + reply.finished.completion_tokens == 80


def test_turns_no_engine_can_answer(engine: TorchEngine) -> None:
    with pytest.raises(ValueError, match="question"):
        ask(engine, user("hi"), assistant("hello"))
    with pytest.raises(EngineFailed, match="leaves no room"):
        ask(engine, system("rule " * 9000), "hi")


def test_a_model_that_breaks_is_a_failed_answer(engine: TorchEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token outside the vocabulary is what corrupt input looks like to the model."""
    run = engine._prepare(Request("r", [user("hi")]))
    run.prompt.append(10**6)
    with pytest.raises(EngineFailed, match="The model failed"):
        list(engine._events(run))
    assert engine.kv_report()["live_sequences"] == 0
