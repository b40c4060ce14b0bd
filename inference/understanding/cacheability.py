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


_PERSONAL = re.compile(
    r"""(?ix)
    [\w.+-]+@[\w-]+\.\w+                                  # an e-mail address
    | (?<!\d)(?:\+?\d[\s().-]?){7,}(?!\d)                 # phone, card, account and identity numbers
    | (?<!\d)\d{6,}(?!\d)                                 # order and customer numbers
    | \d{3}-\d{2}-\d{4}
    | \b(?:my|mine|myself|our|ours|i'm|i’m|i\ am|i've|i’ve|i\ have|i\ had|i\ was|i\ live|i\ work|call\ me)\b
    | \b(?:password|passwd|api[ _-]?key|secret|token)\s*(?:is|[:=])
    | \b(?:order|invoice|ticket|account|case|booking|reservation|tracking)\s*(?:no\.?|number|id|\#|:)*\s*\#?\d+
    | 我的|我们的|我叫|我是|我在|我有|我家|我姓|我今年|我昨天|本人|咱们?的|俺
    | (?:订单|单号|工单|账号|帐号|卡号|身份证|手机号?|电话|会员)\D{0,4}\d+
    | (?:省|市|区|县)\S{0,12}(?:路|街|号|弄|室)
    | \b\d{1,5}\s+\w+\s+(?:street|st|avenue|ave|road|rd|lane|ln|drive|dr|boulevard|blvd)\b
    """
)
_LIVE = re.compile(
    r"""(?ix)
    \b(?:now|right\ now|currently|current|today|tonight|tomorrow|yesterday|at\ the\ moment|this\ (?:week|month|year|
        morning|afternoon|evening)|next\ (?:week|month|year)|last\ (?:night|week|month|year)|latest|newest|recent(?:ly)?
        |live|so\ far|these\ days|what\ time|what\ day|what\ date|what\ year)\b
    | \b(?:weather|forecast|temperature\ (?:in|outside)|stock|share\ price|exchange\ rate|price|prices|cost|costs
        |how\ much\ (?:is|are|does|do)|news|score|traffic|in\ stock|available|open\ (?:now|today))\b
    | 现在|目前|当前|今天|今日|今晚|明天|明日|后天|昨天|昨日|刚才|最近|最新|近期|本周|这周|下周|上周|本月|这个月|下个月|上个月
    | 今年|明年|去年|几点了|几号|星期几|周几
    | 天气|气温|下雨|股价|股票|汇率|价格|价钱|多少钱|售价|报价|新闻|比分|路况|库存|有货|此刻|实时
    """
)
_CREATIVE = re.compile(
    r"""(?ix)
    \b(?:write|compose|draft|invent|make\ up|imagine|brainstorm|come\ up\ with|create|generate|tell)\b
        .{0,40}?\b(?:poem|poems|haiku|limerick|sonnet|song|lyrics|rap|story|stories|tale|joke|jokes|riddle|riddles|essay|
        novel|script|screenplay|dialogue|speech|slogan|slogans|tagline|names?|ideas?|plot|character|verse|letter|
        e-?mail|post|tweet|advert|ad|caption|blog)\b
    | \b(?:surprise\ me|random|roll\ (?:a|the)\ di(?:c)?e|flip\ a\ coin|pick\ (?:a|one|any))\b
    | (?:写|编|作|创作|讲|来|想|起|取|生成).{0,12}?(?:诗|词|歌|故事|笑话|段子|小说|作文|文案|剧本|对联|谜语|名字|口号|标语|演讲稿|信|邮件|情书|散文)
    | 随机|随便(?:选|挑|说|来)|掷骰子|抛硬币|脑洞
    """
)

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
    return bool(_PERSONAL_DATA.search(text))


# An answer says "my" and "I am" of the model; there only data counts.
_PERSONAL_DATA = re.compile(
    r"""(?x)
    [\w.+-]+@[\w-]+\.\w+ | (?<!\d)(?:\+?\d[\s().-]?){7,}(?!\d) | \d{3}-\d{2}-\d{4} | (?<!\d)\d{8,}(?!\d)
    """
)
