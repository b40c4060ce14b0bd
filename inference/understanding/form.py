"""How an answer should come: in which language, how long, as what, for whom, in how few words."""

import re

from . import numerals
from .script import COMMON_HAN

_LANGUAGES = {
    "en": ("english", "英文|英语|英"),
    "zh": ("chinese|mandarin", "中文|汉语|普通话|简体|繁体"),
    "ja": ("japanese", "日文|日语"),
    "ko": ("korean", "韩文|韩语"),
    "fr": ("french", "法文|法语"),
    "de": ("german", "德文|德语"),
    "es": ("spanish", "西班牙文|西班牙语|西语"),
    "it": ("italian", "意大利语|意大利文"),
    "ru": ("russian", "俄文|俄语"),
    "pt": ("portuguese", "葡萄牙语|葡语"),
    "nl": ("dutch", "荷兰语"),
    "pl": ("polish", "波兰语"),
    "tr": ("turkish", "土耳其语"),
    "sv": ("swedish", "瑞典语"),
    "el": ("greek", "希腊语"),
    "ar": ("arabic", "阿拉伯语|阿语"),
    "hi": ("hindi", "印地语"),
    "th": ("thai", "泰文|泰语"),
    "vi": ("vietnamese", "越南语"),
    "la": ("latin", "拉丁语"),
    "yue": ("cantonese", "粤语|广东话"),
}
_SHAPES = {
    "table": ("table|spreadsheet|chart", "表格|对照表|换算表|一张表|表"),
    "list": (
        "bullet(?: point)?s?|(?:numbered |bulleted |check)?list|bullet-points|points",
        "列表|清单|要点|条目",
    ),
    "json": ("json", "json"),
    "yaml": ("yaml", "yaml"),
    "csv": ("csv", "csv"),
    "markdown": ("markdown", "markdown"),
    "xml": ("xml", "xml"),
    "script": ("(?:bash |shell |python |powershell )?script|snippet|function|one-liner", "脚本|代码"),
    "verse": ("poem|sonnet|haiku|limerick|rap|song|rhyme|verses?", "诗|打油诗|顺口溜|口诀|歌词|歌"),
    "letter": (
        "letter|e-?mail|message|text message|complaint|notice|memo",
        "邮件|信|通知|申请书?|短信|话术|公告|投诉信|工单|声明",
    ),
    "essay": (
        "essay|article|blog post|report|story|speech",
        "文章|作文|小论文|报告|故事|演讲稿|文案|软文|小红书",
    ),
    "picture": (
        "diagram|flow ?chart|mind map|drawing|comic|cartoon|infographic",
        "流程图|思维导图|图|漫画|示意图|韦恩图",
    ),
    "quiz": ("quiz|questions|flash ?cards?|exercises", "题|练习题|选择题|判断题|试题"),
    "template": ("template|sample|draft|agreement|contract", "模板|范本|范文|样本|合同|协议|示例|范例"),
    "summary": ("summary|tl;?dr|cheat ?sheet|abstract", "总结|摘要|概括"),
    "dialogue": ("dialogue|conversation|script for", "对话|剧本"),
    "analogy": ("analogy|metaphor|joke|fairy tale", "比喻|类比|段子|笑话"),
}
_NUMBER = r"(?:\d[\d,]*|an?|one|two|three|four|five|six|seven|eight|nine|ten|a few|half|few)"
_DIGITS_ZH = "[\\d一二两三四五六七八九十百千几]"
_NUMBER_ZH = f"(?<!{_DIGITS_ZH}){_DIGITS_ZH}++"
_NAMES = "|".join(english for english, _ in _LANGUAGES.values())
_NAMES_ZH = "|".join(chinese for _, chinese in _LANGUAGES.values())
_SHAPE = "|".join(english for english, _ in _SHAPES.values())
_SHAPE_ZH = "|".join(
    sorted({word for _, chinese in _SHAPES.values() for word in chinese.split("|")}, key=len, reverse=True)
)
# "In a contract" is where something stands, "in a table" how it should come.
_LAYOUT = "|".join(_SHAPES[name][0] for name in ("table", "list", "json", "yaml", "csv", "markdown", "verse"))
_ASKS = r"(?:write|draft|compose|make|give|create|generate|prepare|recommend|show|produce|output|design|list)"
# Polish may be for shoes, and Latin an alphabet.
_NAMED = re.compile(rf"\b(?!(?:polish|latin)\b)(?:{_NAMES})\b", re.IGNORECASE)
_PARTS = re.compile(
    rf"""(?xi)
    \b(?:in|into|to)\ (?:simple\ |plain\ |easy\ |basic\ )?(?P<language>{_NAMES})\b(?!\ [a-z]+(?:land|\ law))
  | \b(?:as|into|in\ the\ form\ of|formatted\ as)\ (?:an?\ |one\ )?(?!the\ )(?:[\w-]+\ ){{0,2}}?
      (?P<shape>{_SHAPE})\b
  | \bin\ (?:an?\ )?(?P<layout>{_LAYOUT})\b
  | \b{_ASKS}\ (?:me\ |us\ |up\ )?(?:an?|{_NUMBER}|some)\ (?:[\w-]+\ ){{0,3}}?(?P<made>{_SHAPE})\b
  | \b(?:in|under|at\ most|no\ more\ than|max(?:imum)?|within|using)\ (?:no\ more\ than\ 
        |at\ most\ |under\ |about\ |exactly\ |just\ |only\ )?
      (?P<count>{_NUMBER})\ (?:short\ |simple\ |brief\ |plain\ )?(?P<what>word|sentence|line
            |paragraph|bullet|point|page|character)s?\b
  | \b(?P<size>\d[\d,]*|(?:one|two|three|four|five|six|ten)(?=-))(?:-(?P<sized>word|sentence|line
        |paragraph|page|character)|\ (?P<words>words)\b)
  | (?:^|[.!?]\ |\b(?:with|me|return|output|say|print)\ )(?P<only>(?:just|only)\ (?:the|an?
        |one)\ \w+|one\ (?:word|sentence|line)|[\w ]{{2,24}}\ only)(?=[.!,]|$)
  | \b(?P<brief>briefly|in\ short|in\ brief|short\ answer|keep\ it\ short|quick\ answer|tl;?dr)\b
  | \b(?P<detail>in\ (?:great\ |more\ )?detail|detailed|step[- ]by[- ]step|in[- ]depth
        |thoroughly|comprehensive)\b
  | \b(?:(?P<said>(?:explain|tell|describe|teach|write|say)\b[^.?!]{{0,60}}?)\b(?:for|to)
        |like(?:\ i'?\ ?a?m)?|as\ if\ i\ (?:were|was))\ (?:an?\ |my\ )?(?P<audience>(?:complete\ 
        |total\ )?(?:child(?:ren)?|kids?|beginners?|dumm(?:y|ies)|lay(?:man|person|people)
      |experts?|(?:five|\d+)[- ]year[- ]olds?|(?<=i'm\ )five|grand(?:ma|pa|mother|father)
            |toddlers?|students?|teenagers?|managers?|pirate))\b
    """
)
_PARTS_ZH = re.compile(
    rf"""(?xi)
    (?P<cue>(?:用|以|拿|使用|翻译?成|译成|写成|附上?|翻成|改成|译为|附)\ ?(?:纯|简单
          |地道)?)?(?P<language>{_NAMES_ZH})(?!名|国|镑|寸|尺|里|式|[级语一二四六]|寸)
  | (?P<count>{_NUMBER_ZH})\ ?个?(?P<what>字|词|句(?:话)?)(?!典|段|型|母|符|节|库|语)(?:以内
        |之内|以上|左右|上下|内)?
  | (?P<only>(?:^|(?<=[,.;。，；!！?？\ ]))只(?:给|说|回答|输出|需给
        |要给?)[\u4e00-\u9fff]{{1,6}}(?=[。.!！]?$)|一句话|一个词)
  | (?P<brief>简短|简要|简单(?:说|讲|介绍|概括|回答)|长话短说|精简)
  | (?P<detail>详细|详尽|具体步骤|深入)
  | (?:给|对|跟|让|像|面向|讲给|教)\ ?(?:我|一个)?(?P<audience>小朋友|小孩子?|孩子|儿童|小学生
        |初学者|新手|小白|外行人?|老人|老年人|零基础|奶奶|爷爷|专家|五岁|5岁)(?:听|看|能|都|讲|解释
        |懂|的方式|也)
    """
)
# The shape is named somewhere behind the verb; what stands between is content and stays.
_SHAPE_BEHIND_ZH = re.compile(
    rf"""(?xi)
    (?:(?P<cue>(?:做|写|画|列|整理|改|变|输出|转|编|译|概括|总结)(?:成|为))|用|以|按|画|列|做|写|拟|编
          |起草|来|给我|生成)(?!法)
    [\u4e00-\u9fffA-Za-z0-9“”" ]{{0,14}}?(?P<shape>{_SHAPE_ZH})
    (?:(?P<manner>形式|格式|的?方式)|(?=列|写|画|表示|展示|呈现|回答|输出|[,.，。!?！？;；]|$|给))
    """
)


def _named(table: dict[str, tuple[str, str]], text: str, side: int) -> str:
    return next((name for name, spelled in table.items() if re.fullmatch(spelled[side], text, re.I)), text)


def take_form(folded: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """The wishes about the answer's form in a folded text, as (aspect, value), and the text with blanks in
    their places. Aspects: language, shape, made (the same, said in passing), length,
    audience, and about: a language named without saying
    that the answer should be in it."""
    side = 1 if COMMON_HAN.search(folded) else 0
    found: dict[str, str] = {}

    def blank(match: re.Match[str]) -> str:
        part = {name: value.lower() for name, value in match.groupdict().items() if value}
        if "language" in part:
            mentioned = _named(_LANGUAGES, part["language"], side)
            found["language" if side == 0 or "cue" in part else "about"] = mentioned
        elif "shape" in part or "layout" in part:
            found["shape"] = _named(_SHAPES, part.get("shape") or part["layout"], side)
        elif "made" in part:
            found["made"] = _named(_SHAPES, part["made"], side)
            # What is to be made is what the question is about.
            return match.group()
        elif "count" in part or "size" in part:
            found["length"] = _length(part)
        elif "only" in part:
            found["length"] = part["only"]
        elif "brief" in part or "detail" in part:
            found["length"] = "brief" if "brief" in part else "detailed"
        else:
            found["audience"] = part.get("audience", "")
            # What is to be explained to them is what the question is about.
            return f"{match.groupdict().get('said') or ''} , "
        return " , "

    if side == 0 and (named := _NAMED.search(folded)):
        found["about"] = _named(_LANGUAGES, named.group(), 0)
    left = (_PARTS_ZH if side else _PARTS).sub(blank, folded)
    if side and (shape := _SHAPE_BEHIND_ZH.search(folded)):
        found["shape" if shape["cue"] or shape["manner"] else "made"] = _named(_SHAPES, shape["shape"], side)
    return tuple(sorted(found.items())), left


def _length(part: dict[str, str]) -> str:
    number = part.get("count") or part.get("size") or ""
    value = numerals.chinese(number) or numerals.WORDS.get(number) or number
    unit = part.get("what") or part.get("sized") or "word"
    return f"{value} {_LENGTH_UNITS.get(unit, unit)}"


_LENGTH_UNITS = {"字": "word", "词": "word", "句": "sentence", "句话": "sentence"}
