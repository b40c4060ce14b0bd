"""The same question typed another way: rules that leave its meaning alone.

They make positives that look like copies. People who write paraphrases write distant ones, and a model that
only sees those learns that a small edit means another question.
"""

import random
import re
from collections.abc import Callable
from functools import cache

from inference.evaluation.question_words import words

Rule = Callable[[random.Random, str], str]

_DIGITS_ZH = dict(zip("123456789", "一二三四五六七八九", strict=True)) | {"10": "十"}
_MEASURES = (
    "个天次位人岁号周年月小时分钟块元斤公里米层台张件条种倍成套间杯瓶份步门场本页行列级期轮颗粒碗勺克升毫"
)
_DIGIT_WITH_MEASURE = re.compile(rf"(?<![\d.:\-/A-Za-z第月年])(10|[1-9])(?=[{_MEASURES}])")
_WRITTEN_WITH_MEASURE = re.compile(
    rf"(?<![一二三四五六七八九十百千万第星期周几两初])([二三四五六七八九十两])(?=[{_MEASURES}])"
)
_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()

_WHAT_IS = re.compile(r"^what(?:'s| is| are) (?!the way|a good|an? easy)([\w' \-]{3,40}?)\?*$", re.IGNORECASE)
_CONDITION = re.compile(
    r"^([^,]{8,}?) ((?:if|when|after|before|while|without|unless) [^,?]{4,60})\?*$", re.IGNORECASE
)
_ADJUNCT = re.compile(
    r"^([^,]{10,}?) ((?:in|on|for|at|using|during|with|from) (?:[\w'.+#]+ ?){1,4})\?*$", re.IGNORECASE
)
_FRONTED_ZH = re.compile(
    r"^([^，,。？?！!]{3,14}?)((?:怎么|如何|怎样|多久|多少|什么时候|为什么|能不能|可以|需要|要|有没有|在哪)[^，,。]{2,30})$"
)
_CLAUSES_ZH = re.compile(r"^([^，,。？?！!]{4,30})[，,]([^，,。！!]{4,30})$")
_WORD = re.compile(r"[a-z]{5,}")
_LATIN_BY_CJK = re.compile(r"(?<=[\u4e00-\u9fff])(?=[A-Za-z0-9])|(?<=[A-Za-z0-9])(?=[\u4e00-\u9fff])")
_MARKS = str.maketrans("？，！：（）", "?,!:()")
_WIDE = str.maketrans({chr(c): chr(c + 0xFEE0) for c in [*range(48, 58), *range(65, 91), *range(97, 123)]})


def _bare(text: str) -> str:
    return text.rstrip("?？。.!！ ")


def _decapitalised(text: str) -> str:
    first = text.split(" ", 1)[0]
    return (
        text
        if first == "I" or first.startswith("I'") or not first[1:].islower()
        else text[:1].lower() + text[1:]
    )


def _synonym(lang: str) -> Rule:
    def rule(rng: random.Random, text: str) -> str:
        low = text.casefold()
        found = [ways for ways in words(lang).synonyms if any(_places(lang, way, low) for way in ways)]
        if not found:
            return text
        ways = rng.choice(found)
        # The longest that stands there: 什么 is also part of 为什么.
        old = max((way for way in ways if _places(lang, way, low)), key=len)
        if lang == "zh" and any(
            old in other and old != other and other in text for row in words(lang).synonyms for other in row
        ):
            return text
        if old == "能" or old == "要" or old == "和":
            return text
        start = _places(lang, old, low)[0]
        new = rng.choice([way for way in ways if way != old])
        if start == 0 and lang == "en":
            new = new[:1].upper() + new[1:]
        return text[:start] + re.sub(r"\bi\b", "I", new) + text[start + len(old) :]

    return rule


def _places(lang: str, way: str, low: str) -> list[int]:
    if lang == "zh":
        return [match.start() for match in re.finditer(re.escape(way), low)]
    return [match.start() for match in re.finditer(rf"(?<!\w){re.escape(way)}(?!\w)", low)]


def _before(lang: str) -> Rule:
    def rule(rng: random.Random, text: str) -> str:
        return rng.choice(words(lang).before) + (_decapitalised(text) if rng.random() < 0.7 else text)

    return rule


def _after(lang: str) -> Rule:
    def rule(rng: random.Random, text: str) -> str:
        added = rng.choice(words(lang).after)
        return (_bare(text) if added[0] in "呢呀啊，哦？?" else text) + added

    return rule


def _mark(rng: random.Random, text: str) -> str:
    bare = _bare(text)
    return bare + rng.choice(["", "?", "？", "。", ".", " ?", "??"])


def _lower(rng: random.Random, text: str) -> str:
    return text.lower() if rng.random() < 0.7 else text.upper() if len(text) < 60 else text.lower()


def _width(rng: random.Random, text: str) -> str:
    return text.translate(_MARKS) if rng.random() < 0.6 else text.translate(_WIDE)


def _spacing(rng: random.Random, text: str) -> str:
    return (
        _LATIN_BY_CJK.sub(" ", text)
        if rng.random() < 0.5
        else re.sub(r"(?<=[\u4e00-\u9fff]) | (?=[\u4e00-\u9fff])", "", text)
    )


def _number_zh(rng: random.Random, text: str) -> str:
    if _DIGIT_WITH_MEASURE.search(text):
        return _DIGIT_WITH_MEASURE.sub(lambda m: "两" if m[1] == "2" else _DIGITS_ZH[m[1]], text)
    plain = {word: digit for digit, word in _DIGITS_ZH.items()} | {"两": "2"}
    return _WRITTEN_WITH_MEASURE.sub(lambda m: plain[m[1]], text)


def _number_en(rng: random.Random, text: str) -> str:
    if rng.random() < 0.5:
        return re.sub(r"(?<![\w.,:/$€£-])([2-9]|1[0-2]?)(?= [a-z])", lambda m: _NUMBER_WORDS[int(m[1])], text)
    words = "|".join(_NUMBER_WORDS[2:])
    return re.sub(
        rf"\b({words})\b", lambda m: str(_NUMBER_WORDS.index(m[1].lower())), text, flags=re.IGNORECASE
    )


def _typo_en(rng: random.Random, text: str) -> str:
    words = list(_WORD.finditer(text))
    if not words:
        return text
    word = rng.choice(words)
    at = word.start() + rng.randrange(1, len(word[0]) - 2)
    kind = rng.randrange(3)
    if kind == 0:
        return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    return text[:at] + text[at + 1 :] if kind == 1 else text[:at] + text[at] + text[at:]


def _typo_zh(rng: random.Random, text: str) -> str:
    found = [(old, new) for old, new in words("zh").typos if old in text]
    return text.replace(*rng.choice(found), 1) if found else text


@cache
def _openings() -> list[tuple[re.Pattern[str], list[str]]]:
    return [(re.compile(f"^{row[0]}", re.IGNORECASE), row[1:]) for row in words("en").openings]


def _opening(rng: random.Random, text: str) -> str:
    for pattern, forms in _openings():
        if pattern.match(text):
            return pattern.sub(rng.choice(forms), text, count=1)
    asked = _WHAT_IS.match(text)
    if asked:
        return rng.choice(
            [
                "Could you tell me what {} is",
                "What would {} be",
                "Tell me {}",
                "I want to know what {} is",
                "{}?",
            ]
        ).format(asked[1])
    return text


def _order_en(rng: random.Random, text: str) -> str:
    for pattern in (_CONDITION, _ADJUNCT):
        parts = pattern.match(text)
        if parts and "," not in parts[2]:
            front = parts[2].strip()
            return f"{front[:1].upper()}{front[1:]}, {_decapitalised(parts[1])}?"
    main = re.match(r"^([^,?.]{6,60}), ([^,?.]{8,})\?*$", text)
    return f"{main[2][:1].upper()}{main[2][1:]}, {_decapitalised(main[1])}?" if main else text


def _order_zh(rng: random.Random, text: str) -> str:
    bare = _bare(text)
    clauses = _CLAUSES_ZH.match(bare)
    if clauses:
        return f"{clauses[2]}，{clauses[1]}"
    fronted = _FRONTED_ZH.match(bare)
    return f"{fronted[2]}，{fronted[1]}" if fronted else text


_RULES: dict[str, list[tuple[Rule, float]]] = {
    "zh": [
        (_synonym("zh"), 3),
        (_before("zh"), 2),
        (_after("zh"), 2),
        (_mark, 1),
        (_number_zh, 1.5),
        (_width, 0.5),
        (_spacing, 0.7),
        (_typo_zh, 0.7),
        (_order_zh, 1.5),
        (_lower, 0.3),
    ],
    "en": [
        (_synonym("en"), 3),
        (_opening, 3),
        (_before("en"), 2),
        (_after("en"), 1.5),
        (_mark, 1),
        (_number_en, 1.5),
        (_typo_en, 1),
        (_order_en, 2),
        (_lower, 1),
    ],
}


def reword(rng: random.Random, text: str, lang: str, times: int = 2) -> str:
    """`text` with up to `times` rules applied; the text itself where none fits."""
    rules, weights = zip(*_RULES[lang], strict=True)
    done = 0
    for rule in rng.choices(rules, weights, k=6 * times):
        changed = rule(rng, text)
        done += changed != text
        text = changed
        if done == times:
            break
    return text
