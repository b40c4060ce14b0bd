"""One way to ask for several: what is said around a question, and question words that ask for one thing in
many ways, written alike before it is read."""

import re

_LENGTHS = r"(?:met(?:re|er)s?|feet|foot|ft|inch(?:es)?|cm|km|kilomet(?:re|er)s?|miles?|yards?)"
_ALIKE = (
    (re.compile(r"\b(?:in |during )?(?:what|which) year\b", re.IGNORECASE), "when"),
    (
        re.compile(rf"\bhow many {_LENGTHS} (?=(?:tall|high|long|wide|deep|far)\b)", re.IGNORECASE),
        "how ",
    ),
    (re.compile(rf"((?:\bhow|\d ?{_LENGTHS})) high\b", re.IGNORECASE), r"\1 tall"),
    (re.compile("啥(?=时候|地方|意思)"), "什么"),
)
_BEFORE = re.compile(
    r"^(?:\W*(?:哈喽|哈啰|劳驾|打扰一下|打扰了|求解答|跪求|拜托|在线等|急+(?=\W)|帮(?:我|忙)看看|帮我看一?下))+\W*"
)
_BEHIND = re.compile(
    r"(?:\W+(?:thx|thanx|tysm|ty|cheers|much appreciated)"
    r"|\W*(?:求解答|在线等|跪求|拜托了?|谢了)|(?<=\W)急+)+(?P<mark>[?？]?)\W*$",
    re.IGNORECASE,
)


def plainly(folded: str) -> str:
    """The folded question without what is only said for politeness or in a hurry, its question words alike.
    What consists of nothing else stays."""
    bare = _BEHIND.sub(r"\g<mark>", _BEFORE.sub("", folded))
    text = bare if any(sign.isalnum() for sign in bare) else folded
    for pattern, alike in _ALIKE:
        text = pattern.sub(alike, text)
    return text
