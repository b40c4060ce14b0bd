"""What kind of answer a question wants: a method, a reason, a time, a price …"""

import re

from .script import COMMON_HAN

# A kind of answer: in English, in Chinese. Looked for anywhere; several kinds may be found.
_KINDS = {
    "howto": (
        r"\bhow (?:i|you|we|one|people) (?:can|could|should|do|would|might)\b|\bhow(?:'s| is| are| do"
        r"| does| can| could| would| should| to| might| did)\b(?! (?:it|that|this) (?:cost|long))"
        r"|\b(?:way|steps?|procedure|process|instructions|method|guide|tutorial)s?\b(?: (?:to|for|of"
        r"|do)\b|[?.]|$)"
        r"|\bwhat do i (?:have to |need to )?do\b",
        r"怎么(?![样回会没还能可是]|(?:这么|那么|了))|如何|怎样|咋(?!回|会|不|没|这么|样)"
        r"|[做吃玩写用]法|步骤|流程|方法|教程|怎样才能|操作",
    ),
    "fix": (
        r"\b(?:fix|solve|troubleshoot|resolve|get rid of)\b|\bwhat should i do\b"
        r"|\bwhat (?:can|do) i do (?:if|when|about)\b",
        r"怎么办|咋办|怎么解决|如何解决|怎么处理|怎么修|解决",
    ),
    "why": (
        r"\bwhy\b|\bfor what reason|\breasons?\b"
        r"|\bwhat(?:'s| is| are| could be| can be)? (?:the )?caus|\bcauses? (?:of|for)\b|\bhow come\b"
        r"|\bwhat makes\b",
        r"为什么|为啥|为何|怎么回事|咋回事|原因|怎么会|怎么[不没还]|咋[不没会]|何以|什么情况",
    ),
    "time": (
        r"^when\b|\bwhen (?:do|does|did|is|are|can|should|will|must|would|was|were)\b|[,.] when\b"
        r"|\bsince when"
        r"|\bwhat (?:time|date|day)s?\b|\bhow (?:long|much (?:time|longer|earlier|later)|soon|late"
        r"|early|fast|quickly)\b"
        r"|\bhow many (?:days|hours|minutes|weeks|months|years|seconds)\b|\bdeadline\b|\bduration\b"
        r"|\bwithin what\b|\bwhat are the hours|\bby when\b",
        r"什么时候|啥时候|何时|几点|几[天日周年]|多久|多长时间|几个月|几个?小时|几分钟|多少[天年分]"
        r"|多少个?小时|哪[天年]|几[月号]|期限|时限|时长|时间|期间",
    ),
    "often": (
        r"\bhow (?:often|frequently|regularly)\b|\bfrequency\b|\bhow many times\b|\binterval\b",
        r"多久.{0,4}一次|几天.{0,4}一次|频率|隔多久|几次|多少次",
    ),
    "price": (
        r"\bhow (?:much(?= (?:is|are|was|do|does|did|for|to|would|will|should|can)\b|\W*$)|expensive)\b"
        r"|\bpric(?:e|es|ing)\b|\bcosts?\b"
        r"|\bfees?\b|\brates?\b|\bcharged?\b"
        r"|\bhow dear\b",
        r"多少钱|几块|几元|价格|费用|收费|价钱|报价|多贵|几钱|花费",
    ),
    "degree": (
        r"\bhow (?!do|does|did|to|can|could|would|should|might|is|are|was|were|many|much|long|often"
        r"|come|soon|i\b|you\b|we\b"
        r"|one\b|it\b|the\b|that\b|big|large|tall|high|far|deep|heavy|fast|old|hot|wide|late|early"
        r"|quickly|frequently)"
        r"[a-z]{4,}\b",
        r"(?!)",
    ),
    "amount": (
        r"\bhow (?:many|much(?! (?:is|are|was|do|does|did|for|to|would|will|should|can|time|longer"
        r"|earlier|later)\b)(?!.{1,60}\bcosts?\W*$)|big|large|tall|high|far|deep|heavy|fast|old|hot"
        r"|wide)\b|\bnumber of\b"
        r"|\bpercent(?:age)?\b|\bmaximum\b|\bminimum\b|\blimit\b",
        r"多少(?!钱)|几[个位台次件张只人家种口斤成折级度升克本份条]|多[大高重远深宽快]|上限|最多|最少"
        r"|最大|最高",
    ),
    "where": (
        r"\bwhere(?:abouts)?\b|\bwhich (?:place|page|menu)|\blocation\b",
        r"哪里|哪儿|(?<!差)在哪|何处|什么地方|哪个地方|位置",
    ),
    "who": (
        r"(?:^|[,.;:] ?)who(?:m|se)?\b|\bwhom\b|\bwho (?:is|are|was|were|can|should|will|has|must|do"
        r"|does|did)\b"
        r"|\bwhich (?:person|people)\b",
        r"谁|哪位|什么人|哪些人|何人",
    ),
    "define": (
        r"\bwhat\b.{0,60}\bmeans?\b|\bmeans?\W*$|\bmeaning\b|\bdefin\w+\b|\bwhat(?:'s| is"
        r"| are)(?: an?)? \S+(?: \S+)?\?*$"
        r"|\bstands? for\b",
        r"什么意思|啥意思|含义|什么是|是什么$|何谓|定义|是啥$|指什么",
    ),
    "compare": (
        r"\bdifferen(?:ce|t|ces)\b|\bvs\b|\bversus\b|\bcompar\w+|\bdiffer\b|\bdistinguish\b|\bbetter\b"
        r"|\bor\b|\b\w{3,}er than\b|\bmore \w+ than\b",
        r"怎么选|如何选|选哪|选啥|区别|差别|差在哪|差哪|不同|不一样|异同|对比|比较|哪个|区分|还是|差异"
        r"|更(?![改换新正多])",
    ),
    "yesno": (
        # "Could you explain" asks for an explanation, not whether one could.
        r"(?:^|[.!,;:?] ?)(?:is|are|am|do|does|did|can|could|will|would|should|may|has|have|was|were"
        r"|must|might)\b"
        r"(?! you (?:please |maybe )?(?:explain|tell|help|show|say|give|let|describe))"
        r"|\bpossible\W*$|\bis it possible\b"
        r"|\ballowed\b|\b(?:whether|if) i (?:can|may|should)\b",
        r"吗|[能可会要行是该用有对好得]不[能可会要行是该用有对好得]|可不可以|是否|可否|能否|有没有"
        r"|没有$|(?<![什怎多这那要])么$|[不没]$|没\?|会不会|需不需要|算不算",
    ),
    "which": (
        r"\bwhich\b|\bwhat (?:kind|type|sort)s?\b|\bwhat(?:'s| is) the (?:best|cheapest|fastest|most)"
        r"|\brecommend",
        r"哪个|哪些|哪种|哪款|推荐|什么(?:样|类型)|哪几",
    ),
    "avoid": (
        r"\bwhat (?:can|should|must|do|may)(?:n't| i not| you not| not)\b|\bwhat not to\b"
        r"|\bnot (?:allowed|supposed) to\b"
        r"|\bto avoid\b|\bshould i avoid\b|\bwhich\b.{0,30}\bnot\b",
        r"不[能可要宜该准让](?:和|跟|吃|做|带|用|喝|碰)?(?:什么|哪些|啥)|(?:哪些|什么|啥"
        r"|哪种)[^,，?？]{0,8}不[能可要宜该准]|禁忌|忌口|什么人不|谁不能",
    ),
    "write": (
        r"^(?:please )?(?:write|draft|compose|make|create|generate|turn|rewrite|summari[sz]e"
        r"|list) (?:me|us|an?|the|this"
        r"|that|my|some|three|five|ten|\d+|up|all)\b|^(?:please )?(?:translate|give me)\b"
        r"|[.!?] (?:write|draft|give me|make|list|turn)\b"
        r"|\b(?:please|can you|could you|would you) (?:write|draft|compose|make)\b",
        r"(?:帮|给|替|请)(?:我|忙)?(?:写|拟|编|列|画|整理|起草|生成)(?!入|错|着|菜|法)|给我(?:一|几|个"
        r"|份|张|套|段|出|做)|(?:列|整理)出|编成|出[一二三四五六七八九十\d]+道|填一?[份张]"
        r"|写一?[篇封份段个首张条]"
        r"|(?:拟|起草|画)一?[份篇封张个]|翻译|做成|写成|画成|[做列画]个?表|怎么[说讲]|咋[说讲]"
        r"|请[以用].{0,6}(?:列|给)出",
    ),
}
_READ = {
    name: (re.compile(english, re.ASCII), re.compile(chinese)) for name, (english, chinese) in _KINDS.items()
}


_SENTENCE = re.compile(r"[^.!?。！？]*[.!?。！？]*")


def read_intents(lowered: str) -> tuple[str, ...]:
    """The kinds of answer asked for, in a fixed order; () where the text doesn't say (keywords). Where some
    sentences end in a question mark, only those ask; what is to be written may be ordered in any."""
    language = 1 if COMMON_HAN.search(lowered) else 0
    asking = " ".join(
        part.strip() for part in _SENTENCE.findall(lowered) if part.rstrip().endswith(("?", "？"))
    )
    return tuple(
        name
        for name, patterns in _READ.items()
        if patterns[language].search(lowered if name == "write" else asking or lowered)
    )


_ASKS = re.compile(
    r"[?？]|[吗呢]|么(?=\W*$)|怎|如何|什么|啥|哪|谁|(?<![头好前近十数百千])几[个点时岁次天年月号位台]"
    r"|多少|多久|为何|是否|[能可]否"
    r"|([\u4e00-\u9fff])[不没]\1|有没有|请|帮我|给我|替我|^求|求[助教问推]"
    r"|\b(?:what|who|whom|whose|which|when|where|why|how|whether|please|tell|explain|give|show|list|write)\b"
    r"|^(?:is|are|do|does|did|can|could|will|would|should|may|has|have|was|were|am)\b",
    re.ASCII,
)
_STATES = re.compile(r"[。.!！”\":：,，;；]\s*$")


def read_mood(lowered: str) -> str:
    """ "question" for what asks or orders, "statement" for a full sentence that doesn't, "" for keywords."""
    if _ASKS.search(lowered):
        return "question"
    return "statement" if _STATES.search(lowered) else ""
