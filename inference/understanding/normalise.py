"""The same question typed a little differently, brought to one spelling.

Folds what carries no meaning (width, case, spacing, final marks) and nothing that does: digits, operators,
code and negation come out as they went in. Where a rule could touch meaning, it does not apply: that costs a
hit, the other way round costs trust.
"""

import re
import unicodedata
from functools import lru_cache

# Invisible and without meaning between letters. ZWJ and ZWNJ are not among them: they build emoji and words.
_INVISIBLE = dict.fromkeys(
    [0x00AD, 0x200B, 0x2060, 0xFEFF, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
)
_PUNCTUATION = str.maketrans(
    {"、": ",", "“": '"', "”": '"', "「": '"', "」": '"', "‘": "'", "’": "'", "…": "..."}
)
_FENCE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)
# Written like a symbol: keeps its case. snake_case, camelCase, dotted.names, calls(), $vars, --flags, paths.
_SYMBOL = re.compile(
    r"""(?x)
    \S*[_\\/$@\#=<>{}\[\]()|&^*%+~`]\S*     # an operator or bracket inside
    | \S*\w\.\w\S*                          # dotted
    | \S*[^\W\d_A-Z][A-Z]\S*                # camelCase
    | -\S+                                  # a flag
    """
)
_CJK = (
    r"\u2e80-\u2fdf\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\U00020000-\U0003134f"
)
# Chinese is written without spaces; those that are there stand for nothing, but before an operator they may.
_SPACE_BY_CJK = re.compile(rf"""(?<=[{_CJK}]) (?=[\w,.:;!?"'])|(?<=[\w,.:;!?"']) (?=[{_CJK}])""")
# A final question mark or full stop says nothing, unless an operator or another mark precedes it (`.*?`,
# `a ?? b`). A final "!" also says nothing, but after a digit or a single letter it is a factorial.
_FINAL_MARK = re.compile(r"(?:(?<=[^\W_])[?.。]+|(?<=[^\W\d_]{2})!+)$")
_FINAL_MARK_CJK = re.compile(rf"(?<=[{_CJK}])[?.。!~]+$")


def _fold_width(text: str) -> str:
    """Compatibility forms to plain ones (Ａ→A, ：→:), except where that would make digits or operators out
    of something else: x² stays x², ½ stays ½, ㎡ stays ㎡."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", "".join(map(_plain, unicodedata.normalize("NFC", text))))


@lru_cache(maxsize=8_192)
def _plain(char: str) -> str:
    plain = unicodedata.normalize("NFKC", char)
    invents = not char.isdecimal() and any(c.isdecimal() or c in "+-*/<>=⁄" for c in plain)
    wide = unicodedata.east_asian_width(char) in "FH"
    return char if invents and not wide else plain


def _fold_word(word: str) -> str:
    return word if _SYMBOL.fullmatch(word) else word.casefold()


def _fold_prose(text: str) -> str:
    text = _fold_width(text.translate(_INVISIBLE)).translate(_PUNCTUATION)
    return " ".join(_fold_word(word) for word in text.split())


def _strip_final(text: str) -> str:
    """Drop marks and spaces at the very end until nothing more can go."""
    while True:
        shorter = _FINAL_MARK_CJK.sub("", _FINAL_MARK.sub("", text)).rstrip()
        if shorter == text:
            return text
        text = shorter


def _once(text: str) -> str:
    parts, at = [], 0
    for code in _FENCE.finditer(text):
        parts += [_fold_prose(text[at : code.start()]), code.group()]
        at = code.end()
    parts.append(_fold_prose(text[at:]))
    joined = " ".join(part for part in parts if part)
    return joined if _FENCE.search(joined) else _strip_final(_SPACE_BY_CJK.sub("", joined))


# A question is brought to its spelling a dozen times in one decision; longer texts are not kept for that.
_REMEMBERED_CHARS = 300


def normalise(text: str) -> str:
    """One spelling for texts that mean the same character by character. Idempotent; may return ""."""
    return _remembered(text) if len(text) <= _REMEMBERED_CHARS else _settled(text)


def _settled(text: str) -> str:
    # Folding can uncover what a rule looks for (a case fold that decomposes, a mark behind a mark), so it
    # is repeated until it rests. Two rounds are the rule; the bound is for input made to be odd.
    for _ in range(8):
        folded = _once(text)
        if folded == text:
            break
        text = folded
    return text


_remembered = lru_cache(maxsize=4_096)(_settled)
