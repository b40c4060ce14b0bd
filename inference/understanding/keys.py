"""Keys under which the same question, spelled or ordered a little differently, is found by an index.

They bring candidates; whether one means the same is for the fingerprint to say.
"""

import re
import zlib
from collections.abc import Iterable

import numpy as np

from .asking import taken_out
from .normalise import normalise

_CJK = r"\u3400-\u4dbf\u4e00-\u9fff"
# An identifier or number: "12345", "AB-9981", "v2.1", "#77". Not an ordinal in a word such as "mp3".
_PARAMETER = re.compile(r"(?<![^\W_])[#№]?(?:[a-z]{1,4}-?)?\d+(?:[.,:/-]\d+)*(?![a-z])", re.IGNORECASE)
_WORD = re.compile(rf"[{_CJK}]+|[^\W_]+(?:['’.+#-][^\W_]+)*[+#]*")

# Words without which a question asks the same. Never a negation, a direction, a number or a question word:
# those decide what is asked.
_IDLE_EN = frozenset(
    "a an the please pls kindly hi hello hey thanks thank you dear so well just actually basically really "
    "tell me us let know explain could would can i want to like wonder wondering whether there is are be "
    "s".split()
)
# Particles at the end only: inside they are parts of words (酒吧, 什么).
_IDLE_ZH = re.compile(
    "请问|麻烦(?:你|您)|你好|您好|我想(?:问|知道|了解)(?:一下)?|一下|谢谢|告诉我|的"
    "|(?<!什)(?<!怎)[了吗呢啊呀吧嘛哦哈么]+$"
)


def keywords(text: str) -> tuple[str, ...]:
    """What is left of a question without courtesies and particles, order kept: words, and runs of Chinese."""
    plain = _IDLE_ZH.sub("", taken_out(normalise(text)))
    return tuple(word for word in _WORD.findall(plain) if word not in _IDLE_EN)


def template(text: str) -> tuple[str, tuple[str, ...]]:
    """The question with its numbers and identifiers taken out, and those, in order: "订单 12345 到哪了" is
    ("订单 {} 到哪了", ("12345",)). Without any, the parameters are empty."""
    plain = normalise(text)
    return _PARAMETER.sub("{}", plain), tuple(_PARAMETER.findall(plain))


# 10 bands of 2: texts that share 0.8 of their trigrams meet in at least one band in 9,999 of 10,000 cases,
# those that share 0.2 in a third.
_BANDS, _ROWS = 10, 2
_PRIME = (1 << 31) - 1
_RANDOM = np.random.default_rng(20_24)
_A = _RANDOM.integers(1, _PRIME, size=_BANDS * _ROWS, dtype=np.int64)
_B = _RANDOM.integers(0, _PRIME, size=_BANDS * _ROWS, dtype=np.int64)


def bands(text: str, salt: str) -> list[int]:
    """Signed 32-bit numbers of which texts that differ by a typo share at least one (min-hashing over
    trigrams of characters); those of another salt share none but by chance."""
    grams = {zlib.crc32(gram.encode()) % _PRIME for gram in _trigrams(normalise(text))}
    if not grams:
        return []
    hashed = (np.fromiter(grams, np.int64)[:, None] * _A + _B) % _PRIME
    least = hashed.min(axis=0).reshape(_BANDS, _ROWS)
    texts = (f"{salt}:{band}:{row}".encode() for band, row in enumerate(least.tolist()))
    return sorted({zlib.crc32(text) - (1 << 31) for text in texts})


def _trigrams(text: str) -> Iterable[str]:
    padded = f" {text} "
    return (padded[at : at + 3] for at in range(len(padded) - 2)) if text else ()
