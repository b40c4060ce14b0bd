"""Is one question the other with a typo in it? Only where it can hardly be anything else.

A word that differs is taken for a typo of another if it is a small step away and no word of its own, while
the other is one: "enviroment" of "environment", but not "Austria" of "Australia" nor "unable" of "enable".
Digits, names in code and Chinese characters are never typos.
"""

import re
from collections import Counter

from rapidfuzz.distance import OSA

from inference.embedding import is_word
from inference.understanding.normalise import normalise

_WORD = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_")
_ORDERED = re.compile(r"[\u3400-\u9fff]|[a-z]{4,}|\d+")
_LATIN = re.compile(r"[a-z]+")
# The first letter is hardly ever the mistyped one, and in short words every letter counts.
_LEAST = 5
_MOST_TYPOS = 2


def mistyped(a: str, b: str) -> bool:
    """Do `a` and `b` differ in a typo or two, and in nothing else?"""
    left, right = _WORD.findall(normalise(a)), _WORD.findall(normalise(b))
    if len(left) != len(right):
        return False
    different = [(x, y) for x, y in zip(left, right, strict=True) if x != y]
    return 0 < len(different) <= _MOST_TYPOS and all(_is_typo(x, y) for x, y in different)


def rearranged(a: str, b: str) -> bool:
    """Are these the same characters in another order, to within a tenth of them? Such texts look the same to
    an embedder, and often ask the opposite: from A to B, from B to A."""
    left, right = Counter(normalise(a).replace(" ", "")), Counter(normalise(b).replace(" ", ""))
    other = ((left - right) + (right - left)).total()
    return other <= 0.1 * (left + right).total() / 2 and _order(a) != _order(b)


def _order(text: str) -> list[str]:
    """Its longer words, and for Chinese its characters, as they follow each other."""
    return _ORDERED.findall(normalise(text))


def _is_typo(a: str, b: str) -> bool:
    if not (_LATIN.fullmatch(a) and _LATIN.fullmatch(b)) or min(len(a), len(b)) < _LEAST or a[0] != b[0]:
        return False
    steps = 1 if min(len(a), len(b)) < 8 else 2
    return OSA.distance(a, b, score_cutoff=steps) <= steps and {is_word(a), is_word(b)} == {True, False}
