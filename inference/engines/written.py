"""The token ids of answers that were written here, so that a later prompt holds them as they were written.

Text doesn't say which tokens made it: read again by the tokenizer, an answer may come out as others, and all
that was computed behind the first different token is of no use.
"""

import hashlib
import re
import threading
from array import array
from collections import Counter, OrderedDict
from collections.abc import Sequence

from inference.engines.tokenizer import ChatTokenizer
from inference.understanding.turns import Turn, Turns

# A kilobyte each, for answers of 200 tokens.
MOST = 10_000


class WrittenAnswers:
    """By scope, text, and the prompt's tokens before it. The oldest are forgotten first. Thread-safe."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._answers: OrderedDict[tuple[str, bytes, bytes], array[int]] = OrderedDict()
        self._texts: Counter[tuple[str, bytes]] = Counter()
        self._lock = threading.Lock()

    def remember(self, scope: str, prompt: Sequence[int], text: str, answer: Sequence[int]) -> None:
        """`answer` (no end-of-turn token in it) was written behind `prompt` and reads `text`."""
        key = (scope, _digest_of_text(text), _digest(prompt))
        with self._lock:
            if key not in self._answers:
                self._texts[key[:2]] += 1
            self._answers[key] = array("i", answer)
            self._answers.move_to_end(key)
            while len(self._answers) > self._most:
                self._drop_oldest()

    def _drop_oldest(self) -> None:
        (scope, text, _), _ = self._answers.popitem(last=False)
        self._texts[scope, text] -= 1
        if not self._texts[scope, text]:
            del self._texts[scope, text]

    def remember_run(
        self, tokenizer: ChatTokenizer, scope: str, prompt: Sequence[int], text: str, output: Sequence[int]
    ) -> None:
        """The answer `output` behind `prompt`, an end-of-turn token perhaps included, of which `text` was
        given out; nothing where that text doesn't stand for all of it."""
        answer = output[:-1] if output and output[-1] in tokenizer.end_ids else output
        if answer and tokenizer.decode(answer) == text:
            self.remember(scope, prompt, text, answer)

    def knows(self, scope: str, text: str) -> bool:
        """Whether any answer reads `text`; cheaper than `recall`, which needs the tokens before it."""
        with self._lock:
            return (scope, _digest_of_text(text)) in self._texts

    def recall(self, scope: str, prompt: Sequence[int], text: str) -> Sequence[int] | None:
        """The tokens of the answer that was written behind `prompt` and reads `text`, or None."""
        with self._lock:
            return self._answers.get((scope, _digest_of_text(text), _digest(prompt)))

    def forget(self) -> None:
        with self._lock:
            self._answers.clear()
            self._texts.clear()


def _digest(tokens: Sequence[int]) -> bytes:
    return hashlib.sha256(array("i", tokens).tobytes()).digest()


def _digest_of_text(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def prompt_tokens(
    tokenizer: ChatTokenizer, turns: Turns, scope: str, written: WrittenAnswers, most: int | None = None
) -> list[int]:
    """The prompt of `turns` as token ids. Answers that were written here, behind just these tokens, are put
    in as they were written. All else is read from the rendered text, and so is everything when the template
    doesn't repeat the answers word for word, or when there would be more than `most` tokens: as written an
    answer can be longer than as read."""
    ids = _as_written(tokenizer, turns, scope, written)
    return ids if most is None or len(ids) <= most else tokenizer.encode(turns)


def _as_written(tokenizer: ChatTokenizer, turns: Turns, scope: str, written: WrittenAnswers) -> list[int]:
    text = tokenizer.render(turns)
    known = {
        place: turn["content"]
        for place, turn in enumerate(turns)
        if turn["role"] == "assistant" and written.knows(scope, turn["content"])
    }
    parts = _around(tokenizer, turns, known)
    if "".join(part + known.get(place, "") for place, part in parts) != text:
        return tokenizer.encode_text(text)
    ids: list[int] = []
    unread = ""
    for place, part in parts:
        ids, unread = _joined(tokenizer, ids, unread + part, known.get(place, ""), scope, written)
    return [*ids, *tokenizer.encode_text(unread)]


def _joined(
    tokenizer: ChatTokenizer,
    ids: list[int],
    unread: str,
    answer: str,
    scope: str,
    written: WrittenAnswers,
) -> tuple[list[int], str]:
    """`ids`, then the text `unread`, then an answer: what of it is tokens now, and the text that isn't."""
    if not answer:
        return ids, unread
    before = [*ids, *tokenizer.encode_text(unread)]
    tokens = written.recall(scope, before, answer)
    return (ids, unread + answer) if tokens is None else ([*before, *tokens], "")


def _around(tokenizer: ChatTokenizer, turns: Turns, known: dict[int, str]) -> list[tuple[int, str]]:
    """The rendered text before each known answer, with the answer's place among the turns; last, under -1,
    what follows them."""
    marked: list[Turn] = [
        {"role": turn["role"], "content": f"\0{place}\0"} if place in known else turn
        for place, turn in enumerate(turns)
    ]
    texts = re.split("\0[0-9]+\0", tokenizer.render(marked))
    return list(zip([*known, -1], texts, strict=False))
