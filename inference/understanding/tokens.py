"""A text as words, in the order said: Latin words with their stem, Chinese words with their part of speech,
numbers, names of things in code, signs."""

import re
from functools import lru_cache
from typing import NamedTuple

import rjieba

from . import numerals

HAN = r"\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003134f"
_TOKEN = re.compile(
    rf"""(?x)
    (?P<code> `[^`\n]+` | https?://\S+ | [\w.+-]+@[\w-]+\.\w[\w.]* | (?<!\w)--?[a-zA-Z][\w-]+
      | 0x[0-9a-fA-F]+ | \w*_\w+(?:\(\))? )
  | (?P<number> (?>\d+(?:\.\d+)?)[百千万亿]+ | (?>\d+(?:[.,]\d+)*(?:[:/]\d+)*) )
  | (?P<latin> [A-Za-zÀ-ɏ][A-Za-z0-9À-ɏ]*(?:[.&'’-][A-Za-z0-9À-ɏ]+)*(?:\+\+|\#)? )
  | (?P<han> [{HAN}]+ )
  | (?P<other> [^\W\d_]+ )
  | (?P<sign> [=!<>&|*^~:+-]{{2,}} | [\u2190-\u21ff\u2300-\u23ff\u2600-\u2bff\U0001f000-\U0001faff]
      | [%°$€£¥#] | (?<![\w)])-(?=\d) | [,;.!?。,，、;:]+ )
    """
)
_PERCENT = re.compile(r"百分之([\d.零〇一二两三四五六七八九十百点]+)")


class Word(NamedTuple):
    """`text` is lower case. `kind` is code, number, latin, han, other or sign; `tag` is the part of speech
    that the segmenter gives a Chinese word (n…, v…, m, r …), else "". `capital`: written with a capital."""

    text: str
    kind: str
    tag: str = ""
    capital: bool = False


_PLURALS = (
    ("ies", "y"),
    ("sses", "ss"),
    ("shes", "sh"),
    ("ches", "ch"),
    ("xes", "x"),
    ("toes", "to"),
    ("s", ""),
)


@lru_cache(maxsize=4096)
def singular(word: str) -> str:
    """An English word without the ending of a plural. Words that are short, hold a digit or would lose their
    last vowel (https is not the plural of http) stay as they are."""
    if len(word) < 4 or not word.isalpha() or not word.isascii():
        return word
    ending, kept = next((pair for pair in _PLURALS if word.endswith(pair[0])), ("", ""))
    shorter = word[: len(word) - len(ending)] + kept
    keeps = not ending or len(shorter) < 3 or not set(shorter) & set("aeiouy")
    return word if keeps or (ending == "s" and word[-2] in "sui") else shorter


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """An English word without any ending. Crude, and only ever compared with another stem."""
    word = singular(word)
    if len(word) < 5 or not word.isalpha() or not word.isascii():
        return word
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("eed"):
            word = word[: len(word) - len(ending)]
            if word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def read_words(folded: str) -> list[Word]:
    """The words of a folded text. Marks of punctuation are signs of their own: phrases end at them."""
    words: list[Word] = []
    for match in _TOKEN.finditer(_PERCENT.sub(r"\1%", folded)):
        kind, text = str(match.lastgroup), match.group()
        if kind == "latin" and not text.isalnum():
            words.extend(_pieces(text))
            continue
        if kind == "han":
            words.extend(_segment(text))
        else:
            words.append(Word(text.strip("`").lower(), kind, "", text[0].isupper()))
    return words


_ENDING = re.compile(r"['’](?:s|ve|re|ll|d|m)$", re.IGNORECASE)
_HYPHEN = re.compile(r"(?<=[A-Za-z]{3})-(?=[A-Za-z]{3})")


def _pieces(text: str) -> list[Word]:
    """A word without its contracted ending (driver's, you've), and the parts of a compound (self-help)."""
    text = _ENDING.sub("", text)
    parts = [text] if text.lower() in numerals.WORDS else _HYPHEN.split(text)
    return [Word(part.lower(), "latin", "", part[0].isupper()) for part in parts]


def _segment(text: str) -> list[Word]:
    """Chinese words by dictionary alone: the segmenter's guesses at unknown words glue particles to them
    (熟要). What it leaves as single nouns side by side (微 信) is one name, and 一 百 万 one number."""
    words: list[Word] = []
    for piece, tag in rjieba.tag(text, False):
        last = words[-1] if words else None
        scales = len(piece) - len(piece.lstrip("百千万亿"))
        if last and tag == last.tag == "m" and scales:
            words[-1] = Word(last.text + piece[:scales], "han", "m")
            if piece[scales:]:
                words.append(Word(piece[scales:], "han", "n"))
        elif (last and len(piece) == 1 and tag[:1] in "njg" and last.tag == "name") or (
            last and len(piece) == len(last.text) == 1 and tag[:1] in "njg" and last.tag[:1] in "njg"
        ):
            words[-1] = Word(last.text + piece, "han", "name")
        else:
            words.append(Word(piece, "han", tag))
    return words
