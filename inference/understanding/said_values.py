"""The values a text names: days, times, prices, counts, versions, names. Two values of one kind can stand for
one another ("Monday" for "Tuesday"), which is how people correct without saying so."""

import re
from typing import NamedTuple

from .script import COMMON_HAN

_UNITS_EN = (
    r"people|persons?|guests?|players?|days?|nights?|weeks?|months?|years?|hours?|hrs?|minutes?"
    r"|mins?|seconds?|words?|pages?|letters?|digits?|"
    r"kg|g|mg|ml|l|km|m|cm|mm|miles?|mi|feet|foot|ft|inch(?:es)?|lbs?|oz|cups?|tablets?|gb|mb|tb"
    r"|kb|ms|calories|kcal|watts?|volts?|degrees|people|adults|kids|children|"
    r"rooms?|tables?|sq ft|sqm|mph|km/h|amps?"
)
_COUNT_WORDS = {
    word: value
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
        " sixteen seventeen eighteen nineteen twenty".split()
    )
} | {
    word: 10 * at
    for at, word in enumerate("thirty forty fifty sixty seventy eighty ninety hundred".split(), 3)
}
_COUNT_WORDS["dozen"] = 12
_HAN_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九十")} | {
    "两": 2,
    "〇": 0,
    "俩": 2,
}
_MEASURES = (
    "个人|人|个|天|晚|夜|周|星期|月|年|岁|点|小时|分钟|秒|字|页|位|口|杯|桌|张|台|本|章|次|遍|勺|克|斤|公斤|千克|公里|米|厘米"
    "|平|度|元|块|万|毛|成|折|层|级|匹|寸|号|集|版|份|片|颗|只|条|套|间|人份|道|门|组|节|轮"
)
_KINDS: tuple[tuple[str, str], ...] = (
    (
        "weekday",
        r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:mon|tue|wed|thu|fri|sat)\b(?=[^\w'])"
        r"|(?:周|星期|礼拜)[一二三四五六日天末]|weekend",
    ),
    (
        "month",
        r"\b(?:january|february|march|april|may(?= \d)|june|july|august|september|october|november"
        r"|december)\b|(?:1[0-2]|[1-9]|十[一二]?|[一二三四五六七八九])月",
    ),
    (
        "clock",
        r"\b\d{1,2}:\d\d(?:\s?[ap]m)?\b|\b\d{1,2}\s?[ap]m\b|(?:\d{1,2}|十[一二]?|[一二两三四五六七八九])点(?:半"
        r"|\d{1,2}分?|[一二三四五]?十?[一二三四五六七八九]?分)?",
    ),
    (
        "part of day",
        r"\b(?:morning|afternoon|evening|noon|midnight|night)\b|早上|上午|中午|下午|傍晚|晚上|凌晨|[ap]m\b",
    ),
    ("day of month", r"\b\d{1,2}(?:st|nd|rd|th)\b|\d{1,2}[号日]"),
    ("percent", r"\d+(?:\.\d+)?\s?(?:%|percent)|百分之[零一二三四五六七八九十\d.]+"),
    (
        "money",
        r"[$€£¥￥]\s?\d[\d,.]*k?|\d[\d,.]*\s?(?:dollars|euros|bucks|pounds|usd|eur|元|块|万|毛|k\b)"
        r"|[一二两三四五六七八九十百千]+(?:块|元|万|千|百)",
    ),
    ("year", r"\b(?:1[5-9]|20)\d\d\b年?"),
    (
        "measure",
        rf"[一二两\d]米[零一二三四五六七八九\d]+|\d[\d,.]*\s?(?:{_UNITS_EN})\b|\d[\d,.]*(?:{_MEASURES})"
        rf"|[零一二两俩三四五六七八九十百]+(?:{_MEASURES})",
    ),
    (
        "number",
        r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?!\w)|\d+(?:\.\d+)?|(?:^|(?<=[ (-]))(?:"
        + "|".join(_COUNT_WORDS)
        + r")\b",
    ),
    (
        "colour",
        r"\b(?:red|blue|green|yellow|black|white|gr[ea]y|pink|purple|orange|brown|navy|teal|beige"
        r"|burgundy)\b|[红蓝绿黄黑白灰粉紫橙棕](?:色|的)",
    ),
    (
        "language",
        r"\b(?:english|french|german|spanish|portuguese|italian|japanese|chinese|korean|russian|dutch"
        r"|polish|arabic)\b|[英法德日韩俄][语文]|中文|西班牙语",
    ),
    (
        "side",
        r"\b(?:left|right)(?= (?:\w+ )?(?:hand|side|ear|eye|arm|wrist|knee|foot|leg))|\b(?:north"
        r"|south|east|west)\b|左|右",
    ),
)
_VALUE = re.compile(
    "|".join(f"(?P<k{at}>{pattern})" for at, (_, pattern) in enumerate(_KINDS)), re.IGNORECASE
)
# A capitalised word is a name where it doesn't open a sentence; a Latin one within Chinese always is.
_NAME = re.compile(r"(?<![.!?。]\s)(?<!^)(?<![\w'])[A-Z][\w+#.]*[\w+#]|\b\w*[a-z][A-Z]\w*\b|\b[A-Z]{2,}\d*\b")
_LATIN = re.compile(r"[A-Za-z][A-Za-z+#.]*(?: ?\d+(?:\.\d+)*)?")
_NOT_NAMES = frozenset("I I'm I've I'd I'll OK Ok PM AM TV USA It's The A".split())


class Said(NamedTuple):
    """One value: its kind, its canonical form, and where it stands."""

    kind: str
    value: str
    start: int
    end: int


def read_values(text: str) -> list[Said]:
    """All values, names last. Never raises."""
    found: list[Said] = []
    left = []
    at = 0
    for match in _VALUE.finditer(text):
        kind = _KINDS[int(str(match.lastgroup)[1:])][0]
        found.append(Said(kind, _canonical(kind, match.group()), match.start(), match.end()))
        left += [text[at : match.start()], "\x00" * len(match.group())]
        at = match.end()
    rest = "".join([*left, text[at:]])
    names = _LATIN if COMMON_HAN.search(text) else _NAME
    for match in names.finditer(rest):
        name = match.group()
        if len(name) > 1 and name not in _NOT_NAMES:
            found.append(Said("name", name.lower().rstrip("."), match.start(), match.end()))
    return found


def _canonical(kind: str, text: str) -> str:
    text = text.lower().replace(",", "").replace(" ", "")
    if kind == "weekday":
        return text.replace("星期", "周").replace("礼拜", "周").replace("天", "日")[:3]
    if "米" in text[:-1]:
        return text
    number = re.match(r"[$€£¥￥]?(\d+(?:\.\d+)?)", text)
    if kind in ("measure", "number", "money", "percent", "day of month") and number:
        return number.group(1)
    if text in _COUNT_WORDS:
        return str(_COUNT_WORDS[text])
    han = re.match(r"[零〇一二两俩三四五六七八九十百]+", text)
    if kind in ("measure", "money") and han:
        return str(_han_number(han.group()))
    return text


def _han_number(text: str) -> int:
    """一百二十三 → 123; enough for what people say in passing."""
    total = current = 0
    for char in text:
        if char == "百":
            total, current = total + (current or 1) * 100, 0
        elif char == "十":
            total, current = total + (current or 1) * 10, 0
        else:
            current = _HAN_DIGITS.get(char, 0)
    return total + current
