"""Numbers as they are written in English and Chinese: 12, 1,200, twelve, a dozen, 十二, 一千二, 3.5万, 半."""

import re
from decimal import Decimal, InvalidOperation

_DIGITS = {
    sign: value
    for value, signs in enumerate("零〇 一壹 二两贰 三叁 四肆 五伍 六陆 七柒 八捌 九玖".split())
    for sign in signs
}
_SCALES = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000, "万": 10_000, "亿": 100_000_000}
CHINESE = "零〇一壹二两贰三叁四肆五伍六陆七柒八捌九玖十拾百佰千仟万亿半"
_CHINESE = re.compile(rf"[\d.{CHINESE}点]*[\d{CHINESE}]")

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
WORDS: dict[str, int | Decimal] = {
    **{word: value for value, word in enumerate(_UNITS)},
    **{word: 10 * value for value, word in enumerate(_TENS, start=2)},
    **{
        f"{tens}-{ones}": 10 * many + one
        for many, tens in enumerate(_TENS, start=2)
        for one, ones in enumerate(_UNITS[1:10], start=1)
    },
    "dozen": 12,
    "half": Decimal("0.5"),
    "twice": 2,
}
# Longer rows of digits are keys and hashes, no numbers.
LONGEST = 30
MULTIPLES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "k": 1000, "w": 10_000}
ORDINALS = {
    word: value
    for value, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(), start=1
    )
}


def plain(value: Decimal) -> str:
    """One spelling for equal numbers: 1200, 0.5, -3."""
    return f"{value.normalize():f}" if value else "0"


def arabic(text: str) -> Decimal | None:
    """A number in digits; commas group thousands. None for what isn't one number (3.11.2, 9:30)."""
    if len(text) > LONGEST:
        return None
    try:
        return Decimal(text.replace(",", ""))
    except InvalidOperation:
        return None


def chinese(text: str) -> Decimal | None:
    """A number in Chinese characters, digits or both: 二十三, 一千二 (1200), 3.5万, 二〇二四, 半. None where
    it isn't one, as in 十几."""
    if len(text) > LONGEST or not _CHINESE.fullmatch(text):
        return None
    if text == "半":
        return Decimal("0.5")
    whole, point, fraction = text.partition("点")
    if point:
        places = "".join(str(_DIGITS.get(sign, sign)) for sign in fraction)
        base = chinese(whole)
        return base + Decimal(f"0.{places}") if base is not None and places.isdecimal() else None
    if not any(sign in _SCALES for sign in text):
        return arabic("".join(str(_DIGITS.get(sign, sign)) for sign in text.removesuffix("半")))
    return _scaled(text)


def _scaled(text: str) -> Decimal | None:
    for mark, scale in (("亿", 100_000_000), ("万", 10_000)):
        head, found, tail = text.partition(mark)
        if found:
            many, rest = _below_ten_thousand(head) if head else Decimal(1), _rest(tail, scale)
            return None if many is None or rest is None else many * scale + rest
    return _below_ten_thousand(text)


def _below_ten_thousand(text: str) -> Decimal | None:
    for mark, scale in (("千仟", 1000), ("百佰", 100), ("十拾", 10)):
        for sign in mark:
            head, found, tail = text.partition(sign)
            if found:
                many = _below_ten_thousand(head.lstrip("零〇")) if head.lstrip("零〇") else Decimal(1)
                rest = _rest(tail, scale)
                return None if many is None or rest is None else many * scale + rest
    return arabic("".join(str(_DIGITS.get(sign, sign)) for sign in text))


def _rest(tail: str, scale: int) -> Decimal | None:
    """What follows a scale. 一千二 is 1200 and 两万五 is 25000, but 一千零二 is 1002 and 十二 is 12."""
    if not tail:
        return Decimal(0)
    if tail == "半":
        return Decimal(scale) / 2
    value = _scaled(tail.lstrip("零〇") or "0")
    spoken = len(tail) == 1 and scale > 10 and tail not in _SCALES
    return value * scale / 10 if value is not None and spoken else value
