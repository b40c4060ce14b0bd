"""A summary without a model: the first sentence of each turn, and the names and figures of the rest."""

import re

from .turns import Turn, Turns
from .window import exchanges

# Four exchanges of this come to about 200 tokens.
QUESTION_CHARS = 90
ANSWER_CHARS = 140
NAMED = 6  # names and figures kept besides, for each exchange, of up to so many characters each
NAME_CHARS = 40

_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？])|\n+")
_FIGURE = r"[$€£¥]?\d[\d.,:/-]*\d?\s?(?:%|°[CF]?|[A-Za-zµ²³]{1,5}\b|[年月日元块岁个])?"
_NAME = r"\b[A-Z][\w'-]*(?:\s[A-Z][\w'-]*)*"
_QUOTED = r"[“「『《\"`][^”」』》\"`\n]{2,40}[”」』》\"`]"
_NAMED = re.compile(f"{_QUOTED}|{_NAME}|{_FIGURE}")
_FIGURES = re.compile(r"\d+(?:[.,]\d+)*")


def extract(turns: Turns) -> str:
    """What was asked and answered, in a line for each exchange."""
    return "\n".join(_line(group) for group in exchanges(turns))


def _line(group: list[Turn]) -> str:
    said: list[str] = []
    for turn in group:
        asked = turn["role"] == "user"
        said.append(
            ("Q: " if asked else "A: ") + _opening(turn["content"], QUESTION_CHARS if asked else ANSWER_CHARS)
        )
    line = " ".join(said)
    named = _named_elsewhere(group, line)
    return f"{line} ({', '.join(named)})" if named else line


def _opening(text: str, most: int) -> str:
    """The first sentence of `text`, at most `most` characters of it."""
    sentence = next((part.strip() for part in _SENTENCE_END.split(text) if part.strip()), "")
    if len(sentence) <= most:
        return sentence
    cut = sentence[:most]
    return (cut[: cut.rfind(" ")] if " " in cut[most // 2 :] else cut) + "…"


def _named_elsewhere(group: list[Turn], line: str) -> list[str]:
    """Names and figures of these turns that `line` doesn't hold. The word that opens a sentence is written
    large whether it is a name or not, and doesn't count."""
    found: dict[str, None] = {}
    for turn in group:
        for sentence in _SENTENCE_END.split(turn["content"]):
            opens = len(sentence) - len(sentence.lstrip())
            for match in _NAMED.finditer(sentence):
                name = match.group().strip(" .,:;/-")
                if match.start() > opens or name[:1].isdigit():
                    found[name] = None
    return [name for name in found if name and len(name) <= NAME_CHARS and name not in line][:NAMED]


def figures(text: str) -> set[str]:
    """Every number in `text`, as written."""
    return set(_FIGURES.findall(text))
