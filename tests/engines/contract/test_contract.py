"""What every engine owes whoever asks it. Held against those that CONTRACT_ENGINES names."""

import json
import shutil
import threading
import time
from pathlib import Path

import pytest

from inference.engines.base import Delta, EngineFailed, Finished
from inference.engines.tokenizer import ChatTokenizer
from inference.understanding.turns import Turn

from .contenders import WINDOW, Contender, Reply, Said, assistant, read, request, system

FRANCE = "What is the capital of France?"
COUNT = "Write the numbers from one to thirty as words, separated by commas."
KNOWLEDGE = system("You know this. " + " ".join(f"Room {n} is on floor {n // 7}." for n in range(40)))


def ask(it: Contender, *said: Said, **more: object) -> Reply:
    return read(it.engine.stream(request(*said, **more)))


def test_deltas_then_one_end(it: Contender) -> None:
    reply = ask(it, FRANCE)
    assert "Paris" in reply.text
    assert len(reply.deltas) > 3 and all(delta.text for delta in reply.deltas)
    finished = reply.finished
    assert finished.reason == "stop"
    assert not finished.prompt_cut and not finished.history_cut
    assert finished.prompt_tokens == it.engine.count_tokens(request(FRANCE).turns)
    assert 0 <= finished.cached_tokens < finished.prompt_tokens
    assert len(reply.deltas) <= finished.completion_tokens < 40


def test_token_ids_are_the_answers(it: Contender) -> None:
    reply = ask(it, FRANCE)
    shown = tuple(token for delta in reply.deltas for token in delta.token_ids)
    if not it.token_ids:
        assert shown == reply.finished.output_token_ids == ()
        return
    written = reply.finished.output_token_ids
    assert len(written) == reply.finished.completion_tokens
    assert written[: len(shown)] == shown
    assert len(written) == len(shown) + 1, "the end-of-turn token is the model's too, and no text"


def test_how_likely_words_are_to_begin_the_answer(it: Contender) -> None:
    first = ask(it, FRANCE).text.split()[0]
    words = ("Xylophone", first, "Berlin")
    for limit in (1, 12):
        reply = ask(it, FRANCE, max_tokens=limit, choices=words)
        other, likely, another = reply.finished.chances
        assert 0.1 < likely <= 1 and max(other, another) < likely / 3
        assert reply.finished.completion_tokens <= limit
    assert ask(it, FRANCE).finished.chances == ()


def test_an_answer_stands_in_later_prompts_as_it_was_written(it: Contender, model_dir: Path) -> None:
    """Also one whose text, read again, comes to other tokens: what was computed behind it is found."""
    if not it.token_ids:
        pytest.skip("it takes text")
    tokenizer = ChatTokenizer(model_dir)
    for seed in range(20):
        said = ask(it, KNOWLEDGE, "Tell me a story.", max_tokens=64, temperature=1.3, seed=seed)
        answer = [token for token in said.finished.output_token_ids if token not in tokenizer.end_ids]
        longer = len(answer) - len(tokenizer.encode_plain(said.text))
        if longer and tokenizer.decode(answer) == said.text:
            break
    else:
        raise AssertionError("every answer was written as it is read")
    turns = (KNOWLEDGE, "Tell me a story.", assistant(said.text), "Go on.")
    later = ask(it, *turns, max_tokens=2).finished
    assert later.prompt_tokens == it.engine.count_tokens(request(*turns).turns) + longer
    block = 32  # vLLM's, whole ones only
    assert later.cached_tokens > said.finished.prompt_tokens + len(answer) - 1 - block


def test_an_answer_comes_as_it_is_written(it: Contender) -> None:
    began = time.monotonic()
    times = [time.monotonic() - began for _ in it.engine.stream(request(COUNT, max_tokens=40))]
    assert len(times) > 20
    assert times[0] < times[-1] / 2


def test_greedy_is_repeatable(it: Contender) -> None:
    first, second = (ask(it, system("Answer in one sentence."), COUNT, max_tokens=24) for _ in range(2))
    assert first.text == second.text
    assert first.finished.output_token_ids == second.finished.output_token_ids


def test_a_seed_makes_chance_repeatable(it: Contender) -> None:
    def story(seed: int) -> str:
        return ask(it, "Tell me a story.", max_tokens=10, temperature=1.2, top_p=0.95, seed=seed).text

    assert story(1) == story(1)
    assert len({story(seed) for seed in range(1, 4)}) > 1


def test_cancelled_between_tokens(it: Contender) -> None:
    stop = threading.Event()
    stream = it.engine.stream(request(COUNT, cancelled=stop.is_set))
    texts = [event.text for _, event in zip(range(5), stream, strict=False) if isinstance(event, Delta)]
    stop.set()
    (finished,) = list(stream)  # not one token more
    assert isinstance(finished, Finished) and finished.reason == "cancelled"
    assert len(texts) == 5
    if it.token_ids:
        assert finished.completion_tokens == len(finished.output_token_ids) >= 5


def test_cancelled_before_the_first_token(it: Contender) -> None:
    reply = ask(it, FRANCE, cancelled=lambda: True)
    assert reply.finished.reason == "cancelled"
    assert reply.deltas == [] and reply.finished.completion_tokens == 0
    assert reply.finished.prompt_tokens > 0


def test_what_cancelled_raises_ends_the_stream(it: Contender) -> None:
    calls = iter(range(100))

    def cancelled() -> bool:
        if next(calls) == 4:
            raise LookupError("the database is gone")
        return False

    with pytest.raises(LookupError, match="database"):
        ask(it, COUNT, cancelled=cancelled)
    assert "Paris" in ask(it, FRANCE).text


def test_a_dropped_stream_is_abandoned(it: Contender) -> None:
    """Nothing is computed for nobody: what it held is free again at once."""
    stream = it.engine.stream(request(COUNT, max_tokens=400))
    next(stream)
    began = time.monotonic()
    stream.close()
    assert time.monotonic() - began < 2
    if it.forgets:
        it.engine.reset()  # which vLLM refuses while a request holds blocks
    assert it.engine.kv_report().get("live_sequences", 0) == 0
    assert time.monotonic() - began < 3


def test_stop_strings(it: Contender) -> None:
    whole = ask(it, COUNT, max_tokens=40).text
    stop = whole[15:22]  # begins and ends inside tokens, as often as not
    cut = ask(it, COUNT, max_tokens=40, stop=("nowhere in it", stop))
    assert cut.text == whole[: whole.index(stop)]
    assert cut.finished.reason == "stop"


def test_more_stop_strings_than_an_api_takes(it: Contender) -> None:
    whole = ask(it, COUNT, max_tokens=40).text
    stop = whole[15:22]
    cut = ask(it, COUNT, max_tokens=40, stop=(*(f"nowhere {n}" for n in range(5)), stop))
    assert cut.text == whole[: whole.index(stop)]
    assert cut.finished.reason == "stop"


def test_a_stop_string_that_only_begins_is_text(it: Contender) -> None:
    whole = ask(it, FRANCE).text
    assert ask(it, FRANCE, stop=(whole[-6:] + "#",)).text == whole


def test_max_tokens(it: Contender) -> None:
    finished = ask(it, COUNT, max_tokens=5).finished
    assert finished.reason == "length"
    assert finished.completion_tokens == 5


@pytest.mark.parametrize("limit", [11, 12, 13])
def test_whole_characters_only(it: Contender, limit: int) -> None:
    """Of characters of several tokens each, one of these limits falls into the middle of one."""
    reply = ask(it, system("You repeat."), "Repeat: 🎉🎉🎉🎉🎉🎉🎉🎉", max_tokens=limit)
    assert "🎉" in reply.text
    assert all("\ufffd" not in delta.text and delta.text.encode() for delta in reply.deltas)


def test_a_long_history_loses_its_oldest_turns(it: Contender) -> None:
    history: list[Turn] = []
    for number in range(120):
        history += [
            *request(f"Tell me fact {number}.").turns,
            assistant(f"Fact {number}: " + "so it is. " * 6),
        ]
    reply = ask(it, system("Answer briefly."), *history, FRANCE, max_tokens=16)
    assert reply.finished.history_cut and not reply.finished.prompt_cut
    assert WINDOW / 2 < reply.finished.prompt_tokens <= WINDOW - 16
    assert reply.finished.completion_tokens > 0


@pytest.mark.parametrize(
    "text", ["word " * 3000, "缓存系统需要考虑一致性。" * 300], ids=["english", "chinese"]
)
def test_a_question_that_does_not_fit_loses_its_middle(it: Contender, text: str) -> None:
    reply = ask(it, "Hello.", assistant("Hello!"), text, max_tokens=4)
    assert reply.finished.prompt_cut and reply.finished.history_cut
    assert WINDOW / 3 < reply.finished.prompt_tokens <= WINDOW - 4
    assert reply.finished.completion_tokens > 0


def test_the_window_ends_an_answer(it: Contender) -> None:
    """Whatever may be asked for, prompt and answer stay within it."""
    reply = ask(it, system("Listen. " + "word " * 700), COUNT, max_tokens=5000)
    assert not reply.finished.prompt_cut
    assert reply.finished.prompt_tokens + reply.finished.completion_tokens <= WINDOW == it.engine.window


def test_turns_no_engine_can_answer(it: Contender) -> None:
    with pytest.raises(ValueError, match="question"):
        ask(it, "hi", assistant("hello"))
    with pytest.raises(EngineFailed, match="leaves no room"):
        ask(it, system("rule " * 5000), "hi")
    assert "Paris" in ask(it, FRANCE).text


def test_odd_text_is_only_text(it: Contender) -> None:
    """Half a surrogate pair, NUL, no letters at all."""
    for text in ("\ud83d half", "nul \x00 inside", "   "):
        assert ask(it, text, max_tokens=2).finished.completion_tokens == 2


def test_cached_tokens_are_told(it: Contender) -> None:
    if it.forgets:
        it.engine.reset()
    salt = f"scope-{time.time()}"
    first = ask(it, KNOWLEDGE, "Where is room 3?", max_tokens=4, cache_salt=salt).finished
    second = ask(it, KNOWLEDGE, "Where is room 30?", max_tokens=4, cache_salt=salt).finished
    assert 0 <= second.cached_tokens < second.prompt_tokens
    assert second.cached_tokens > 0.8 * second.prompt_tokens
    if it.forgets:
        assert first.cached_tokens == 0
        it.engine.reset()
        third = ask(it, KNOWLEDGE, "Where is room 3?", max_tokens=4, cache_salt=salt).finished
        assert third.cached_tokens == 0


@pytest.mark.parametrize("salt", ["another", "with / and @ and 中", "x" * 500])
def test_scopes_share_nothing(it: Contender, salt: str) -> None:
    """A salt of any kind is another scope, of which nothing is cached yet."""
    if not it.forgets:
        assert "cache_salt" in (it.engine.__class__.__doc__ or ""), "said where it isn't kept"
        return
    it.engine.reset()
    ask(it, KNOWLEDGE, FRANCE, max_tokens=1, cache_salt="one")
    assert ask(it, KNOWLEDGE, FRANCE, max_tokens=1, cache_salt=salt).finished.cached_tokens == 0
    assert ask(it, KNOWLEDGE, FRANCE, max_tokens=1, cache_salt=salt).finished.cached_tokens > 0


def test_two_at_once(it: Contender) -> None:
    """Both are answered at the same time, and neither sees the other's words."""
    replies: dict[str, Reply] = {}
    spans: dict[str, tuple[float, float]] = {}

    def worker(question: str) -> None:
        began = time.monotonic()
        replies[question] = ask(it, question, max_tokens=40)
        spans[question] = (began, time.monotonic())

    threads = [threading.Thread(target=worker, args=(question,)) for question in (FRANCE, COUNT)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert "Paris" in replies[FRANCE].text and "Paris" not in replies[COUNT].text
    assert replies[FRANCE].finished.reason == "stop" and replies[COUNT].finished.reason == "length"
    assert spans[FRANCE][1] < spans[COUNT][1], "the short answer doesn't wait for the long one"


def test_the_identity_follows_the_model(it: Contender, tmp_path: Path) -> None:
    said = it.engine.identity()
    assert said == it.identity() == it.engine.identity()
    assert all(said.as_dict().values())
    if "model_dir" in it.options:
        copy = tmp_path / "copy"
        shutil.copytree(it.options["model_dir"], copy)
        config = copy / "config.json"
        config.write_text(config.read_text() + " ")
        changed = it.identity(model_dir=copy)
    else:
        changed = it.identity(model="another")
        assert it.identity(base_url="http://elsewhere/v1") not in (said, changed)
    assert changed.model != said.model


def test_a_session_may_end_whether_or_not_it_is_known(it: Contender) -> None:
    it.engine.end_session("nobody")
    first = ask(it, FRANCE, session="a person")
    it.engine.end_session("a person")
    it.engine.end_session("a person")
    assert ask(it, FRANCE, session="a person").text == first.text


def test_a_report_is_of_numbers(it: Contender) -> None:
    report = it.engine.kv_report()
    assert all(isinstance(value, int) and value >= 0 for value in report.values())
    if it.forgets:
        assert {"live_sequences", "live_tokens", "live_bytes"} <= set(report)


def test_a_snapshot_can_be_sent_along(it: Contender) -> None:
    ask(it, FRANCE, max_tokens=2, cache_salt="told", session="told")
    told = json.loads(json.dumps(it.engine.kv_snapshot().as_dict()))
    assert set(told) == {"totals", "scopes", "sessions", "requests"}
    assert all(value >= 0 for value in told["totals"].values())
    if it.forgets:
        assert told["totals"]["bytes_per_token"] > 0
        assert {"live_sequences", "live_tokens", "live_bytes"} <= set(told["totals"])


def test_a_session_that_ends_takes_nothing_from_others(it: Contender) -> None:
    for session in ("one", "two"):
        ask(it, KNOWLEDGE, FRANCE, max_tokens=2, cache_salt="ends", session=session)
    it.engine.end_session("one")
    it.engine.end_session("never heard of")
    again = ask(it, KNOWLEDGE, FRANCE, max_tokens=2, cache_salt="ends", session="two").finished
    assert again.cached_tokens > 0.8 * again.prompt_tokens


def test_what_vllm_counts_is_in_its_report(it: Contender) -> None:
    if it.kind != "vllm":
        pytest.skip("the others count for themselves")
    it.engine.reset()
    before = counted(it)
    first, second = (ask(it, KNOWLEDGE, FRANCE, max_tokens=2, cache_salt="count").finished for _ in range(2))
    after = counted(it)
    assert after["prefix_queries"] - before["prefix_queries"] == first.prompt_tokens + second.prompt_tokens
    assert after["prefix_hits"] - before["prefix_hits"] == second.cached_tokens > 0
    assert after["capacity_tokens"] > WINDOW and after["running_sequences"] == 0


def counted(it: Contender) -> dict[str, int]:
    """The report, once vLLM has written its last step down."""
    time.sleep(0.5)
    return it.engine.kv_report()
