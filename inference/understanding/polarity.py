"""What a text denies: negators with what they stand before. Double negation cancels out, and words that only
look like negation (不错, 没关系, not only, 能不能) don't count."""

import re
from collections.abc import Sequence

from .tokens import Word

_ANY = re.compile(r"\bno|n't|if not", re.IGNORECASE)
# Turned into something without a negator before the words are read.
_ASIDE = re.compile(
    r"""(?xi)
    \bno\.(?=\ ?\d|$|\W*$)
  | \b(?:not\ (?:only|just|merely)|why\ not|no\ matter|no\ problem|no\ idea|no\ doubt
        |no\ worries|or\ not|if\ not|whether\ or\ not|do\ ?n[o']t\ (?:know|understand|get\ (?:it|why
        |how))|not\ sure|don't\ mind)\b
  | ,\ ?(?:is|are|was|were|do|does|did|can|could|would|should|wo|ca|has|have)n't\ (?:it|they
        |he|she|you|we|i|that|there)\b(?=\W*$)
  | \b(?:ca|could|do|does|wo|would|should)n't\ (?:help|but)\b
  | ^(?:is|are|do|does|did|ca|wo|would|should|could|has|have|had|was|were)n't\b
  | 难道[不没]|不[仅但只光单止]仅?|没关系|没事|没问题|不好意思|对不起|不客气|不用谢|差不多
        |了不起|不得了|要不然?|不然|不管|不论|无论|不知道?|不清楚|不明白|不懂|没搞懂|不确定|没想到
        |记不[得清住起]|想不起来?|不妨|不愧
  | 不得不|不能不|不可不|不会不|没有不|无不|并非不|不是不|非[^,，。]{1,8}不可|非得
  | 从来没|来不及
    """
)
# Said by what it is not.
_LIMITS = (
    (re.compile("不错"), " 好 "),
    (re.compile("不超过|不多于|不到|未满|不满|不足|不高于|不大于"), " 低于 "),
    (re.compile("不少于|不低于|不小于"), " 至少 "),
    (re.compile(r"\b(?:no|not) more than\b", re.IGNORECASE), " at_most "),
    (re.compile(r"\b(?:no|not) (?:less|fewer) than\b", re.IGNORECASE), " at_least "),
    (re.compile(r"\bfree of\b|\bfree from\b", re.IGNORECASE), " without "),
)
_CHOICE = re.compile(r"([\u4e00-\u9fff])[不没]\1")
_CHOICES = {"有没有": "有", "是否": "是", "能否": "能", "可否": "可以", "可不可以": "可以", "能不能够": "能"}
_CHOICE_WORDS = re.compile("|".join(_CHOICES))
# 退不退款 asks whether; 能退不, 行不, 了没 ask at the end of a sentence.
_TAIL = re.compile(r"(?<=[\u4e00-\u9fff])(?:不|没|没有|了没)(?=[?!。,\s]|$)")

_ENGLISH = frozenset(
    "not no never without neither nor none nothing nobody nowhere cannot except excluding prevent"
    " avoid unable hardly".split()
)
_STOPS = frozenset("stop keep 停止 终止 停用".split())
_CHINESE = frozenset(
    "不 没 没有 无 未 非 别 勿 莫 休 不要 不能 不会 不用 不可 不可以 不让 不想 不必 不该 不应 不应该 不准"
    " 不许 不得 无法 没法 无需 无须"
    " 不需要 不需 不必要 未经 尚未 从未 并非 防止 避免 禁止 拒绝 不给 不再 不是 不算 不到 不了 不带"
    " 不含 不支持 没收到 没带 没用 免 除了 除".split()
)
_POTENTIAL = re.compile(r"[\u4e00-\u9fff]{1,2}不[\u4e00-\u9fff]{1,2}")
_LEXICAL = frozenset(
    "不错 不同 不一样 不锈钢 不动产 不过 不断 不久 不少 不足 不如 不幸 不安 不良 不满 无线 无人机"
    " 无线网 无锡".split()
)


def set_aside(folded: str) -> str:
    """The text without those phrases in which a negator denies nothing."""
    for limit, said in _LIMITS:
        folded = limit.sub(said, folded)
    if folded.isascii() and not _ANY.search(folded):
        return folded
    # The blanks keep the segmenter from joining what is left to its neighbours.
    folded = _CHOICE_WORDS.sub(lambda match: f" {_CHOICES[match.group()]} ", folded)
    return _TAIL.sub("", _CHOICE.sub(r" \1 ", _ASIDE.sub(" ", folded)))


def negates(words: Sequence[Word], at: int) -> bool:
    """Is the word at this place a negator?"""
    word = words[at]
    if word.kind == "latin":
        if word.text in _STOPS:
            after = words[at + 1 : at + 9]
            return any(later.text == "from" for later in after) or (
                bool(after) and after[0].text.endswith("ing")
            )
        return word.text in _ENGLISH or word.text.endswith("n't")
    if word.text in _STOPS:
        return at + 1 < len(words) and words[at + 1].tag[:1] == "v"
    return word.kind == "han" and (
        word.text in _CHINESE
        or (
            word.text[0] in "不没未无"
            and word.tag[:1] in "vda"
            and word.text not in _LEXICAL
            and len(word.text) == 2
        )
        or (_POTENTIAL.fullmatch(word.text) is not None and word.text not in _LEXICAL)
    )


def fails(word: Word) -> bool:
    """Does the word say that something does not succeed: 打不开, 收不到?"""
    return word.kind == "han" and _POTENTIAL.fullmatch(word.text) is not None


# 未见出血 and 没有出血 deny the same.
_EMPTY = frozenset("到 了 可 得 再 必 需 见 够 出现 发生 产生 有 被 太 是".split())


def remainder(word: Word) -> str:
    """What a negating word says besides: 不支持 → 支持, 打不开 → 打开; "" where it only negates."""
    text = word.text
    if word.kind != "han" or text in {
        "没有",
        "不要",
        "不能",
        "不会",
        "不用",
        "无法",
        "没法",
        "不可以",
        "不是",
    }:
        return ""
    if _POTENTIAL.fullmatch(text):
        return text.replace("不", "", 1)
    return (
        text[1:]
        if len(text) > 1
        and text[0] in "不没未无"
        and text[1:] not in ("到", "了", "可", "得", "再", "必", "需")
        else ""
    )
