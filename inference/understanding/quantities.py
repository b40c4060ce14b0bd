"""How many of what: numbers with their units, brought to one unit per dimension, and the numbers in names.

1 km is 1000 m and 两个 is 2, but 5 kg is not 5 lb. A new unit is one line in `_UNITS`.
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from . import numerals
from .fillers import FILLERS
from .tokens import Word

# dimension, factor to its base unit, spellings. Months are not days: no factor joins them.
_UNITS = """
length 0.001 mm millimeter millimeters millimetre millimetres 毫米
length 0.01 cm centimeter centimeters centimetre centimetres 厘米 公分
length 1 m meter meters metre metres 米 公尺
length 1000 km kilometer kilometers kilometre kilometres kms 千米 公里
length 500 里
length 0.0254 inch inches 英寸 寸
length 0.3048 ft foot feet 英尺
length 0.9144 yard yards 码
length 1609.344 mile miles mi 英里
mass 0.001 mg milligram milligrams 毫克
mass 1 g gram grams 克
mass 1000 kg kilo kilos kilogram kilograms kgs 千克 公斤
mass 500 斤
mass 50 两
mass 1000000 tonne tonnes ton tons 吨
mass 28.349523125 oz ounce ounces 盎司
mass 453.59237 lb lbs pound pounds 磅
volume 0.001 ml milliliter milliliters millilitre millilitres 毫升
volume 1 l liter liters litre litres 升
volume 3.785411784 gallon gallons 加仑
cup 1 cup cups 杯
spoon 1 tbsp tablespoon tablespoons 汤匙 大勺
teaspoon 1 tsp teaspoon teaspoons 茶匙 小勺
area 1 m^2 sqm 平方米 平米 平方
area 0.09290304 sqft 平方英尺
time 0.001 ms millisecond milliseconds 毫秒
time 1 s sec secs second seconds 秒 秒钟
time 60 min mins minute minutes 分钟
time 3600 h hr hrs hour hours 小时 钟头 个小时 个钟头
time 86400 day days 天 日
time 604800 week weeks 周 星期 礼拜 个星期 个礼拜
month 1 month months 个月 月
month 12 year years yr yrs 年
age 1 岁 周岁
clock 1 am pm oclock 点 点钟 时
money:usd 1 $ usd dollar dollars bucks 美元 美金 刀
money:eur 1 € eur euro euros 欧元 欧
money:gbp 1 £ gbp 英镑
money:cny 1 ¥ cny rmb yuan 元 块 块钱 人民币
money:cny 0.1 角 毛
money:jpy 1 jpy yen 日元 日圆
money:hkd 1 hkd 港币 港元
celsius 1 celsius °c ℃ 摄氏度
fahrenheit 1 fahrenheit °f ℉ 华氏度
degree 1 ° degree degrees 度
percent 1 % percent pct 百分之
percent 10 折 成
data 1 kb 
data 1024 mb M 兆
data 1048576 gb G gig gigs
data 1073741824 tb T
pixel 1 px pixel pixels 像素
power 1 W watt watts 瓦
power 1000 kw 千瓦
energy 1 kwh 千瓦时 度电
charge 1 mah 毫安 毫安时
voltage 1 v volt volts 伏
horsepower 1 匹
ratio 1 x times 倍
"""
UNITS: dict[str, tuple[str, Decimal]] = {
    spelling: (dimension, Decimal(factor))
    for dimension, factor, *spellings in (line.split() for line in _UNITS.split("\n") if line.strip())
    for spelling in spellings
}
# Measure words that count things: they say nothing of their own.
_COUNTERS = frozenset(
    "个 位 台 次 件 条 张 只 本 份 部 辆 家 种 项 名 人 口 间 套 双 对 根 颗 粒 片 块 支 枝 把 座 层 楼 门"
    " 节 课 句 行 列 页 篇"
    " 段 步 回 遍 趟 场 盒 瓶 包 袋 箱 桶 碗 盘 顿 道 题 级 档 号 字 集 期 轮 组 队 群 封 首 幅 所"
    " 处 笔 单 票 股 款 类 样 点 分 针 科 星".split()
)
_LEAD = {"$", "€", "£", "¥", "百分之"}
_NOT_A_NUMBER = frozenset(
    {"十分", "一般", "一样", "一起", "一些", "一点", "一下", "一直", "一定", "万一", "半天", "一会儿"}
)


class Quantity(NamedTuple):
    """`unit` is a dimension's base unit by name, "" for a bare count, "#" for a place in a row (第三,
    third)."""

    value: str
    unit: str


class Counted(NamedTuple):
    """What the numbers in a text say, and its words with each number as one word of kind number. `versions`
    are the numbers of names, as (name, number): ("iphone", "15"); the names stay among `rest`."""

    quantities: tuple[Quantity, ...]
    versions: tuple[tuple[str, str], ...]
    rest: list[Word]


def _value(word: Word) -> tuple[Decimal | str | None, str]:
    """The number a word stands for, and what of the word is left behind it (两个 → 2, 个)."""
    if word.kind == "number":
        value = numerals.chinese(word.text) or numerals.arabic(word.text)
        return (word.text if value is None else value), ""
    if word.kind == "latin":
        spoken = numerals.WORDS.get(word.text)
        return (None if spoken is None else Decimal(spoken)), ""
    half = word.text.startswith("半") and word.text[1:] in UNITS
    if not (word.tag == "m" or half) or word.text in _NOT_A_NUMBER:
        return None, ""
    digits = word.text.rstrip("".join(set(word.text) - set(numerals.CHINESE) - {"点"}))
    head = word.text[: len(digits)]
    tail = word.text[len(head) :]
    known = not tail or tail in UNITS or tail in _COUNTERS
    return (numerals.chinese(head) if head and known else None), tail


_AND_A_HALF = re.compile(
    rf"(?<![\d{numerals.CHINESE[:-1]}])([\d{numerals.CHINESE[:-1]}]++)(?:个半(?=小时|钟头|月|星期|礼拜)"
    rf"|(年|天|周|岁)半)"
)


def write_out_halves(folded: str) -> str:
    """两个半小时 and 三年半 with the half in the number: 2.5个小时, 3.5年."""

    def write(match: re.Match[str]) -> str:
        whole = numerals.chinese(match[1])
        return match.group() if whole is None else f"{whole + Decimal('0.5')}{match[2] or '个'}"

    return _AND_A_HALF.sub(write, folded)


def count(words: Sequence[Word]) -> Counted:
    """Take the numbers out of a text's words."""
    quantities: list[Quantity] = []
    versions: list[tuple[str, str]] = []
    rest: list[Word] = []
    at = 0
    while at < len(words):
        word = words[at]
        used, found = _ordinal(words, at) or _number(words, at, rest, versions)
        if found is None and not used:
            if word.kind == "latin" and word.text[-1].isdigit() and len(word.text.rstrip("0123456789.")) > 1:
                name = word.text.rstrip("0123456789.")
                versions.append((name, word.text[len(name) :].lstrip(".")))
                rest.append(word._replace(text=name))
            elif word.text not in _LEAD:
                rest.append(word)
            at += 1
            continue
        if found is not None:
            quantities.append(found)
        number = found or (Quantity(versions[-1][1], "") if versions else Quantity("", ""))
        rest.append(Word(f"{number.value}{number.unit}", "number"))
        at += used
    return Counted(tuple(quantities), tuple(versions), rest)


def _ordinal(words: Sequence[Word], at: int) -> tuple[int, Quantity | None] | None:
    word = words[at]
    if word.text in numerals.ORDINALS and not (
        word.text == "second" and at and words[at - 1].kind == "number"
    ):
        return 1, Quantity(str(numerals.ORDINALS[word.text]), "#")
    if word.kind == "number" and at + 1 < len(words) and words[at + 1].text in ("st", "nd", "rd", "th"):
        return 2, Quantity(word.text, "#")
    if word.text.startswith("第"):
        if len(word.text) == 1 and at + 1 < len(words):
            value, tail = _value(words[at + 1])
            used = 2 + (not tail and at + 2 < len(words) and words[at + 2].text in _COUNTERS)
        else:
            value, tail = _value(Word(word.text[1:], "han", "m"))
            used = 1 + (not tail and at + 1 < len(words) and words[at + 1].text in _COUNTERS)
        if isinstance(value, Decimal):
            return used, Quantity(numerals.plain(value), "#")
    return None


def _number(
    words: Sequence[Word], at: int, rest: list[Word], versions: list[tuple[str, str]]
) -> tuple[int, Quantity | None]:
    """How many words the number at this place takes, and its quantity; (0, None) where there is none. The
    number of a name goes to `versions` instead."""
    word = words[at]
    value, tail = _value(word)
    if value is None:
        return 0, None
    used = 1
    if rest and rest[-1].text == "-" and isinstance(value, Decimal):
        value = -value
        rest.pop()
    if isinstance(value, str):
        if ":" in value or "/" in value:
            return 1, _ratio(value)
        versions.append((rest[-1].text if rest else "", value))
        return 1, None
    while at + used < len(words) and (
        multiple := numerals.MULTIPLES.get(words[at + used].text) if not words[at + used].capital else None
    ):
        value, used = value * multiple, used + 1
        # two hundred (and) fifty
        if (
            word.kind == "latin"
            and (small := numerals.WORDS.get(_text(words, at + used)))
            and small < multiple
        ):
            value, used = value + small, used + 1
    if at and words[at - 1].text in _LEAD:
        dimension, factor = UNITS[words[at - 1].text]
        return used, Quantity(numerals.plain(value * factor), dimension)
    following = words[at + used].text if at + used < len(words) and not tail else ""
    for spelling, taken in _spellings(words, at + used, tail):
        if spelling in UNITS:
            dimension, factor = UNITS[spelling]
            if spelling in ("g", "G") and value <= 6:
                # 5G is a network far more often than five grams or gigabytes.
                return used + taken, Quantity(numerals.plain(value), "generation")
            return used + taken, Quantity(numerals.plain(value * factor), dimension)
    if word.kind == "number" and versions and _continues(words, at, rest, versions):
        versions.append((versions[-1][0], numerals.plain(value)))
        return used, None
    named = word.kind == "number" and at and rest and words[at - 1] is rest[-1] and _is_name(rest[-1])
    if named and rest[-1].kind == "han" and len(word.text) > 2 and "." not in word.text:
        # 小米14 is a name, 贷款100万 an amount.
        named = False
    if (
        named
        and not tail
        and (following not in _COUNTERS or (rest[-1].kind == "latin" and following != "个"))
    ):
        versions.append((rest[-1].text, numerals.plain(value)))
        return used, None
    return used + (not tail and following in _COUNTERS), Quantity(numerals.plain(value), "")


def _ratio(text: str) -> Quantity:
    """4:3 and 120/80 are ratios, 9:30 and 14:00 times of day."""
    hour, _, minute = text.partition(":")
    if len(minute) == 2 and hour.isdecimal() and minute.isdecimal() and int(hour) < 25 and int(minute) < 60:
        return Quantity(f"{int(hour)}" if minute == "00" else f"{int(hour)}:{minute}", "clock")
    return Quantity(text, "ratio")


_LINKS = frozenset("to and or vs → -> => 到 至 和 与 或 、 升 升级到 升到 换".split())


def _continues(
    words: Sequence[Word], at: int, rest: Sequence[Word], versions: Sequence[tuple[str, str]]
) -> bool:
    """Is this number a second one of the same name: iPhone 14 and 15, 2010→2021?"""
    linked = at > 1 and words[at - 1].text in _LINKS and len(rest) > 1
    return linked and rest[-2].kind == "number" and rest[-2].text == versions[-1][1]


def _is_name(word: Word) -> bool:
    """May a bare number behind this word be part of its name?"""
    return word.kind in ("latin", "han") and word.tag[:1] in ("n", "") and word.text not in FILLERS


def _text(words: Sequence[Word], at: int) -> str:
    return words[at].text if at < len(words) else ""


def _spellings(words: Sequence[Word], at: int, tail: str) -> list[tuple[str, int]]:
    """What may be the unit at this place, longest first, and how many words it takes."""
    one = _text(words, at)
    if at < len(words) and words[at].kind == "sign" and one not in ("%", "°"):
        one = ""
    if one and words[at].capital and len(one) == 1:
        # 512G and 60W are not 512 g and 60 w.
        one = one.upper()
    two = words[at + 1].text if one and at + 1 < len(words) else ""
    if tail:
        return [(tail + one, 1), (tail, 0)]
    return [(one + two, 2), (one, 1)] if one else []
