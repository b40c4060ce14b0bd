from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.engines.detokenise import TextStream
from inference.engines.tokenizer import ChatTokenizer


def from_bytes(ids: Sequence[int]) -> str:
    """The hardest tokenizer: one byte a token."""
    return bytes(ids).decode("utf-8", "replace")


def run(ids: Sequence[int], *stop: str) -> tuple[list[str], TextStream]:
    stream = TextStream(from_bytes, stop)
    pieces = []
    for one in ids:
        pieces.append(stream.push(one))
        if stream.stopped:
            break
    return [*pieces, stream.finish()], stream


@given(st.text(max_size=60))
def test_pieces_join_to_the_whole_and_hold_whole_characters(text: str) -> None:
    pieces, _ = run(text.encode())
    assert "".join(pieces) == text.rstrip("\ufffd")


@given(st.text(alphabet="a中🎉", min_size=1, max_size=20), st.integers(1, 3))
def test_an_unfinished_character_at_the_end_is_never_shown(text: str, missing: int) -> None:
    data = text.encode()[:-missing]
    pieces, _ = run(data)
    assert "".join(pieces) == data.decode("utf-8", "ignore")


@given(st.binary(max_size=40))
def test_bytes_that_are_no_text_hold_nothing_up_for_good(data: bytes) -> None:
    pieces, _ = run(data + b"ok")
    assert "".join(pieces) == (data + b"ok").decode("utf-8", "replace")


stops = st.lists(st.text(alphabet="ab中", min_size=1, max_size=4), min_size=1, max_size=3)


@given(st.text(alphabet="ab中", max_size=40), stops)
def test_text_ends_before_the_first_stop_string_wherever_the_tokens_break(text: str, stop: list[str]) -> None:
    pieces, stream = run(text.encode(), *stop)
    # The first one to be complete ends the text: nothing after it was ever read.
    ends = [(text.find(one) + len(one), text.find(one)) for one in stop if one in text]
    assert stream.stopped == bool(ends)
    if not ends:
        assert "".join(pieces) == text
        return
    first_end = min(ends)[0]
    read = text[:first_end]
    assert "".join(pieces) == read[: min(read.find(one) for one in stop if one in read)]


def test_only_what_may_become_a_stop_string_is_held() -> None:
    stream = TextStream(from_bytes, ("STOP",))
    assert [stream.push(byte) for byte in b"a ST a STO"] == list("a ") + ["", "", "ST "] + list("a ") + [
        ""
    ] * 3
    assert stream.finish() == "STO"


@pytest.mark.parametrize(
    "text",
    ["hello world", "  two spaces", "你好，世界。缓存", "🎉👩‍👩‍👧‍👦 flag 🇨🇳", "def f(x):\n    return x\n"],
)
def test_with_the_models_tokenizer(model_dir: Path, text: str) -> None:
    tokenizer = ChatTokenizer(model_dir)
    ids = tokenizer._core.encode(text, add_special_tokens=False).ids
    stream = TextStream(tokenizer.decode)
    pieces = [stream.push(one) for one in ids]
    assert "".join([*pieces, stream.finish()]) == text
    assert not any("\ufffd" in piece for piece in pieces)
