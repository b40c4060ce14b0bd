"""Another question in nearly the same words: rules that change what is asked.

Each returns the changed text, or None where it doesn't fit. They make negatives; one part of a text that
stands in another wording of it too can be changed in both alike, which makes positives out of positives.
"""

import random
import re
from collections.abc import Callable, Sequence
from functools import cache

from inference.evaluation.question_words import words

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NUMBER_ZH = re.compile(
    r"(?<![一万第星期周统])[二三四五六七八九两](?=[个天次位人岁号周年月小分块元斤公米层台张件条倍成])"
)
_NUMBER_EN = re.compile(r"\b(two|three|four|five|six|seven|eight|nine|ten|twelve|twenty)\b", re.IGNORECASE)
_WORDS_EN = "two three four five six seven eight nine ten twelve twenty".split()
_FROM_TO = [
    re.compile(
        r"从(?P<a>[^从到，,。？]{1,12}?)(?:转|寄|搬|飞|坐车|迁)?(?:到|去|转到|换成|改成|转成)"
        r"(?P<b>[^，,。？怎要多有需可能会]{1,10})"
    ),
    re.compile(
        r"(?:把|将)(?P<a>[^，。？]{1,10}?)(?:转换成|转成|换成|改成|变成|转为|导入|同步到|转到)"
        r"(?P<b>[^，。？怎要多有]{1,8})"
    ),
    re.compile(
        r"(?P<a>[\u4e00-\u9fffA-Za-z]{2,6})比"
        r"(?P<b>[\u4e00-\u9fffA-Za-z]{2,6}?)(?=[高低贵好快慢多少大小长重便])"
    ),
    re.compile(r"(?P<a>[A-Za-z]+ ?\d*)(?:转|换成|改成|迁移到|转成)(?P<b>[A-Za-z]+ ?\d*)"),
    re.compile(r"\bfrom (?P<a>(?:[\w'.+#]+ ?){1,3}?) ?\b(?:to|into) (?P<b>(?:[\w'.+#]+ ?){1,2}\b)"),
    re.compile(
        r"\b(?P<a>[\w'.+#]+) (?:into|to|instead of|rather than|before|after|over) (?:an? )?(?P<b>[\w'.+#]+)"
    ),
]
_OPTIONAL = {
    "zh": re.compile(r"(为什么|怎么|如何)(?=[\u4e00-\u9fff]{3,})"),
    "en": re.compile(r"\b(to) (?=[a-z]{3,})"),
}

Change = tuple[str, str]


def _stands(lang: str, word: str, text: str) -> bool:
    return _pattern(lang, word).search(text) is not None


@cache
def _pattern(lang: str, word: str) -> re.Pattern[str]:
    if len(word) == 1 and not word.isascii():
        # 天 in 三天, not in 天猫.
        return re.compile(rf"(?<=[\d一二三四五六七八九十两几每]){word}(?![\u4e00-\u9fff]?猫)")
    if word.isascii():
        return re.compile(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])", re.IGNORECASE)
    return re.compile(re.escape(word))


def _replace(lang: str, text: str, old: str, new: str) -> str:
    if lang == "en" and old[:1].isupper() and not new[:1].isupper():
        new = new[:1].upper() + new[1:]
    return _pattern(lang, old).sub(lambda match: new, text, count=1)


def exchanges(rng: random.Random, text: str, lang: str) -> list[Change]:
    """Parts of `text` that can be changed for another of their kind: numbers, places, products, units,
    days."""
    found = []
    for match in _NUMBER.finditer(text):
        found.append((match[0], _other_number(rng, match[0])))
    if lang == "zh":
        found += [
            (m[0], rng.choice([w for w in "二三四五六七八九" if w != m[0]]))
            for m in _NUMBER_ZH.finditer(text)
        ]
    else:
        found += [
            (m[0], rng.choice([w for w in _WORDS_EN if w != m[0].lower()])) for m in _NUMBER_EN.finditer(text)
        ]
    for row in words(lang).kinds:
        for word in row:
            if _stands(lang, word, text):
                found.append(
                    (
                        word,
                        rng.choice([other for other in row if other not in text and other != word] or [word]),
                    )
                )
    return [(old, new) for old, new in found if old != new]


def _other_number(rng: random.Random, written: str) -> str:
    value = float(written)
    if "." in written:
        return str(round(value + rng.choice([0.1, 0.2, 1, 0.5, 2]), 1))
    if 1900 < value < 2100:
        return str(int(value) + rng.choice([-2, -1, 1, 2, 3]))
    near = [
        int(value) + 1,
        int(value) + 2,
        max(1, int(value) - 1),
        int(value) * 2,
        int(value) * 10,
        int(value) + 5,
    ]
    return str(rng.choice([n for n in near if n != int(value)]))


def _opposite(rng: random.Random, text: str, lang: str) -> str | None:
    found = []
    for one, other in words(lang).opposites:
        for old, new in ((one, other), (other, one)):
            if _stands(lang, old, text) and not (old in new and _stands(lang, new, text)):
                found.append((old, new))
    if not found:
        return None
    longest = max(len(old) for old, _ in found)
    old, new = rng.choice([pair for pair in found if len(pair[0]) >= min(longest, 2)])
    return _replace(lang, text, old, new)


def _turned(rng: random.Random, text: str, lang: str) -> str | None:
    for pattern in _FROM_TO:
        match = pattern.search(text)
        if match:
            a, b = match["a"].strip(), match["b"].strip()
            if a.casefold() == b.casefold():
                return None
            (a0, a1), (b0, b1) = match.span("a"), match.span("b")
            b1 = b0 + len(match["b"].rstrip())
            a1 = a0 + len(match["a"].rstrip())
            return text[:a0] + b + text[a1:b0] + a + text[b1:]
    return None


def _exchanged(rng: random.Random, text: str, lang: str) -> str | None:
    found = exchanges(rng, text, lang)
    return _replace(lang, text, *rng.choice(found)) if found else None


def _wanted(rng: random.Random, text: str, lang: str) -> str | None:
    rows = [(row, way) for row in words(lang).asked for way in row if _stands(lang, way, text)]
    if not rows:
        return None
    row, old = max(rows, key=lambda found: len(found[1]))
    return _replace(lang, text, old, rng.choice([way for way in row if way != old]))


def _narrowed(rng: random.Random, text: str, lang: str) -> str | None:
    return text.rstrip("?？。. ") + rng.choice(words(lang).riders)


def _negated(rng: random.Random, text: str, lang: str) -> str | None:
    match = _OPTIONAL[lang].search(text)
    if not match:
        return None
    return (
        text[: match.end()] + "不" + text[match.end() :]
        if lang == "zh"
        else text[: match.start()] + "not " + text[match.start() :]
    )


_RULES: Sequence[tuple[Callable[[random.Random, str, str], str | None], float]] = (
    (_opposite, 3),
    (_turned, 4),
    (_exchanged, 4),
    (_wanted, 1.5),
    (_narrowed, 0.5),
    (_negated, 0.4),
)


def alter(rng: random.Random, text: str, lang: str) -> str:
    """A near copy of `text` that asks for something else."""
    rules, weights = zip(*_RULES, strict=True)
    for rule in rng.choices(rules, weights, k=8):
        changed = rule(rng, text, lang)
        if changed is not None and changed.casefold() != text.casefold():
            return changed
    changed = _narrowed(rng, text, lang)
    assert changed is not None
    return changed


def exchange_in_all(rng: random.Random, texts: Sequence[str], lang: str) -> list[str] | None:
    """Wordings of one question with the same part changed in each, None where they share none."""
    common = [
        (old, new) for old, new in exchanges(rng, texts[0], lang) if all(_stands(lang, old, t) for t in texts)
    ]
    if not common:
        return None
    old, new = rng.choice(common)
    return [_replace(lang, text, old, new) for text in texts]
