"""Which language a text is in, and which one its answer should be in."""

import re
from functools import lru_cache
from typing import Literal

from .folding import fold
from .form import take_form

Language = Literal["en", "zh", "other", ""]

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003134f]")
_LATIN_WORD = re.compile(r"[A-Za-z][A-Za-z'’]*")
_OTHER = re.compile(r"[^\W\d_]")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`|https?://\S+", re.DOTALL)

# There the answer may be in the question's language, in the one asked for, or in both.
_SAYING = re.compile(r"怎么[说讲]|咋[说讲]|翻译|\bsay\b|\btranslat", re.IGNORECASE)


def language(text: str) -> Language:
    """The language of the prose; code and addresses don't count. A Chinese sentence about an English product
    is Chinese: one Han character says as much as a Latin word. "" where there are no letters."""
    prose = _CODE.sub(" ", text)
    han, latin = len(_HAN.findall(prose)), len(_LATIN_WORD.findall(prose))
    if han and han >= latin:
        return "zh"
    if latin:
        return "en" if latin >= len(_OTHER.findall(_LATIN_WORD.sub("", prose))) / 4 else "other"
    return "other" if _OTHER.search(prose) else ""


@lru_cache(maxsize=256)
def asked_language(question: str) -> Language:
    """The language that the answer should be in: the one asked for ("in English", "用英文回答"), or else the
    question's own. "other" for any but English and Chinese."""
    asked = _named(question).get("language", "")
    if asked in ("en", "zh"):
        return "en" if asked == "en" else "zh"
    return "other" if asked else language(question)


def _named(question: str) -> dict[str, str]:
    """The languages that a question names: "language" for the answer, "about" in passing."""
    return {aspect: name for aspect, name in take_form(fold(question))[0] if aspect in ("language", "about")}


def same_language(question: str, answer: str) -> bool:
    """May this answer be given to this question? False where a Chinese question would get an English answer
    (or the other way round) that it did not ask for. What has no language, code or numbers, fits any."""
    wanted, given = asked_language(question), language(answer)
    if not wanted or not given or wanted == "other":
        # Other languages are not told apart here: whoever asked for French has said so in the fingerprint.
        return True
    return given == wanted or bool(_SAYING.search(question) and _named(question))
