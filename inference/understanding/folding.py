"""One script for texts that are to be compared: traditional characters to simplified, wide forms to plain
ones. Case is kept, since it tells names from words."""

import re
import unicodedata
from functools import cache

from opencc import OpenCC

from .script import HAN

_SPACES = re.compile(r"\s+")
# Compatibility folding would make other numbers of these: x² is not x2, ½ is not 12.
_RAISED = {ord(raised): f"^{plain}" for raised, plain in zip("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789", strict=True)}
_FRACTIONS = {ord(sign): f" {value} " for sign, value in {"½": "0.5", "¼": "0.25", "¾": "0.75"}.items()}
_QUOTES = str.maketrans("“”„«»「」『』‘’`´", '"""""""""' + "''''")
_INVISIBLE = dict.fromkeys(
    [0x00AD, 0x200B, 0x200C, 0x2060, 0xFEFF, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
)


class _Simplified(dict[int, str]):
    """Traditional to simplified for `str.translate`, character by character: enough to compare by. Each
    character is looked up once."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = str(_converter().convert(char)) if HAN.match(char) else char
        return self[code]


@cache
def _converter() -> OpenCC:
    return OpenCC("t2s")


_SIMPLIFIED = _Simplified()


def fold(text: str) -> str:
    """The text in plain characters, spaces collapsed; "" may come out. Idempotent for comparison's purposes;
    its length may differ from the text's."""
    if text.isascii():
        return _SPACES.sub(" ", text).strip()
    text = text.translate(_INVISIBLE).translate(_RAISED).translate(_FRACTIONS)
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES).translate(_SIMPLIFIED)
    return _SPACES.sub(" ", text).strip()


def simplified(text: str) -> str:
    """The text in simplified characters, each in its place."""
    return text if text.isascii() else text.translate(_SIMPLIFIED)
