"""Two answers side by side: which words differ, and which of those are numbers and names."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

import rjieba

from inference.understanding.fingerprint import fingerprint
from inference.understanding.script import is_chinese

Kind = Literal["same", "word", "number", "name"]

# Longer than any answer by far; comparing takes the square of it at worst.
_MOST = 3_000
# Spaces; a number with all that belongs to it; a word, also one with digits (X200); any other sign.
_PIECES = re.compile(r"\s+|\d+(?:[.,:/-]\d+)*%?(?![^\W_])|[^\W_]+(?:['’][^\W\d_]+)*|.", re.DOTALL)
_CHINESE_NUMBER = re.compile(r"第?[零〇一二两三四五六七八九十百千万亿]+[个年月日天次]?")


@dataclass(frozen=True)
class Run:
    """Text in a row that is the same on both sides, or that only this side has, and what it is."""

    text: str
    kind: Kind


@dataclass(frozen=True)
class Sides:
    left: tuple[Run, ...]
    right: tuple[Run, ...]

    @property
    def equal(self) -> bool:
        return all(run.kind == "same" for run in (*self.left, *self.right))


def compare_words(left: str, right: str) -> Sides:
    """Where two texts differ, word by word (a Chinese text is cut into words too)."""
    a, b = list(_words(left)), list(_words(right))
    if len(a) > _MOST or len(b) > _MOST:
        return Sides((Run(left, "word"),), (Run(right, "word"),))
    names = _names(left) | _names(right)
    pieces: tuple[list[tuple[str, bool]], list[tuple[str, bool]]] = ([], [])
    matcher = SequenceMatcher(None, [w.casefold() for w in a], [w.casefold() for w in b], autojunk=False)
    for tag, a1, a2, b1, b2 in matcher.get_opcodes():
        pieces[0].extend((word, tag == "equal") for word in a[a1:a2])
        pieces[1].extend((word, tag == "equal") for word in b[b1:b2])
    return Sides(tuple(_runs(pieces[0], names)), tuple(_runs(pieces[1], names)))


def _words(text: str) -> Iterator[str]:
    for piece in _PIECES.findall(text):
        if is_chinese(piece):
            yield from rjieba.cut(piece)
        else:
            yield piece


def _names(text: str) -> set[str]:
    return {word for _kind, name in fingerprint(text).entities for word in [name, *name.split()]}


def _runs(pieces: list[tuple[str, bool]], names: set[str]) -> Iterator[Run]:
    text, kind = "", ""
    for word, same in pieces:
        # Spaces between two words that differ belong to them.
        now = kind if word.isspace() and kind in ("same", "word") else _kind(word, same, names)
        if now != kind and text:
            yield Run(text, kind)  # type: ignore[arg-type]
            text = ""
        text, kind = text + word, now
    if text:
        yield Run(text, kind)  # type: ignore[arg-type]


def _kind(word: str, same: bool, names: set[str]) -> Kind:
    if same:
        return "same"
    if any(letter.isdigit() for letter in word) or _CHINESE_NUMBER.fullmatch(word):
        return "number"
    return "name" if word.casefold() in names else "word"
