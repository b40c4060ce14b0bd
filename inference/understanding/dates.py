"""Days, times of day, seasons and years that a text names, absolute or seen from today."""

import re

_MONTHS = "january february march april may june july august september october november december".split()
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_RELATIVE = """
day:-2 前天|the day before yesterday
day:-1 昨天|昨日|昨晚|yesterday|last night
day:0 今天|今日|今晚|today|tonight|this evening
day:1 明天|明日|明晚|明早|tomorrow
day:2 后天|the day after tomorrow
week:-1 上周|上个?(?:星期|礼拜)|last week
week:0 本周|这周|这个?(?:星期|礼拜)|this week
week:1 下周|下个?(?:星期|礼拜)|next week
month:-1 上个?月|last month
month:0 本月|这个?月|this month
month:1 下个?月|next month
year:-1 去年|上一年|last year
year:0 今年|this year
year:1 明年|下一年|次年|next year
now:0 现在|目前|眼下|(?:right )?now|currently|at the moment
daytime:morning 早上|上午|早晨|清晨|早间|mornings?
daytime:noon 中午|正午|noon|midday
daytime:afternoon 下午|午后|afternoons?
daytime:evening 晚上|傍晚|夜里|夜间|evenings?|at night
season:spring 春天|春季|springtime|in (?:the )?spring(?! boot)
season:summer 夏天|夏季|夏日|summer
season:autumn 秋天|秋季|autumn|in (?:the )?fall
season:winter 冬天|冬季|冬日|winter
days:weekend 周末|双休日|weekends?
days:working 工作日|weekdays?|working days?|business days?
days:holiday 节假日|法定假日|(?:public|bank) holidays?
feast:new-year 元旦|new year(?:'s)?(?: day| eve)?
feast:spring 春节|过年|大年|lunar new year|chinese new year
feast:labour 五一|劳动节|labou?r day
feast:national 十一(?:黄金周|假期)|国庆节?
feast:mid-autumn 中秋节?
feast:christmas 圣诞节?|christmas|xmas
feast:easter 复活节|easter
"""


def _split(patterns: str) -> list[str]:
    return re.split(r"\|(?![^(]*\))", patterns)


_NAMED = {
    date: _split(patterns)
    for date, patterns in (line.split(" ", 1) for line in _RELATIVE.strip().splitlines())
}
_SPELLINGS = [spelling for spellings in _NAMED.values() for spelling in spellings]
_ENGLISH = "|".join(spelling for spelling in _SPELLINGS if spelling[0].isascii()).replace(" ", r"\ ")
_CHINESE = "|".join(spelling for spelling in _SPELLINGS if not spelling[0].isascii())
_MONTH_NAMES = "|".join(f"{name}|{name[:3]}" for name in _MONTHS if name != "may")
# Tried from the front of a word, a run of digits or a Chinese phrase only: each has its own door.
_DATE = re.compile(
    rf"""(?x)
    (?<![\d.]) (?=\d) (?:
        (?P<iso> (?:19|20)\d\d[-/.](?:0?[1-9]|1[0-2])(?:[-/.](?:[12]\d|3[01]|0?[1-9]))?(?![\d.]) )
      | (?P<year> (?:19|20)\d\d\ ?年(?![前后来间内]) )
      | (?P<clock> \d\d?(?::\d\d)?\ ?[ap]\.?m\b\.? )
      | (?P<day> \d\d?)(?:st|nd|rd|th)?\ (?:of\ )?(?P<day_month> {_MONTH_NAMES}|may)\b
      | (?P<chinese> (?:[1-9]|1[0-2])\ ?月(?:份|底|初)?(?:\ ?\d\d?\ ?[日号])? )
    )
  | \b(?=[a-z])(?:
        (?P<month> {_MONTH_NAMES}|may(?=\ \d)
              |(?<=in\ )may)\b\.?(?:\ (?:the\ )?(?P<month_day>\d\d?)(?:st|nd|rd|th)?(?!\d))?
      | (?P<weekday> {"|".join(_WEEKDAYS)}|mon|tues?|wed|thur?s?|fri)s?\b
      | (?:in|since|of|from|until|late|early|by)\ (?P<in_year> (?:19|20)\d\d)(?![\d.])
      | (?P<english> {_ENGLISH} )(?!\w)
    )
  | (?P<spoken> (?<![一二三四五六七八九十两])(?:十[一二]?|[一二三四五六七八九])月(?:份|底
        |初)?(?:[一二三]?十?[一二三四五六七八九十][日号])? )
  | (?P<weekday_zh> (?:周|星期|礼拜)[一二三四五六日天] )
  | (?P<named> {_CHINESE} )
    """,
    re.ASCII | re.IGNORECASE,
)
_DIGIT = {sign: at for at, sign in enumerate("零一二三四五六七八九十")}


def _number(text: str) -> int:
    if text.isdecimal():
        return int(text)
    tens, ten, ones = text.rpartition("十")
    return (_DIGIT.get(tens, 1) * 10 if ten else 0) + _DIGIT.get(ones, 0)


def _month(text: str) -> str:
    return f"month={next(at for at, name in enumerate(_MONTHS, 1) if name[:3] == text[:3])}"


def _read(match: re.Match[str]) -> list[str]:
    text, part = match.group().lower(), match.groupdict()
    if part["iso"]:
        return [
            f"{name}={int(value)}"
            for name, value in zip(("year", "month", "day"), re.split(r"[-/.]", text), strict=False)
        ]
    if part["year"]:
        return [f"year={text[:4]}"]
    if part["in_year"]:
        return [f"year={part['in_year']}"]
    if part["chinese"] or part["spoken"]:
        month, _, day = text.replace(" ", "").partition("月")
        day = day.strip("份底初日号")
        return [f"month={_number(month)}", *([f"day={_number(day)}"] if day else [])]
    if part["clock"]:
        return ["clock=" + re.sub(r"[ .]|:00", "", text)]
    if month := part["month"] or part["day_month"]:
        day = part["day"] or part["month_day"]
        return [_month(month.lower()), *([f"day={int(day)}"] if day else [])]
    if part["weekday"]:
        return [f"weekday={next(at for at, name in enumerate(_WEEKDAYS, 1) if name[:3] == text[:3])}"]
    if part["weekday_zh"]:
        return [f"weekday={'一二三四五六日'.find(text[-1].replace('天', '日')) + 1}"]
    return [
        next(date for date, spellings in _NAMED.items() if any(re.fullmatch(one, text) for one in spellings))
    ]


def take_dates(folded: str) -> tuple[tuple[str, ...], str]:
    """The dates in a folded text ("day:-1" is yesterday, "weekday=3" Wednesday), and the text with
    blanks in their places."""
    found: list[str] = []

    def blank(match: re.Match[str]) -> str:
        found.extend(_read(match))
        return " , "

    left = _DATE.sub(blank, folded)
    return tuple(dict.fromkeys(found)), left
