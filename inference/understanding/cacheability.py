"""May this answer be kept, for whom, and for how long?

Errs on the side of trust: a question wrongly called personal, live or creative costs a hit; one wrongly
called shareable shows somebody's data, or yesterday's weather, to a stranger. So each of those classes is
left only where something says that the question is general: "my" in a how-to question, "now" in a
definition. What no rule knows is a fact, kept for a day.
"""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from .asking import taken_out
from .personal import find_data, find_personal
from .turns import Turns

ContentClass = Literal["fact", "advice", "chitchat", "business", "live", "personal", "creative", "code"]


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


_TO_SOMETHING = "(?!(?: \\w+){0,2} to (?!me\\b|us\\b|my\\b|our\\b|here\\b|where\\b))"
# What changes by the minute or the day, whatever is asked about it.
_LIVE = _any_of(
    _words("weather", "forecast", "temperature (?:in|outside)", "air quality", "pollen count"),
    _words(
        "(?:stock|share|bitcoin|btc|crypto|gold|oil|gas|house|fuel|flight|ticket)s? prices?",
        "exchange rates?",
        "stock market",
    ),
    _words(
        "news",
        "headlines",
        "breaking",
        "(?:live|final|match|game) scores?",
        "who won",
        "traffic (?:on|in|jam|now|report)",
    ),
    _words(
        "in stock",
        "available (?:today|now|tonight|tomorrow|right now)",
        "still available",
        "open (?:now|today|right now)",
    ),
    _words(
        "today",
        "tonight",
        "tomorrow",
        "yesterday",
        "as of",
        "these days",
        "so far",
        "latest",
        "newest",
        "up[- ]to[- ]date",
    ),
    _words("(?:this|next|last) (?:week|weekend|month|year|morning|afternoon|evening|night|season)", "recent"),
    _words(
        "what(?:'s| is) the (?:time(?! (?:difference|zone|complexity|limit|signature))|date)",
        "what (?:time|day|date|year|month) is it",
        "near me",
        "nearby",
        # Of what names what it is near to, the asker is no measure: the planet closest to the Sun.
        f"closest{_TO_SOMETHING}",
        f"nearest{_TO_SOMETHING} (?!integer|neighbou?r|whole|cent|power|multiple|even|hundred)\\w+",
    ),
    "今天|今日|今晚|明天|明日|明晚|后天|昨天|昨日|前天|刚刚|此刻|实时|最新|近期|本[周月年季]"
    "|[这上下]个?(?:周|星期|礼拜|月)|今年|明年|去年",
    "天气|气温|下雨|下雪|空气质量|股价|股票|大盘|汇率|金价|油价|房价|币价|行情|新闻|头条|热搜|比分"
    "|谁赢了|路况|堵车|限行",
    "库存|有货|有没有货|还有票|余票|几点了|今儿|星期几了?$|周几$|附近|离我",
    # A feast has its day by the calendar.
    "^(?!.*(?:农历|阴历|阳历|公历|节)).*几号了?\\W*$",
)
# Prices are live, except what a business charges by its own tariff.
_PRICE = _any_of(
    _words(
        "prices?",
        "how much (?:is|are|does|do|for|would|will|did)(?!.{0,40}\\b(?:weigh|hold|contain|measure)\\b)",
        "costs?",
        "cheapest",
        "quote",
    ),
    "多少钱|价格|价钱|售价|报价|什么价|几块钱|贵不贵",
)
_TARIFF = _any_of(
    _words(
        "shipping",
        "delivery",
        "postage",
        "fees?",
        "membership",
        "subscription",
        "per (?:month|year|user|seat)",
        "late",
        "surcharge",
    ),
    _words(
        "deposit",
        "penalty",
        "commission",
        "insurance",
        "plan",
        "premium",
        "licen[cs]e",
        "visa",
        "passport",
        "toll",
    ),
    "运费|邮费|手续费|工本费|年费|会员|月租|服务费|押金|违约金|滞纳金|保险|快递|签证|签注|护照|挂号"
    "|补办|套餐",
)
# "Now" where the answer is a method, a reason or a meaning is only a way of speaking.
_NOW = _any_of(_words("now", "currently", "current", "at the moment", "right now"), "现在|目前|当前|眼下")
_TIMELESS = _any_of(
    _words(
        "how (?:do|can|could|should|would|to)",
        "why",
        "what does",
        "what (?:do|should|can) i",
        "difference",
        "explain",
        "define",
        "mean(?:s|ing)?",
    ),
    _words(
        "current(?:ly)? (?:directory|folder|branch|user|working|line|row|page|limit|ratio|amp|flow"
        "|density|divider|source|transformer)"
    ),
    "怎么|如何|怎样|咋|为什么|为啥|什么是|区别|意思|当前(?:目录|路径|分支|用户|行|页|文件夹)"
    "|现在完成时|现在进行时|一般现在时",
)
# "The plot of Hamlet", "the name of the river": there is such a thing already, and it stays what it is.
_EXISTS = (
    r"(?!(?: me| us)?(?: about)? (?:the|its|their|his|her) (?:\w+ )?"
    r"(?:names?|ideas?|plot|story|tale|characters?|lyrics|verse|speech|review|letter)"
    r" (?:of|behind|in|from|to|by)\b(?! an?\b))"
)
_CREATIVE = _any_of(
    r"\b(?:write|compose|draft|invent|make up|imagine|brainstorm|come up with|create|generate"
    rf"|(?:tell|give me)\b{_EXISTS}|suggest|think of|sing|rap)\b.{{0,40}}?"
    r"\b(?:poems?|haiku|limerick|sonnet|song|lyrics|rap|story|stories|tale|jokes?|riddles?|essay|novel"
    r"|screenplay|dialogue|speech|slogans?|tagline|names?|ideas?|plot"
    r"|character|verse|letter|e-?mail|post|tweet|advert|ad|caption|blog|toast|vows|bio|review"
    r"|complaint|invitation|apology|pun)\b",
    r"^(?:please )?(?:write|compose|draft|rewrite|rephrase|paraphrase|continue"
    r"|finish)\b(?!.{0,50}\b(?:function|query|regex|script|code|program|class|test|sql|loop|file"
    r"|formula|equation|numbers?|date)\b)",
    _words(
        "surprise me",
        "at random",
        "random (?!access|forest|variable|number|walk|sampl)\\w+",
        "roll (?:a|the|two) dic?e",
        "flip a coin",
        "pick (?:a|one|any)",
    ),
    _words(
        "role[- ]?play",
        "pretend (?:to be|you)",
        "act as",
        "act like",
        "haiku",
        "limerick",
        "tell me something (?:funny|interesting)",
    ),
    "(?:写|编|创作|拟|起草|生成|改写|润色|续写|仿写|作(?=[一首篇个])|(?:来|想|起|取|讲(?!的是|了?(?:什么|啥|哪))|出|画"
    "|给我)(?=[一两二三几个首段点篇份]|.{0,3}(?:名|故事|笑话|段子))).{0,14}?"
    "(?:诗|词(?!典|语|汇)|歌(?!手)|故事|笑话|段子|小说|作文|文案|剧本|对联|谜语|名字|网名|口号|标语"
    "|演讲稿|发言稿|信(?!息|用|号|任)|邮件|情书|散文|检讨|总结|周报|日报|评语|祝福|贺词|好评|差评"
    "|朋友圈|请假条|议论文|广告)",
    "随机(?!数|变量|森林|存取|访问|抽样)|随便(?:选|挑|说|来)|掷骰子|抛硬币|脑洞|角色扮演|扮演|假装你是",
)
# Who asks how such a thing is written wants no new one.
_METHOD = _any_of(
    r"^\W*how (?:(?:do|can|should|could) (?:i|we|one|people)|to|is|are)\b",
    r"^\W*what(?:'s| is| are) (?:an? )?\w+\W*$",
    "(?:怎么|怎样|如何|咋)[^我你]{0,4}(?:写|编|拟|起草|创作|讲)|的(?:格式|写法)",
)
_CHITCHAT = _any_of(
    r"^\W*(?:hi|hello|hey|yo|good (?:morning|afternoon|evening|night)|thanks?(?: you)?(?: (?:so"
    r"|very) much| a lot)?|thx|bye|goodbye|see you|ok(?:ay)?|cool|great|nice|lol|haha+"
    r"|how are you(?: doing)?|what'?s up|who are you|what are you|what(?:'s| is) your name"
    r"|are you (?:a )?(?:human|bot|robot|real|an ai)|nice to meet you)(?: there| again| all)?\W*$",
    r"^\W*(?:你好|您好|嗨|哈喽|早上好|早安|中午好|下午好|晚上好|晚安|谢谢你?|多谢|感谢|再见|拜拜|好的"
    r"|好吧|哈哈+|在吗|在不在|你是谁|你叫什么(?:名字)?|你是机器人吗|你是人吗|吃了吗|你会什么"
    r"|你能做什么)[呀啊吗哦嘛了]?\W*$",
)
_BUSINESS = _any_of(
    _words(
        "refunds?",
        "returns? (?:policy|an?|the|my|item|label)",
        "shipping",
        "deliver(?:y|ies)?",
        "ship(?:s)? to",
        "warranty",
        "guarantee",
        "invoices?",
        "opening hours",
        "business hours",
    ),
    _words(
        "customer (?:service|support|care)",
        "membership",
        "loyalty",
        "coupons?",
        "vouchers?",
        "discount codes?",
        "promo(?: code)?s?",
        "gift cards?",
        "exchange policy",
        "cancellation",
        "check-?out",
    ),
    _words(
        "your (?:shop|store|company|website|app|office|service|policy|team|hotel|gym|staff|bank|branch)",
        "(?:do|does|are|can|will) you (?:ship|sell|offer|accept|deliver|open|take|have|price)",
    ),
    _words(
        "expense (?:report|claim)s?",
        "reimburs\\w+",
        "annual leave",
        "payroll",
        "vpn access",
        "company (?:policy|car|laptop)",
        "working hours",
    ),
    "退货|退款|换货|发货|快递|运费|包邮|会员|发票|保修|质保|三包|营业时间|几点(?:开门|关门|营业|下班"
    "|上班)|客服|优惠券|折扣|满减|定金|尾款|售后|门店|你们|贵(?:公司|司|店)|报销|年假|考勤|请假流程"
    "|社保|公积金|会议室|工牌|入职|离职",
)
_CODE = _any_of(
    r"```|\bdef \w+\(|\bSELECT\b.+\bFROM\b|#include|</\w+>|\bconsole\.log\b|=>|(?<!\w)\w++\(\)",
    _words(
        "python",
        "javascript",
        "typescript",
        "java",
        "golang",
        "rust",
        "c\\+\\+",
        "c#",
        "php",
        "ruby",
        "kotlin",
        "swift",
        "sql",
        "mysql",
        "postgres(?:ql)?",
        "mongodb",
        "redis",
        "sqlite",
        "bash",
        "powershell",
    ),
    _words(
        "html",
        "css",
        "react",
        "vue",
        "angular",
        "django",
        "flask",
        "node(?:\\.js)?",
        "npm",
        "pip",
        "git",
        "docker",
        "kubernetes",
        "k8s",
        "kubectl",
        "nginx",
        "terraform",
        "regex",
        "api",
        "json",
        "yaml",
        "xml",
    ),
    _words(
        "compilers?",
        "functions?",
        "algorithms?",
        "arrays?",
        "stack trace",
        "exception",
        "segfault",
        "null pointer",
        "unit tests?",
        "recursion",
        "dataframe",
        "pandas",
        "numpy",
    ),
    "代码|编程|函数|报错|正则|脚本|接口|数据库|线程|进程|数组|变量|编译|部署|前端|后端",
)
_ADVICE = _any_of(
    _words(
        "should i",
        "recommend\\w*",
        "suggest\\w*",
        "advice",
        "tips",
        "which (?:one )?(?:is|are) (?:better|best)",
        "what(?:'s| is| are) the best",
        "worth (?:it|buying)",
        "is it (?:better|worth|a good idea)",
    ),
    "该不该|要不要|推荐|建议|哪个好|哪款|值得|值不值|选哪|怎么选|注意什么|技巧|攻略",
)

_KEPT = timedelta(hours=24), timedelta(days=7)
_KEPT_BUSINESS = timedelta(hours=1), timedelta(hours=4)
_KEPT_PERSONAL = timedelta(minutes=20), timedelta(minutes=30)
_SHARED: tuple[tuple[ContentClass, re.Pattern[str], tuple[timedelta, timedelta], str], ...] = (
    ("chitchat", _CHITCHAT, _KEPT, "small talk"),
    ("code", _CODE, _KEPT, "a question about code"),
    ("business", _BUSINESS, _KEPT_BUSINESS, "asks for a business rule"),
    ("advice", _ADVICE, _KEPT, "asks for advice"),
)
# A turn that goes on with the one before is of its kind: "and in Rome?", "那上海呢".
_GOES_ON = _any_of(
    r"^\W*(?:and|or|but|so|then|what about|how about|what if|same|also)\b|^\W*(?:why|how|when|where"
    r"|really|which one|who)\W*$|\b(?:it|that|there|those|them|this one)\W*$",
    "^(?:那|那么|还有|然后|换成|如果是|再|另外)|呢[?？]?$|^(?:为什么|怎么说|真的吗|多少|哪个)[?？]?$"
    "|它|这个|那个|那里|那边",
)


def _is_live(text: str) -> bool:
    if _LIVE.search(text):
        return True
    if _PRICE.search(text) and not _TARIFF.search(text):
        return True
    # "Now tell me how tall it is" goes on to the next question.
    return bool(_NOW.search(taken_out(text))) and not _TIMELESS.search(text)


def _goes_on(text: str) -> bool:
    """Does the question lean on the turn before it? Short ones are taken to."""
    return len(text) < 12 or (len(text.split()) < 4 and text.isascii()) or bool(_GOES_ON.search(text))


def _asked(turns: Turns) -> list[str]:
    """The question, and the questions before it that it goes on with."""
    texts = [turn["content"] for turn in turns if turn["role"] == "user"]
    first = len(texts) - 1
    while first > 0 and _goes_on(texts[first]):
        first -= 1
    return texts[first:]


def classify(turns: Turns) -> Cacheability:
    """Judge the question (the last turn) in its history. A live or creative question is answered anew every
    time; anything personal, in question or history, stays in its session: an answer may take up what was
    said of a person ten turns ago. A live question ten turns ago does not matter, unless this one goes on
    with it."""
    question, lately = turns[-1]["content"], _asked(turns)
    bare = taken_out(question)
    if not any(character.isalnum() for character in question):
        return Cacheability("fact", False, False, None, None, "there are no words in the question")
    if _CREATIVE.search(bare) and not _METHOD.search(bare):
        return Cacheability("creative", False, False, None, None, "asks for something new each time")
    if any(_is_live(text) for text in lately):
        return Cacheability("live", False, False, None, None, "the answer changes with time or place")
    for turn in reversed([turn for turn in turns if turn["role"] != "system"]):
        why = find_personal(turn["content"]) if turn["role"] == "user" else find_data(turn["content"])
        if why:
            ttl, life = _KEPT_PERSONAL
            reason = why if turn["role"] == "user" else f"the history holds {why}"
            return Cacheability("personal", True, False, ttl, life, reason)
    for name, pattern, (ttl, life), reason in _SHARED:
        if pattern.search(question):
            # Small talk after something answers to it.
            return Cacheability(name, True, name != "chitchat" or len(turns) == 1, ttl, life, reason)
    ttl, life = _KEPT
    return Cacheability("fact", True, True, ttl, life, "a general question")


def is_personal(text: str) -> bool:
    """Does this text (an answer, say) hold something that should not leave its session? An answer says "my"
    and "I am" of the model; there only data count."""
    return bool(find_data(text))
