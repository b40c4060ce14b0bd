"""Words that speak for or against a signal, in English and Chinese. None of them decides by itself: what each
weighs, and what it weighs in a question or after a question, is fitted.

Patterns are searched in one clause at a time, in lower case, after quotations, code and set phrases have been
blanked out.
"""

import re
from collections.abc import Mapping

Pattern = re.Pattern[str]


def _any(*patterns: str) -> Pattern:
    return re.compile("|".join(patterns), re.IGNORECASE)


def _words(row: str) -> str:
    """A pattern for whole English words or phrases, separated by "|"."""
    return rf"\b(?:{row})\b"


_BE_NOT = (
    r"(?:is|are|was|were|am|'s|'re|'m|do|does|did|has|have|had|can|could|will|would|should) ?(?:not|n't|n’t)"
)

# Turned to blanks: here the negating or correcting word does not negate or correct.
SET_PHRASES = _any(
    _words(
        r"not only|if it'?s not too much trouble|not just|not to mention|not to be \w+(?: but)?|not"
        r" (?:gonna|going to) lie|not bad"
        r"|no wonder"
        r"|no problem|no worries|no doubt|no idea|no way(?=[!?.])|no thanks to|nothing (?:beats|against|like)"
        r"|not a doubt|no rush|no hurry|no offen[cs]e|no joke|no kidding|no matter|why not|or not|or"
        r" no|if not"
        r"|nothing (?:i'd|i would) change|not one \w+ missing|can'?t wait|can(?:no|')t (?:agree|thank"
        r"|complain)\w*"
        r"|couldn'?t agree more|could not agree more|don'?t mind|doesn'?t matter|never mind (?:the"
        r"|that|my) \w+"
        r"|i don'?t mean to|no[- ]code|no one|stop[- ]?words?|not yet|yes and no|i know,?"
        r" right|right\?"
        r"|instead of|rather than(?= \w+ing)|change of clothes|i mean it|in case|no big deal|no need"
        r" to apologi[sz]e"
    ),
    "不错|没错|没关系|没事(?!了)|没问题|没毛病|没意见|没得说|没想到|没准|不好意思|对不起|不客气|不用谢|不急|不但|不仅|不光|不只|不过|不得不|不能不|不愧"
    r"|不能(?:更|再)?同意(?:更多)?|可不是|不是我(?:夸|吹)\S*?|差不多|了不起|不得了|不然|要不然|不管|不论|无论|不妨|不如说|不禁|不断|不久|不少"
    "|错落|错过|错峰|算不算|算是|打算|预算|计算|不反对|别提多|别的|特别|分别|区别|级别|性别|告别|识别|类别|个别|改天|改善|改进|换季|换句话说|更换|交换"
    "|不在话下|毫不|无非|是不是|对不对|好不好|行不行|能不能|要不要|会不会|可不可以|有没有|可能",
)
# Those of them that a message begins with when it goes along: they are read as the yes that they are, unless
# something is changed or dropped behind them.
GOES_ALONG = _any(_words(r"no problem|no worries|no big deal"), "没问题|没关系|没事(?!了)|没毛病|没意见")
QUOTED = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]+`|“[^”]*”|「[^」]*」|『[^』]*』|《[^》]*》|\"[^\"\n]*\"|(?<!\w)'[^'\n]{2,}'(?!\w)",
    re.DOTALL,
)
# What follows such an opening are other people's words, or a text to be worked on.
REPORTED = _any(
    r"\b(?:translate|punctuate|proofread|paraphrase|rephrase|pronounce|say|said|says|wrote|writes"
    r"|texted|replied"
    r"|mean|sentence|phrase|line|quote|prove|show that|regex|formula|text|this)"
    r"\b[^:：,.?!]{0,40}[:：]\s*\S.*",
    r"(?:翻译|翻成|译成|润色|改写|造句|解释|朗读|断句|原话|原文|说|写|写道|回|回复|台词|公式|这句|那句|语法|日语|英语|英文|口语)[^:：,，。?？]{0,12}[:：]\s*\S.*",
    r"^[^,，。]{0,24}\b(?:said|says|wrote|replied|texted)[:,]? no\b.*",
)
# "A bit shorter": a shade of the same, no other thing.
SHADE_EN = re.compile(
    r"^\W*(?:(?:now|and|ok|maybe|please|make it|just|could you|can you|would you)\b"
    r"[\s,]*)*(?:a (?:bit|little|touch) "
    r"|slightly |even |much |way )?"
    r"(?:(?:more|less) [a-z]{3,}|(?!n?either|n?ever|other|after|later|earlier|sooner|cheaper"
    r"|rather|under|over)[a-z]{3,}er)(?:,? please)?\W*$",
    re.IGNORECASE,
)
# A new piece of work: not a change to the old one.
WORK_EN = re.compile(
    r"^\W*(?:(?:and|so|but|ok(?:ay)?|well|cool|then|also|now|next|great|thanks?|perfect|please"
    r"|kindly|hey|first|just|good|fine|alright|could you|can you|would you|i'?d like you to)\b[\s,.!]*)*"
    r"(?:write|give|show|tell|explain|list|summari[sz]e|draft|suggest|find|describe|compare"
    r"|recommend|translate|name|calculate|convert|plan(?! (?:it|is|[a-z]|does\w*)\b)|create"
    r"|generate|help|remind|define"
    r"|prove|save|send|continue|go on|"
    r"invent|compose|outline|quote|spell|add|teach|walk me|turn (?:it|this|that) into (?:a |an "
    r"|the )?(?:reported|direct|indirect|passive|active|past|present|future|plural|question"
    r"|negative)|set up|look up|packing list|proofread"
    r"|punctuate|conjugate|rhyme|estimate|include|rate|review|mark|grade|save|print|draw|sketch"
    r"|do the same|book|order|reserve|start|begin|install"
    r"|configure|use .{1,40} in|(?:just )?one (?:about|for|with|on|more)|a (?:second|third)"
    r"|simulate|roleplay|play|act|let(?! ?us|'?s| me)|sort|solve|sing"
    r"|count (?:to|from|down|up|the)|repeat after|define|analy[sz]e|predict|evaluate|simplify|factor"
    r"|derive|integrate|multiply|divide|rank|classify|brainstorm|paraphrase|schedule|research|cite"
    r"|elaborate|respond|reply|answer (?:in|as|like|with|this|these))\b"
    r"|^\W*in (?:one|two|three|four|five|\d+|a few|a couple of|simple|plain|short|other|your own"
    r"|layman)[\w' ]{0,14}"
    r"\b(?:sentences?|words|terms|lines|paragraphs?|points)$",
    re.IGNORECASE,
)
WORK_ZH = re.compile(
    r"^\W*(?:那|那么|好的?|行|请|麻烦|劳驾|先|再|然后|接着|顺便|现在|嗯|你|您|就|能|可以)*(?:(?:帮|给|替|为)"
    r"(?:我|他|她|大家|忙)|把(?:\s+|这"
    r"|下面|上面|第|它)[^,，。]{0,8}(?:翻|译|写成|改写|整理|列|念)|写(?!成|的)|讲|说说|列|举|翻译|翻成|解释|推荐|介绍|总结|告诉|比较|对比"
    r"|算一?下|查一?下|生成|做个|来[一个两段首]|出[一个两道]|继续|接着|展开|背|默写|造|编|起个|取个|拟|教|演示|用[^,，。]{1,16}(?:造|写|举|说|讲"
    r"|编|解释)|发我|念|扮演|模拟|续写|想[一两几]|出[一二两三四五六七八九十几\d]+[个道条]|(?:整理|浓缩|概括|归纳|提炼|汇总|转写|排)成|挑[一两几]"
    r"|选[一两几]个|[说写]出|给[点些个几]\S{0,8}(?:建议|意见|思路|例子|点子|提示)|[一两三几\d]+(?:[两三]|到[两三])?句话)"
    r"|(?:改|换|变)成(?:间接|直接|被动|主动|疑问|否定|肯定|反问|陈述|过去|将来|现在时|复数|单数|第[一二三]人称)"
    r"|(?:\S{0,3}再|稍微|更)\S{1,4}(?:一点|一些|点|些)[儿吧呗]?\W*$"
    r"|[^,，。]{0,6}再加[一两几](?:段|句|首|行|章|节|条|个|点|幕)"
    r"|[^,，。]{0,6}(?:再|多|也|照)[^,，。]{0,8}(?:来|说|写|想|讲|举|给|出|推荐|列|编)(?:[一二两三四五六七八九十几\d个点]|我)"
    r"|(?:里面|中间|结尾|开头|最后)?(?:让|加|补)\S{1,4}(?:说|喊|问|讲|[上个]?一[句段行])",
)
# Adds to what the clause before it says; asks nothing.
RELATIVE_EN = re.compile(
    r"^\W*(?:which|who|where) (?:is|isn't|are|aren't|was|wasn't|were|means|makes|has|had|does|doesn't)\b",
    re.IGNORECASE,
)
# A question that proposes an answer. It wants no fact from the user.
PROPOSES = re.compile(
    r"\b(?:how about|what about|why not|how does|sound good)\b"
    r"|(?:怎么样|如何|可好|好不好|行吗|可以吗)[?？]\W*$",
    re.IGNORECASE,
)
# What follows is a draft: its questions are not the assistant's.
DRAFTS = re.compile(r"^[^.。!！?？\n]{0,24}[:：]")
# Names what is wanted to know, and nothing else: "opening hours", "出土地点". A question without its words.
ATTRIBUTE = re.compile(
    r"^(?:the |its |their |his |her |any )?(?:\w+ ){0,2}(?:price|cost|costs|hours|timetable|policy|address"
    r"|ingredients?|author|population|length|height|weight|width|depth|age|meaning|reasons?"
    r"|causes?|steps|side effects|deadline"
    r"|requirements?|alternatives?|substitutes?|synonyms?|examples?|dosage|temperature|duration"
    r"|distance|pronunciation|etymology|origins?|pros and cons|advantages|drawbacks|difference"
    r"|fees?|rules|symptoms)(?: (?:of|for|in|to) .{1,30})?\W*$"
    r"|(?<!同一)(?<![这那换])(?:时间|地点|地址|位置|方法|办法|方式|做法|写法|用法|吃法|说法|步骤|流程|过程|原因|理由|作者|价格|价钱|费用|门槛|要求"
    r"|条件|路线|距离|间隔|数量|数目|形式|替代品|措施|权益|区别|差别|特点|特征"
    r"|缺点|优点|日期|年份|期限|名称|读音|含义|出处|来源|年龄|[卒生]年|尺寸|大小|重量|高度|面积|长度|宽度|人数|票价|时长|频率|比例|公式|定义|效果|影响|好处"
    r"|坏处|风险|材料|用料|原料|工具|结局|背景|代表作|症状|副作用|温度|度数)(?:呢|有)?\W*$"
    r"|(?:说说|讲讲|说来听听|讲讲看|介绍介绍|聊聊)\W*$",
    re.IGNORECASE,
)
# As one types into a search field: what is wanted, and of what. Words that elsewhere change something are
# what it is about here ("advice on cutting costs", 延长寿命的方法). What names a value may exchange it.
HEADING = re.compile(
    r"^(?!.*(?:\b\d|\b(?:is|are|was|were|has|have|had|will|would|should|must|isn't|aren't|wasn't|weren't"
    r"|it|that|those|instead|today|tomorrow|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b))(?:"
    r"(?!(?:an?|the|another|other|any|my|our|your|his|her|same|only|just|no|not|new)\b)(?:[\w-]+ ){0,2}"
    r"(?:functions?|roles?|purpose|jobs?|steps|ways|methods?|advice|tips|tricks|recipes?|instructions|guide|ideas"
    r"|examples|numbers?|list|process|procedure|causes?|reasons|symptoms|signs|effects?|benefits|advantages"
    r"|drawbacks|risks|rules|types|kinds|facts|history|origins?|meaning|definition|differences?|comparison"
    r"|explanation|overview|summary|price|cost|size|height|length|capital|population|(?:start|end|birth) date"
    r"|inventor|author|founder|formula|requirements|things|foods|uses|time|place|season)"
    r" (?:(?:of|for|on|about|with|between|against|behind) |(?:to|that|an?|the|you|one|people) \w+ ?)\w.*"
    r"|(?:making|cooking|baking|fixing|mending|repairing|cleaning|removing|installing|learning|choosing|building|growing"
    r"|(?:changing|replacing)(?= an? )) (?!(?:them|this|to|from|for|in|on|at|with|my|our|me|the)\b)\w.*"
    r")$"
    r"|^(?![改换变就还不只别用要把])[^,，。\d]{2,}的(?:方法|办法|方式|做法|写法|用法|步骤|流程|过程|原因|理由|作用|用途|意义|区别|差别|特点"
    r"|症状|好处|坏处|影响|注意事项|技巧|窍门|建议|历史|由来|来历|简介|原理)\W*$",
    re.IGNORECASE,
)
# A wh-word that comes late: "counted from which day", "a bad idea how come"; or what is left to be filled in:
# "the nearest to the sun is".
LATE_QUESTION = re.compile(
    r"\b(?:from|in|into|on|at|to|for|by|of|with|until|since|under|after) (?:which|whose|whom"
    r"|what|how (?:many|much|long|far|often))\b(?! (?:i|we|you|he|she|they)\b)|\bhow come\b|\bwhat for\b"
    r"|\bor (?:what|not)\W*$|\band (?:how"
    r"|why|when|where|who|what)\b|\bwhat about\b|:\s*(?:how|why|when|where|who|what|which)\b"
    r"|^the \w.{6,}\b(?:is|are|was|were)$|^\w.{8,}\b(?:gives|equals)$",
    re.IGNORECASE,
)
# Nothing is asserted: a shop assistant's first words.
OPENS = re.compile(
    r"\b(?:how|what) (?:can|may|could) i (?:help|do)\b|\bhow can i assist\b"
    r"|有什么(?:可以|能)帮|需要什么帮助|什么可以帮您|^在的",
    re.IGNORECASE,
)
# Put as a question, meant as a change.
CHANGE_REQUEST = re.compile(
    r"^\W*(?:so |and |please |sorry )?(?:could|can|would|will) (?:you|we) (?:please |maybe |just )?(?:mind )?"
    r"(?:chang|mak|swap|switch|mov|push|us|do(?:ing)? (?:it|that|this)|turn)(?!\w* (?:sure|sense|up))"
    r"|^\W*(?:能不能|可以|可不可以|能|可否|要不)(?:帮我|给我)?(?:把\S{1,8})?(?:[改换挪调移]|按\S{1,6}[算来])(?!\S{0,3}(?:什么|哪|多少))",
    re.IGNORECASE,
)
# The politeness before such a word says nothing: "thanks, but make it Tuesday".
TURNS = re.compile(
    r"^\W*(?:but|however|actually|though|except|only|one thing|that said|不过|但|只是|可是|就是|然而"
    r"|其实)(?!\w* if\b)",
    re.IGNORECASE,
)
GOES_ON = re.compile(
    r"^\W*(?:and|what about|how about|plus|also|then)\b"
    r"|^\W*(?:那(?!就|还是|改|换|算|不|是)|然后|还有|以及|另外|顺便|对了)|呢\W*$",
    re.IGNORECASE,
)
# Answers that assert nothing: a nod, thanks, sympathy.
NODS = re.compile(
    r"^\W*(?:of course|sure|ok(?:ay)?|thanks?|thank you|great|you'?re welcome|noted|got it|no"
    r" problem|glad|happy to|my pleasure|congrat\w*|nice|lovely|fun|cool|welcome|hi|hello|sorry"
    r" to hear|oh no|that's (?:great|lovely|impressive|nice|wonderful)|good (?:luck|choice)|"
    r"enjoy|have a|romantic|glad you)\b"
    r"|^\W*(?:当然|好[的呀啊嘞]|谢谢|收到|不客气|可以的?|明白|没问题|恭喜|真好|太好了|祝|您好|你好"
    r"|挺好|不错|很棒|是的|对的?|抱歉|欢迎|行|加油|常有)",
    re.IGNORECASE,
)
CODE = _any(
    r"^\s*(?:=[A-Z]+\(|\$ |>>> |SELECT |def |git |if \[|print\()",
    r"[;{}]\s*$|!=|==|&&|\|\||=>|->|<>|¬|∧|\\[wdsb]|\w\(\)|\[\^|:not\(|\bnull\b|\bassert|--\w",
)

QUESTION_EN = re.compile(
    r"^(?:(?:and|so|but|ok(?:ay)?|well|cool|then|also|ha|hm+|oh|great|thanks?|perfect|hey|please"
    r"|kindly|wait|just so i know|in that case|out of curiosity|by the way|btw)\b[\s,.!]*)*"
    r"(?:who|whom|whose|what|what's|which|when|where|why|how|how's|is|are|was|were|am|do|does|did"
    r"|can|could|will|would|should"
    r"|has|have|had|may|might|shall|any(?! \w+ (?:will|would|can|could|is|has))"
    r"|(?:is|are|do|does|did|wo|would|could|should)n'?t (?:it|that|this|these|the|they|you|we|i"
    r"|he|she|there|a|an|my|your))\b(?!\s+(?:i|we) (?:mean|meant)\b)",
    re.IGNORECASE,
)
QUESTION_ZH = _any(
    r"什么|怎么|怎样|如何|哪(?!怕)|谁|几(?!乎|十|百|天前|句话)\S|多少|多[久大长高远重深宽贵快热冷烫厚薄粗细咸甜早晚]|为何|为啥|咋|啥|何[时处地人物种方用]"
    r"|是不是|能不能|可不可以|要不要|有没有|会不会|好不好|对不对|行不行|算不算|是否|能否|(\S)不\1|(?<!不)(\S)\S不\2\W*$"
    r"|\S{2,}(?<![不就才都也])是$|吗|呢|[不没]\s*[?？]?$|么\s*[?？]?$|行吗|难道|还是说"
    r"|^[^,，。]{2,}(?<![我你他她们咱就那])还是(?!不|算)[^,，。吧]{1,}$|请教|想问|问下|问一下|(?<![不太])[对是]吧\W*$"
)
# Chinese question words that ask nothing here.
NOT_ASKING_ZH = re.compile(
    r"(?:没|不|无论|不管)(?:什么|啥|怎么|哪|谁|多\S)|(?:什么|啥|怎么|谁|哪\S{0,2})[都也]|哪(?:能|有|会|行|\S{1,4}得了|\S{1,3}得起)"
    r"|(?<!是)谁(?:说|知道|能|会|还)(?!的)|你[没不]\S{0,8}吗|怎么(?:成|变成|又|还|给我|是)|才怪|(?:我|人|在\S{1,6})呢$"
)

CUES: Mapping[str, Pattern] = {
    # The assistant, or an earlier word, was wrong.
    "wrong": _any(
        _words(
            r"wrong(?:ly)?|incorrect|inaccurate|mistaken?|mistakes?|misread|misunderst\w+|misheard"
            r"|misremember\w*|mistyped|misspoke|typo"
            r"|mix(?:ed|ing)? \w* ?\w* ?up|mixed|confus(?:ed|ing) \w+ (?:with|and|for)|backwards?|flipped"
            r"|swapped|reversed|opposite|upside"
            r"|doesn'?t add up|can'?t be right|not (?:right|correct|true|accurate|quite)|isn'?t (?:right"
            r"|correct|true)|aren'?t right"
            r"|off by|made (?:that|it) up|by mistake|look (?:at|again)|check (?:that|it )?again|check"
            r" again|double[- ]check|read (?:it|that|my \w+) again"
            r"|my bad|my fault|my mistake|i mistyped|correction|to correct|correct that|slip|oops|whoops"
        ),
        "不对|不正确|不准|有误|错|搞混|弄混|混了|混淆|误会|误解|串了|搞反|弄反|反了|颠倒|更正|纠正|手滑|手误|口误|笔误|漏了|漏掉|少算|多算"
        "|再?核[实对]|再查|再看|在看看|不是这[样个么]|不是那[样个么]|答非所问|跑题|张冠李戴",
    ),
    "said": _any(
        _words(
            r"i (?:said|say|asked|meant|mean|wanted|typed|wrote|told|mentioned|was asking|was talking"
            r"|specified|needed|clearly|already|gave you|actually)"
            r"|i'?m (?:asking|talking|applying)|what i (?:asked|said|meant|typed|wanted|wrote)|like i"
            r" said|as i said|we said|i'd said|the question (?:was|is)"
        ),
        "我(?:刚才?|前面|之前|上面|一直|明明|都)?(?:是|就是)?(?:说|问|要|写|讲|指|打|报|找|提|选|发|给)的|我(?:是|就是)?(?:说|问|指|想问)"
        "|我的意思|我意思|说的是|问的是|指的是|要的是|写的是|本意|前面(?:写|说|讲)|说过|讲过|写过|提过|明明|不是(?:说|讲|写)",
    ),
    "you_did": _any(
        _words(
            r"you (?:said|gave|made|put|used|wrote|forgot|missed|skipped|ignored|calculated|assumed"
            r"|picked|took|got|have|confused|counted|misread|"
            r"misunderstood|mixed|flipped|halved|doubled|answered|changed|dropped|left|read|swapped|keep"
            r"|are|told|quoted|described|translated|went|turned|multiplied|added|only)"
            r"|you(?:'re|'ve|r)|don'?t assume|this is not|that'?s (?:not|the|for|a)|those (?:are|aren't)"
            r"|these are"
        ),
        "你(?:们)?(?:忘|没|搞|弄|写|算|看|说|给|理解|误|漏|把|这[个是]?|翻|答|记|听|怎么|又|还|都|又把)|您(?:理解|搞|弄|看|记|误|算|写|没|忘"
        "|把)|给成|写成|算成|当成|说成|翻成了|看成|听成|弄成|搞成|记成|别给我",
    ),
    "no_start": _any(
        r"^\W*(?:no|nope|nah|naw|noo+|wait|hold on|hang on|um+|uh+|hmm+|er+|hey|but|well|sorry|oops"
        r"|lol|actually|huh|ugh|wrong|not|never)\b",
        r"^\W*(?:不|不是|不对|不不|非也|错|等等|等下|等一下|慢着|且慢|啊|哎|诶|呃|额|嗯？|可是|但是|但|抱歉|\?\?|？？)",
    ),
    "contrast": _any(
        r"\bnot (?:the |a |an |in |on |at |for |from |my |by |to )?[\w$%.'-]+(?: \w+)?\W*$",
        r"^\W*(?:not|it'?s not|it isn'?t|that'?s not|i'?m not|isn'?t)\b",
        rf"\b{_BE_NOT}\b",
        r"\b(?:it|that|they|he|she|this|there|\w+)(?:'s| is| are| was| isn't| aren't) (?:not|n't)\b"
        r"|\bn[o']t\b.*\bbut\b",
        r"不是|并非|而非|而不是|没有?(?!啥|什么)|不属于|跟\S+没关|压根|根本",
    ),
    "should": _any(
        _words(
            r"should (?:be|have|read|say)|supposed to|ought to|must be|has to be|needs? to be|it'?s"
            r" (?:called|spelled|pronounced)|means?|that'?s|stands for"
        ),
        "应该?(?:是|为|叫|得)|得是|才(?:是|对|算|行)|该是|其实|实际上|准确|正确的|通行|按理|照理|明显|好吧|好不好",
    ),
    "evidence": _any(
        _words(
            r"says|said|shows?|reads|according|textbook|website|dictionary|doctor|page|label|sign|receipt"
            r"|manual|box|ticket|docs?|photo|screen|output|"
            r"email|letter|invoice|schedule|teacher|certificate|passport|contract|wikipedia|terminal"
            r"|pretty sure|i checked|just checked|looked it up|measured|counted"
        ),
        "写着|写的|显示|印着|印的|上面|手里|课本|官网|书上|合同|票上|单子|说明书|查了|查过|试了|量了|跑了|明明写|词典|字典|百科|我刚(?:翻|看|查|量|跑|试|数)",
    ),
    # Says outright, at the start of a clause, that something is taken back.
    "outright": _any(
        r"^\W*(?:(?:actually|wait|no|sorry|oh|hold on|hmm|ok(?:ay)?|well|but|please|nah|just"
        r"|let'?s)\b[\s,]*)*"
        r"(?:forget (?:it|that|about|the|everything)|scrap|drop (?:it|that|the)|cancel (?:it|that"
        r"|this|the|everything)"
        r"|never ?mind$|i (?:said|meant|asked (?:for|about)|told you|was asking)|that'?s (?:wrong|not"
        r" (?:right|what i (?:said|asked|meant|want))|incorrect)"
        r"|you (?:got|misunderstood|misread|mixed)|(?:do|go with|use|take) .{1,30} instead|not .{1,30}, but)",
        r"^\W*(?:(?:等等|等一下|等下|哦|啊|那|嗯|呃|唉|哎|不好意思|抱歉)[，,]?)*"
        r"(?:算了|不对|错了|[搞弄说写看记听]错|你?理解错|改主意|还是[改换]"
        r"|别\S了|不\S了$|取消(?:吧|了|掉)|作废|我(?:说|问|要|指)的是|我是说|不是[，,]|更正)",
    ),
    # It was tried, and it does not help.
    "fails": _any(
        _words(
            r"(?:still|same) (?:fails?|broken|error|problem|issue|not|doesn'?t|drips?|the same|\w+ing)|no"
            r" difference"
            r"|(?:doesn'?t|didn'?t|does not|did not|won'?t|not) (?:work|help|fix|change anything)|no luck"
            r"|no effect|to no avail"
        ),
        "没用|不管用|不起作用|不好使|没效果|还是(?:报|一样|不行|老样子|这样|会|有)|照样|照旧报|依然|依旧|不行[，,]?还",
    ),
    "drop": _any(
        _words(
            r"scrap(?:ped)?|ditch(?:ed)?|drop(?:ped)? (?:it|that|the|this|everything)|bin (?:it|that"
            r"|this)|toss(?:ed)?|discard|forget (?:it|that|about|the|this|all|everything|what)"
            r"|cancel(?:led|ed|ling|ing)?|abandon\w*|nix|kill (?:it|that|the)|undo (?:it|that|this|all)"
            r"|revert|roll (?:it )?back|withdraw|skip (?:it|that|the|this)|delete (?:it|that|all|this)"
            r"|throw \w+ ?\w* away|throw (?:it|that|them) out|trash|never ?mind|nvm|don'?t bother|do not"
            r" bother|call(?:ed|ing)? (?:it |that |this )?(?:all |the whole thing )?off|pull(?:ed)? the"
            r" plug|shelved?"
            r"|off the table|out of the question|so much for|done with|giv(?:e|ing|en) up|gave up"
            r"|pull(?:ed|ing)? out|back(?:ed|ing)? out|leave it|no need|not needed|isn'?t needed|stop"
            r"|take (?:that|it|this) back|let'?s not|start over|fell through|falling through|called it"
            r" quits|changed (?:my|our|her|his|their) minds?|on hold|dead|moot|pointless|useless|wasted?"
        ),
        "算了|作废|取消|撤(?:回|了|销|掉)|放弃|不用了|不必了|别(?:写|做|弄|管|发|算|查|搞|整|排|改|画|订|想|往下|给我|再|推荐|弄了)|扔了|毁了|删了"
        "|删掉|黄了|泡汤|吹了|打住|停[了掉下吧]|拉倒|罢了|到此为止"
        "|回退|回滚|否了|否掉|否决|砍了|砍掉|作罢|免了|免谈|不提了|当我没[说问]|就当|省了|没戏|没用|白搭|白费|歇了|搁置|没必要|用不[着上]|不需要了|退了|退掉"
        "|退货|退回|解散|散伙|叫停|不办|断了|终止|不算数|pass",
    ),
    "not_doing": _any(
        _words(
            r"(?:not|isn'?t|aren'?t|won'?t|wouldn'?t|never|can'?t|cannot|don'?t|doesn'?t|didn'?t|no"
            r" longer) (?:be |be going to |want to |going to |even |really |gonna |to |actually )*"
            r"(?:do|doing|go|going|buy|buying|use|using|make|making|need|want|like|happen(?:ing)?"
            r"|interested|send|say|bother\w*|worth|post|get|getting|work(?:ing)?|allowed|have|take|move"
            r"|moving|introduc\w+|stand|fit|afford)"
            r"|decided against|decided not|against (?:it|that|the)|rather not|i'?d rather|(?:stay"
            r"|sticking|stick|staying|keep|keeping|stays?|leav\w+) (?:at |on |as |home|put|the|it"
            r"|in)"
            r"|anymore|any more|any longer|after all|neither|none of|nothing of|no \w+ (?:at all|for me"
            r"|needed|anymore)|out$|is out|are out|without it|do(?:ing)? without"
        ),
        r"不(?:想|用|要|打算|准备|再|办|去|做|学|买|写|换|参加|考虑|养|装|上|干|搞|开|租|染|去了|弄|玩|考|投|约|吃|喝|订|发|来|走|报|卖|请|搬|申请|定"
        r"|修|重构|行|去|提)[^,，。]{0,8}?了|不要|不想|不买|不喜欢|都不|没人|没(?:过|批|法|办法)|没法"
        r"|还是(?:不|算|自己|直接|在家|别|继续)|我(?:自己|直接|还是|就)|直接|自己(?:来|做|写|弄|画)|不(?:合适|适合|靠谱|值|行|可行|现实|划算)|懒得|禁"
        r"|拒|不(?:让|许|准|肯|同意|批|给)|免",
    ),
    "dislike": _any(
        _words(
            r"hate|bor(?:es|ing|ed)|awful|terrible|horrible|ugly|cheesy|tacky|cring\w+|corny|lame|dull"
            r"|bland|stiff|generic|clich\w+|embarrass\w*|ridiculous|too \w+|"
            r"sounds? like|reads? like|looks? like|feels? like|sick of|tired of|allergic|scared|afraid"
            r"|veto\w*|refus\w+|forb\w+|ban(?:ned|s)?|outlaw\w*|worst|"
            r"sick|expensive|can'?t stand|not my|disaster|rejected"
            r"|declined|turned (?:me|us|it|that|them) down|voted|said no|would never|wouldn'?t|no"
            r" good"
        ),
        r"太(?!好|棒|感谢|谢谢|赞|厉害|牛|强|贴心|及时|全)\S|难看|难听|难吃|土|俗|老套|烦|恶心|肉麻|尴尬|油腻|浮夸|摇头|受不了"
        "|不感冒|没兴趣|不合|不像|过敏|怕|坑|吐槽|骂|反对|打死|看不[进下]|瞧不|嫌|难闻|头疼|劝退|踩雷|笑话|贵",
    ),
    # A condition or a choice changes.
    "change": _any(
        _words(
            r"instead|chang(?:e|ed|es|ing)|switch(?:ed|ing)?|swap(?:ped)?|replac\w+|make (?:it"
            r"|that|him|her|them|this|the)|turn (?:it|the|that) \w+|move(?:d)?|push(?:ed)?|bump(?:ed)?"
            r"|stretch(?:ed|ing)?"
            r"|extend(?:ed)?|cut(?:ting)?|shorten|shr[aiu]nk|postponed?|delayed|rescheduled?|brought"
            r" forward|upgraded?|raise[d]?|lower(?:ed)?|increase[d]?|reduce[d]?|down to|up to|bring it"
            r"|on second thought|second thoughts|go with|let'?s (?:have|do|go|make|use|say|try|push|keep"
            r"|take)|(?:'d|would|had) rather|rather (?:for|in|on|a|the|make|use|go)|redo|re-?do|re-?run"
            r"|recalculate|use \w+|i'?ll (?:go|take|have)|add(?:ed|ing)?"
            r"|include"
            r"|also|too|as well|along|assume|based on|prefer|now (?:it|they|we|he|she|i)|it'?s now|is now"
            r"|are now|no longer|just (?:us|two|three|me|one|the)|only"
        ),
        "改(?!革|编|装车)|换|调(?:整|成|到|为|高|低)|挪|移到|推迟|推到|提前|顺延|延后|延[到期长]|拖到|加到|减到|降到|降成|升到|升级|升成|涨到"
        "|缩[短到小减]?|压缩|增加|减少|变[成了更]|转[成到了]|统一|重新|重[做排算写来]|改主意|还是|那就|就(?:用|要|按|选|订|去|来|写|做|走)"
        r"|按\S{1,8}(?:算|来|办|走)|照\S{1,6}算|一起|也(?:一块|要|来|去|算)|加(?:上|一|两|个|起来)|少(?:一|两)|多(?:一|两)|别用"
        "|全[换种部]|目标|一块|封顶|只(?:剩|给|有|能|要)",
    ),
    "news": _any(
        _words(
            r"just (?:now|got|told|called|found|heard|announced|emailed|shrank|stretched|moved|changed"
            r"|quit|bought|sold|adopted|forbidden|\w+ed)|has just|have just|today|tonight|yesterday"
            r"|overnight|"
            r"this (?:morning|afternoon|week|evening)|last night|(?:an|one|two) hours? ago|minutes ago"
            r"|starting|from (?:now|today|here|monday|next) ?(?:on)?|now|these days|tomorrow|as of|the"
            r" other day|turns out|it turned out"
        ),
        "刚(?:刚|才)?|今天|今早|今晚|昨天|昨晚|前天|上午|下午|明天|下周|这周|现在|已经|突然|临时|往后|以后|目前|这几天|今年|马上|结果|忽然|后来",
    ),
    "authority": _any(
        _words(
            r"(?:my|our|the|his|her|a) (?:\w+ )?(?:boss|manager|client|wife|husband|partner|doctor"
            r"|dermatologist|therapist|landlord|landlady|teacher|coach|team|lawyer|accountant|inspector"
            r"|surgeon|"
            r"editor|mom|mum|mother|dad|father|parents|sister|brother|kid|kids|son|daughter|cousin|uncle"
            r"|aunt|neighbor|neighbour|roommate|professor|prof|school|company|office|bank|airline|hotel"
            r"|venue|"
            r"customer|customers|council|city|committee|board|group|sponsor|organi[sz]ers?|director|vet"
            r"|dentist|clinic|hospital|insurance|conference|flight|bride|groom|friend|guests?|users?"
            r"|visitors?)"
            r"|boss|manager|hr|pm|infra|legal|landlord|prof|client|sponsor|they(?:'ve|'re)?|mum|mom|dad"
            r"|he|she|everyone|nobody|half"
        ),
        "老板|领导|甲方|客户|老婆|媳妇|老公|爸|妈|爷爷|奶奶|公婆|老师|导师|校长|学校|公司|单位|医生|大夫|医院|房东|物业|银行|法务|产品|财务|同事|朋友|室友|孩子"
        "|儿子|女儿|评审|部门|组委会|主办|官方|后端|设计|编辑|驾校|政府|城管|航空|酒店|团长|教练|供应商|商家|他|她|它|人家|大家|他们|对象|弟弟|妹妹|哥|姐|HR",
    ),
    # Something that was counted on is gone.
    "gone": _any(
        _words(
            r"broke(?:n)?|closed|shut|flooded|sold out|out of (?:stock|order)|r[au]n out|lost|stolen"
            r"|cracked|leak(?:s|ing)|unavailable|discontinued|taken"
            r"|ill|sick|injured|hurt|sprained|torn|died|quit|resigned|moved|left|strike|bailed|down with"
            r"|expired|denied|refused|won'?t start|fell through|burnt|missed"
        ),
        "坏了|没了|丢了|停[了运产用业]|关门|关了|关闭|被[占偷封砍取退撞追]|断货|缺货|卖[完光]|售罄|下架|倒闭|检修|维修|生病|病了|受伤|摔|骨折|离职|辞职|走了|搬"
        "|涨价|没票|过期|拒签|停电|停水|堵|塌|漏|裂|着火|爆|暴雨|台风|来不了|去不了|用不了|来不及",
    ),
    # Against a signal.
    "praise": _any(
        _words(
            r"interesting|fascinating|(?:never|didn'?t) (?:know|knew)(?: that)?|"
            r"thanks?|thank you|thx|ty|great|perfect(?:ly)?|awesome|amazing|lovely|love (?:it|that|this"
            r"|your|how)|cool|nice(?:ly)?|wonderful|excellent|brilliant|haha+|wow|got it|gotcha|makes"
            r" sense|good to know"
            r"|exactly|i agree|agreed$|i see|understood|sounds good|looks (?:good|right|great)|(?:it"
            r"|that) works|works (?:great|well|fine|perfectly|now)|it worked|worked (?:like|great|well"
            r"|perfectly)"
            r"|right you are|fair enough|(?<!pretty )(?<!not )sure|yes|yep|yeah|yup|ok|okay|alright"
            r"|spot on"
            r"|good one|helpful|on board|as is|good as|well done|appreciate"
        ),
        r"^\W*(?:[好嗯哦噢行对]|可以|明白|知道了?|没了|先这样|6{3,}|lol|lmao|rofl|hehe|h+m+|huh"
        r"|that(?:'?s| will be) (?:all|it)(?: for (?:now|today|tonight))?)\W*$"
        "|有意思|有趣|还不知道|不知道这|神奇|"
        "谢|感谢|多谢|哈哈|嘿嘿|挺好|真好|很好|太好|太棒|太感谢|厉害|对的|是的|好的|好[嘞呀啊]|明白|懂了|收到|学到|完美|妥了|搞定|解决了|辛苦|夸|服了|赞|牛|靠谱"
        "|可以的?$|同意|就这么定|就按这个|好使|(?<!不)喜欢|有道理|原来如此|了解了|涨知识|行[,，]|嗯|清楚",
    ),
    "hypothetical": _any(
        _words(
            r"if|suppose|supposing|what if|imagine|hypothetical(?:ly)?|would (?:it|that|they|there|you|we"
            r"|i)|what would|how would|say we|let'?s say|in theory"
        ),
        "如果|假如|假设|要是|万一|假使|倘若|的话|若是|比方说",
    ),
    "comparing": _any(
        _words(
            r"just (?:comparing|curious|asking|wondering|checking|so i know)|out of curiosity|for"
            r" (?:future )?reference|curious|wondering|stands|sticking with|stick with|(?:is|are|stays?"
            r"|stays? at|remains?) (?:fixed|at|the same|as planned)"
            r"|keeping|not changing|theoretical|no changes?|in general|generally|nobody'?s"
        ),
        "随口|了解一下|了解下|就问问|问问|好奇|比较一下|做个?对比|对比一下|照旧|不改|不变|还是按|单纯|顺便问|只是问|我已经|参考",
    ),
    "topic": _any(
        _words(
            r"another (?:thing|question|topic)|separate (?:topic|question)|different (?:topic|question)"
            r"|by the way|btw|unrelated|one more (?:thing|question)|also,|quick question|changing the"
            r" subject|while (?:i'm|we're) at it|next question|on another note"
        ),
        "换个话题|另外|顺便|对了|还有(?:个|一个)?(?:问题|事)|再问|在问|问个别的|题外话|下一个|另一个问题|说回",
    ),
    # Says nothing about what was said but that it was not grasped.
    "puzzled": _any(
        _words(
            r"(?:don'?t|do not|didn'?t|can'?t|not sure i) (?:really |quite )?(?:get|understand|follow"
            r"|see)|not following|lost me|i'?m lost|over my head"
            r"|confused|confusing|unclear|what do you mean|no clue|come again|pardon"
        ),
        r"[没不](?:太|大|怎么|很)?(?:懂|明白|理解|看懂|听懂|清楚|会)$|没(?:看|听|弄|搞|太|能)懂|看不懂|听不懂|有点绕|转过弯|云里雾里|一头雾水"
        r"|[没不]太?(?:明白|理解|懂)",
    ),
    # Takes up what was proposed, or goes on by what was agreed.
    "accepts": _any(
        _words(
            r"(?:then |so )?(?:i'?ll|let'?s|we'?ll) (?:(?:go|do) (?:with|for) (?:it|that|the)|do (?:it"
            r"|that)(?: (?:then|that way))?$)"
            r"|go ahead|do it that way|that one|sounds like a plan|carry (?:it |that |this )?out"
            r"|proceed|let'?s start|as you (?:say|said|suggest\w*)|as planned|as it (?:is|stands)"
            r"|(?:take|use|pick|choose|go (?:with|for)|i(?:'d| would)? (?:like|want|prefer)) the (?:first"
            r"|second|third|fourth|last|former|latter)"
            r"|carry on(?: with)?|(?:move|push|press) (?:ahead|forward|on)|put (?:it|this|that|the \w+)"
            r" (?:in place|into (?:action|practice|effect))|get (?:it|that|this|the \w+) (?:under way"
            r"|going|started|done)|(?:execute|implement|roll out|set up|start|finish|begin|launch)"
            r" (?:on |with )?(?:it|that|this|the)|roll (?:it|that|this) out|do (?:it|that) (?:like"
            r" )?(?:that|so|this) way"
        ),
        r"(?:按|照)(?:这|那|你|您|此|上面|计划|方案|原计划|行程|菜单)\S{0,6}?(?:来|办|做|走|写|实施|执行|进行|推进|说的|吧)"
        r"|(?:按|照)着?[这它]?[^,，。]{0,6}(?:实施|执行|办|来|走|做|推进)吧?\W*$|就这么|就这样|就它|就选|就定|听你的"
        r"|(?:那就|那|现在|接着|接下来)(?:就|可以)?(?:开始|着手)|那就?\S{1,4}(?:这[个套趟份条]|它)\S{0,6}吧?\W*$"
        r"|(?:用|要|选|挑|拿|喜欢)(?:了|的是)?(?:第[一二两三四五六七八九十]|最后[一那这]|前[一面者]|后[一面者])"
        r"|没意见|开始吧|这个好|那我就?选|(?:落实|推进|实施|执行|部署|动工|开工|启动)(?:下去|起来|这个?\S{1,4})?吧?\W*$",
    ),
    # Something a machine printed.
    "printed": _any(
        r"(?-i:\b\w*(?:Error|Exception|ERR)\b|Traceback|\bE[A-Z]{4,}\b)|\bwarning\b", "报错|警告|异常|堆栈"
    ),
    # Goes on from what was said: more of it, the next piece, a shade more of something.
    "continues": _any(
        _words(
            r"another|one more|two more|three more|some more|any more|more like|more of|next|continue|go"
            r" on|keep going|the rest|the same|again|a (?:bit|little|touch) \w+er|(?:less|more) \w+$"
            r"|shorter|longer|simpler|warmer|louder|brighter|funnier|tighter|a second|the second|the"
            r" third|the first|the last|both|for example|example|in (?:more )?detail"
        ),
        r"再(?:来|给|写|讲|举|多|说|推荐|想|出|发|列|\S{1,4}[点些])|继续|接着|还有|下一|多来|同样|也(?:给|来|写|帮|做)|一样|举个|例子|详细|展开"
        "|具体|(?:长|短|简单|细|正式|温柔|活泼)一?点",
    ),
    # Tells of something lived through or held in general; asks for nothing and changes nothing.
    "recalls": _any(
        _words(
            r"remember|always|every (?:time|morning|day|year|night|week)|once|used to|saw|seen|climbed"
            r"|watched|read|listened|tried|visited|went|grew up|as a (?:kid|child)|last (?:year|summer"
            r"|winter)"
            r"|still|since school|mostly|usually|feels?|felt|adore[sd]?|loved?|likes?|enjoy(?:s|ed)?"
            r"|smells?|tastes?|makes? me|talks? about|wish|maybe|perhaps"
        ),
        "过(?!敏|期|来|去|了|程|分|度)|每次|平时|那会儿|记得|从小|总是|总觉得|以前|上学|小时候|去年|还在用|经常|常常|真[的好美香]|舒服|感觉|觉得|好多|确实"
        "|果然|难怪|怪不得|(?<!不)喜欢|爱听|爱看|哭|哈",
    ),
    "aside": _any(r"\b(?:huge|lovely|beautiful|funny|such a|what a)\b", "好美|真大|好香|有意思"),
    "polite": _any(
        _words(
            r"sorry to|pardon|excuse me|if it'?s not too much|don'?t mean to|hate to|forgive|please|could"
            r" you|can you|would you|kindly|dumb question|silly question"
        ),
        "劳驾|打扰|麻烦|请问|别嫌|冒昧|请教|手慢|能不能|可以帮|帮我|请",
    ),
    "meta": _any(
        _words(
            r"what does|mean|means|meaning|word|words|phrase|idiom|translate|translation|spelled"
            r"|pronounced?|grammar|called|synonym|stand for|define|definition|formal(?:ly)?|french"
            r"|spanish|german|latin|japanese|how (?:do|would) (?:you|i|one|people) (?:say|write|put)"
        ),
        "意思|怎么说|怎么讲|翻译|翻成|译|英文|英语|日语|粤语|词|用法|语气|语法|读音|怎么读|是啥意思|一回事|出自|台词|这句|那句|为什么|定义",
    ),
    "first_person": _any(
        _words(r"i|i'm|i've|i'd|i'll|we|we're|we've|we'll|my|our|mine|me|us"), "我|咱|俺|本人"
    ),
    "copula": _any(
        r"\b(?:it|that|this|he|she|they|there|[a-z]+)(?:'s|'re| is| are| was| were)\b", "是|叫|属于|在"
    ),
    "future_request": _any(
        _words(
            r"(?:please |now |then |can you |could you )*(?:write|give|show|tell|explain|list"
            r"|summari[sz]e|draft|suggest|find|add|help|describe|compare|recommend|translate|save|send"
            r"|continue|go on|expand|convert|format|calculate|plan|create|generate|put|pick|name|rewrite"
            r"|check|fix|test|sort|book|set)(?: \w+)?"
        ),
        "帮我|给我|写|列|讲讲|说说|介绍|推荐|解释|总结|翻译|告诉|展开|继续|接着|举个|来一?个|再来|发我|算一?下|生成|做个|查一?下",
    ),
}
