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
    r"^(?:\W*(?:哈喽|哈啰|劳驾|打扰一下|打扰了|求解答|跪求|拜托|在线等|急+(?=\W)|帮(?:我|忙)看看|帮我看一?下"
    r"|我?(?:很|非常)?想(?:要)?(?:了解|知道|请教|咨询)(?:一下|下)?|我?(?:有点|很|挺)?好奇|(?:你|您)?知不知道"
    r"|请(?:你|您)?(?:回答|指出|写明|告知|说明)(?:一下|下)?(?![书信文性力]|问题|说)|(?:回答|说明|指出)(?:一下|下)"
    r"|(?:你|您)?(?:能不能|可不可以|能否|可否)(?:说|讲|告诉我|说明|解释|介绍)(?:说|讲)?(?:一下|下)))+\W*"
)
# What a question may stand inside of, in a request or a wish: "please say how long it is", "I wonder whether
# it is open". Not in what was wished before: "I wanted to know how long it takes" says that the answer missed
# it.
OPENING_EN = re.compile(
    r"^\W*(?:(?:and|so|but|ok(?:ay)?|well|cool|then|also|now|next|great|thanks?|perfect|hey|hi|hello|please"
    r"|kindly|just|first|by the way|btw|can you|could you|would you|will you|do you|can we|could we|happen to"
    r"|(?:would you )?mind|if (?:you can|possible)|try to|help me(?: to)?)\b[\s,.!]*)*"
    r"(?:(?:say(?:ing)?|state|specify|indicate|mention|clarify|determine|identify|calculate|compute"
    r"|know|(?:work|figure|find|point|spell) out|inform|advise|enlighten|show|tell(?:ing)?|teach"
    r"|explain(?:ing)?|let (?:me|us) (?:know|understand|see)|understand|describe)"
    r"|(?:i|we)(?:'d|'m|'re| would| am| are| do| still)*"
    r" (?:(?:really |just |also |only )?(?:(?:like|love|want|need|wish|trying|hoping|keen|eager|curious)"
    r"(?: to| for)?(?: (?:know|understand|learn|hear|see|find out|figure out|work out|ask|be told))?"
    r"|wonder(?:ing)?|curious|interested|don'?t (?:know|understand|see)|not sure|unsure|no idea|ask))"
    r"|(?:(?:have you |do you have |got )?(?:any|an)|no) (?:idea|clue)|curious|wondering)"
    r"(?:,? (?:me|us|to me|to us|for me|also|too|please|about|in|as to|of|on|exactly|again))*"
    r",? (?=(?:who|whom|whose|what|which|when|where|why|how|whether|if)\b"
    r"(?!\s+(?:i|we) (?:said|asked|mean|meant|wanted)\b))",
    re.IGNORECASE,
)
# From the beginning of a run of marks only: tried from each of its marks, 8,000 of them take three seconds.
_BEHIND = re.compile(
    r"(?<!\W)(?:\W+(?:thx|thanx|tysm|ty|cheers|much appreciated|急+)"
    r"|\W*(?:求解答|在线等|跪求|拜托了?|谢了))+(?P<mark>[?？]?)\W*$",
    re.IGNORECASE,
)


_VERB = "is|are|was|were|can|could|will|would|should|may|might|must|has|have|had"
_WHETHER = re.compile(
    rf"^(?:whether|if)\s+(?:or not\s+)?(?:(?P<of>\S.{{0,60}}?)\s+(?P<verb>{_VERB})\b)?", re.I
)
_OF_WHAT = r"(?:the|an?|this|that|these|those|my|your|our|his|her|its|their)\s\S.{0,50}?"
_TURNED = re.compile(
    rf"^(?P<word>(?:what|which|who|whose|where|when|why|how)\b.{{0,30}}?)\s+(?P<of>{_OF_WHAT})\s+(?P<verb>{_VERB})\b",
    re.IGNORECASE,
)


def taken_out(text: str) -> str:
    """The question without what it stands inside of, in its own order: "tell me if it is open" asks "is it
    open", "say what the reef is called" asks "what is the reef called"."""
    inside = OPENING_EN.sub("", text)
    if inside == text:
        return text
    if _WHETHER.match(inside):
        return _WHETHER.sub(lambda at: f"{at['verb']} {at['of']}" if at["verb"] else "does ", inside)
    return _TURNED.sub(r"\g<word> \g<verb> \g<of>", inside)


def plainly(folded: str) -> str:
    """The folded question without what is only said for politeness or in a hurry, its question words alike.
    What consists of nothing else stays."""
    bare = taken_out(_BEHIND.sub(r"\g<mark>", _BEFORE.sub("", folded)))
    text = bare if any(sign.isalnum() for sign in bare) else folded
    for pattern, alike in _ALIKE:
        text = pattern.sub(alike, text)
    return text
