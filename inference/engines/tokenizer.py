"""A model's own tokenizer and chat template, as far as an engine needs them."""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from inference.engines.prompt import defuse
from inference.understanding.turns import Turns

# Turns come back with every question of their conversation. At 130 tokens each these are a few MB.
REMEMBERED_TEXTS = 4096

# What pieces of a prompt may look like around a control token.
_SEAMS = (("Hello", "world"), ("a ", " b"), ("\n", "\n\n"), ("", " The"), ("你好", "。"), ("1", "2"))


class ChatTokenizer:
    """Turns to token ids and back, for the model in `model_dir`. Safe to share between threads: it calls the
    tokenizer's immutable core, where the wrapper around it would set padding and fail with "Already
    borrowed" under two threads. Takes about a second to load and needs no torch."""

    def __init__(self, model_dir: Path) -> None:
        from transformers import AutoTokenizer

        self._wrapper = AutoTokenizer.from_pretrained(model_dir, local_files_only=True)
        self._core = self._wrapper.backend_tokenizer
        added = self._core.get_added_tokens_decoder().values()
        # A mark of one character could not be broken and is no control token anyone would miss.
        self._marks = tuple(token.content for token in added if token.special and len(token.content) > 1)
        self._between_marks = re.compile("(" + "|".join(map(re.escape, self._marks)) + ")")
        self._plain = lru_cache(REMEMBERED_TEXTS)(self._defused)
        self._piece = lru_cache(REMEMBERED_TEXTS)(self._read)
        self._in_pieces = self._reads_in_pieces()
        self.end_ids = self._end_ids(model_dir)

    def _reads_in_pieces(self) -> bool:
        """Whether what stands on one side of a control token never changes how the other side is read."""
        return bool(self._marks) and all(
            self._read(before + mark + after) == (*self._read(before), *self._read(mark), *self._read(after))
            for mark in self._marks
            for before, after in _SEAMS
        )

    def _end_ids(self, model_dir: Path) -> frozenset[int]:
        """The tokens that end an answer."""
        file = model_dir / "generation_config.json"
        listed = json.loads(file.read_text()).get("eos_token_id") if file.exists() else None
        ids = set(listed) if isinstance(listed, list) else {listed}
        ids.add(self._wrapper.eos_token_id)
        return frozenset(one for one in ids if one is not None)

    def render(self, turns: Turns) -> str:
        """The prompt as text, open for the assistant's answer. Control tokens inside a turn are defused."""
        safe = [{"role": turn["role"], "content": self._plain(turn["content"])} for turn in turns]
        return str(self._wrapper.apply_chat_template(safe, tokenize=False, add_generation_prompt=True))

    def encode(self, turns: Turns) -> list[int]:
        """The prompt as token ids."""
        return self.encode_text(self.render(turns))

    def encode_text(self, rendered: str) -> list[int]:
        """The token ids of a rendered prompt, or of a part of one that begins and ends at any place."""
        if not self._in_pieces:
            return list(self._read(rendered))
        return [token for piece in self._between_marks.split(rendered) for token in self._piece(piece)]

    def _read(self, text: str) -> tuple[int, ...]:
        # The template writes its own control tokens: adding them again would double the first one.
        return tuple(self._core.encode(text, add_special_tokens=False).ids)

    def encode_plain(self, text: str) -> list[int]:
        """Text by itself as token ids, no template around it."""
        return list(self._read(self._plain(text)))

    def count(self, turns: Turns) -> int:
        """The prompt's length in tokens."""
        return len(self.encode(turns))

    def decode(self, ids: Sequence[int]) -> str:
        """Text of `ids` without control tokens; bytes that make no whole character come out as U+FFFD."""
        return str(self._core.decode(list(ids), skip_special_tokens=True))

    def _defused(self, text: str) -> str:
        # Half a surrogate pair is legal in JSON and in a str, but not for the tokenizer.
        return defuse(text.encode("utf-8", "replace").decode(), self._marks)
