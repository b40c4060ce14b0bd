"""May this answer be kept, for whom, and for how long?

Errs on the side of trust: a question wrongly called personal, live or creative costs a hit; one wrongly
called shareable shows somebody's data, or yesterday's weather, to a stranger.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from .turns import Turns

ContentClass = Literal["fact", "live", "personal", "creative"]


@dataclass(frozen=True)
class Cacheability:
    """What may be done with the answer. `ttl` slides with every hit and never outlives `life`; both are
    None when nothing is kept."""

    content_class: ContentClass
    stored: bool
    shareable: bool
    ttl: timedelta | None
    life: timedelta | None
    reason: str


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


def _words(*alternatives: str) -> str:
    """A pattern for whole English words."""
    return rf"\b(?:{'|'.join(alternatives)})\b"


_PERSONAL_DATA = (
    r"[\w.+-]+@[\w-]+\.\w+",  # an e-mail address
    r"(?<!\d)(?:\+?\d[\s().-]?){7,}(?!\d)",  # phone, card, account and identity numbers
    r"\d{3}-\d{2}-\d{4}",
)
_PERSONAL = _any_of(
    *_PERSONAL_DATA,
    r"(?<!\d)\d{6,}(?!\d)",  # order and customer numbers
    _words("my", "mine", "myself", "our", "ours", "i['’]m", "i am", "i['’]ve", "i have", "i had", "i was"),
    _words("i live", "i work", "i feel", "call me"),
    r"\b(?:password|passwd|api[ _-]?key|secret|token)\s*(?:is|[:=])",
    r"\b(?:order|invoice|ticket|account|case|booking|reservation|tracking)"
    r"\s*(?:no\.?|number|id|#|:)*\s*#?\d+",
    r"\b\d{1,5}\s+\w+\s+(?:street|st|avenue|ave|road|rd|lane|ln|drive|dr|boulevard|blvd)\b",
    "我的|我们的|我叫|我是|我在|我有|我家|我姓|我今年|我昨天|本人|咱们?的|俺",
    r"(?:订单|单号|工单|账号|帐号|卡号|身份证|手机号?|电话|会员)\D{0,4}\d+",
    r"(?:省|市|区|县)\S{0,12}(?:路|街|号|弄|室)",
)
_LIVE = _any_of(
    _words("now", "currently", "current", "today", "tonight", "tomorrow", "yesterday", "at the moment"),
    _words("(?:this|next|last) (?:week|month|year|morning|afternoon|evening|night)", "latest", "newest"),
    _words("recent(?:ly)?", "live", "so far", "these days", "what (?:time|day|date|year)"),
    _words("weather", "forecast", "temperature (?:in|outside)", "stock", "share price", "exchange rate"),
    _words("prices?", "costs?", "how much (?:is|are|does|do)", "news", "score", "traffic", "available"),
    "现在|目前|当前|今天|今日|今晚|明天|明日|后天|昨天|昨日|刚才|最近|最新|近期|此刻|实时",
    "[本这上下](?:周|星期|个?月)|今年|明年|去年|几点了|几号|星期几|周几",
    "天气|气温|下雨|股价|股票|汇率|价格|价钱|多少钱|售价|报价|新闻|比分|路况|库存|有货",
)
_CREATIVE = _any_of(
    r"\b(?:write|compose|draft|invent|make up|imagine|brainstorm|come up with|create|generate|tell)\b.{0,40}?"
    r"\b(?:poems?|haiku|limerick|sonnet|song|lyrics|rap|story|stories|tale|jokes?|riddles?|essay|novel|script"
    r"|screenplay|dialogue|speech|slogans?|tagline|names?|ideas?|plot|character|verse|letter|e-?mail|post"
    r"|tweet|advert|ad|caption|blog)\b",
    _words("surprise me", "random", "roll (?:a|the) dic?e", "flip a coin", "pick (?:a|one|any)"),
    "(?:写|编|作|创作|讲|来|想|起|取|生成).{0,12}?"
    "(?:诗|词|歌|故事|笑话|段子|小说|作文|文案|剧本|对联|谜语|名字|口号|标语|演讲稿|信|邮件|情书|散文)",
    "随机|随便(?:选|挑|说|来)|掷骰子|抛硬币|脑洞",
)
# An answer says "my" and "I am" of the model; there only data counts.
_DATA = _any_of(*_PERSONAL_DATA)

_KEPT_FACT = (timedelta(hours=24), timedelta(days=7))
_KEPT_PERSONAL = (timedelta(minutes=20), timedelta(minutes=30))


def _any(pattern: re.Pattern[str], texts: Iterable[str]) -> bool:
    return any(pattern.search(text) for text in texts)


def classify(turns: Turns) -> Cacheability:
    """Judge the question (the last turn) in its history. A live or creative question is answered anew every
    time; anything personal, in question or history, stays in its session."""
    question, texts = turns[-1]["content"], [turn["content"] for turn in turns]
    if not any(character.isalnum() for character in question):
        return Cacheability("fact", False, False, None, None, "there are no words in the question")
    if _CREATIVE.search(question):
        return Cacheability("creative", False, False, None, None, "asks for something new each time")
    # The whole history counts: "and in Paris?" after a weather question asks for the weather too.
    if _any(_LIVE, (turn["content"] for turn in turns if turn["role"] == "user")):
        return Cacheability("live", False, False, None, None, "the answer changes by the minute")
    if _any(_PERSONAL, texts):
        ttl, life = _KEPT_PERSONAL
        return Cacheability("personal", True, False, ttl, life, "something personal was said")
    ttl, life = _KEPT_FACT
    return Cacheability("fact", True, True, ttl, life, "a general question")


def is_personal(text: str) -> bool:
    """Does this text (an answer, say) hold something that should not leave its session?"""
    return bool(_DATA.search(text))
