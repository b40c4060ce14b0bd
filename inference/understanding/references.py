"""What in a message points outside it: pronouns, demonstratives, ordinals, comparisons, and what is "
"missing."""

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from .mentions import Mention, mentions, pieces
from .script import is_chinese
from .words import (
    AUXILIARIES,
    CONJUNCTIONS,
    DEMONSTRATIVES,
    PERSONS,
    PLURALS,
    PREPOSITIONS,
    QUESTION_WORDS,
    SELVES,
    THINGS,
    Token,
    is_content,
    is_verb,
    is_word,
    stem,
    tokens,
)

Kind = Literal[
    "person",  # he, her, 他
    "plural",  # they, those, 它们
    "thing",  # it, 它
    "this",  # this, that, 这, 那个: alone
    "noun",  # that vitamin, 这软件
    "definite",  # the album
    "ordinal",  # the second one, 第三个
    "former",  # the former, 前者
    "latter",  # the latter, 后者
    "place",  # there, 那边
    "which",  # which one, 哪个: of options that the message does not name
    "more",  # what else, any other, 还有吗
    "and",  # what about X, 那X呢, a fragment: the earlier question with a part exchanged
    "short",  # why? how long? a question that lacks what it is about
    "back",  # you said, 刚才说的: names an earlier turn
]


class Reference(NamedTuple):
    """`text[start:end]` is what points. `head`: the noun it names, if any. `place`: the number of an ordinal,
    from 0, -1 for the last. `inside`: what it points to may stand before it in the same message.
    `possessive`: the referent takes 's."""

    kind: Kind
    start: int
    end: int
    head: str = ""
    place: int = 0
    inside: bool = False
    possessive: bool = False


@lru_cache(maxsize=1024)
def references(text: str) -> tuple[Reference, ...]:
    """Everything in the message that may lean on what was said before, in order."""
    text = text[:2000]
    found = _chinese(text) if is_chinese(text) else _english(text)
    return tuple(sorted(found, key=lambda reference: (reference.start, -reference.end)))


# --- English ----------------------------------------------------------------------------------------

_ORDINALS = {
    "first": 0, "1st": 0, "second": 1, "2nd": 1, "third": 2, "3rd": 2, "fourth": 3, "fifth": 4,
    "last": -1, "final": -1,
}  # fmt: skip
_FORMER = frozenset("former".split())
_LATTER = frozenset("latter".split())
_CONDITIONS = frozenset(
    "cheaper cheapest bigger biggest smaller smallest faster quicker easier simpler other same".split()
)
_TIMES = frozenset(
    "year month week day morning afternoon evening night weekend time summer winter spring autumn "
    "century moment".split()
)
# Before a clause these make a conjunction of "that".
_SAYING = frozenset(
    "say says said think thinks thought know knows believe means mean sure so such likely hope heard "
    "tell told show shows feel ensure afraid true".split()
)
_COMPARES = re.compile(
    r"\b(?:difference|between (?:them|these|those|the two)|compare|differ|stack up|alike|in common|"
    r"similar|each other)\b",
    re.I,
)
_BEING = frozenset("is are was were be been isn't aren't wasn't weren't will would can could might".split())
_WHETHER = re.compile(
    r"^(?:ok|okay|oh|hm+|thanks?|thank you|great|cool|nice|interesting|alright|right|so|and|but|or|yes|"
    r"no|well|then|sorry|wow|ah|got it)\b[,.!:\s]*",
    re.I,
)
_ABOUT = re.compile(r"^(?:(?:and|but|so|or|ok|okay|then|well|oh)[,\s]+)*(?:what|how) (?:about|if)\b\s*", re.I)
_JOINED = re.compile(r"^(?:and|or|but|plus|same|just)\b[,\s]*", re.I)
_BACK = re.compile(
    r"\b(?:you (?:just |also |first )?(?:said|mentioned|recommended|suggested|told|gave|listed|named|"
    r"described)|"
    r"(?:back|returning|going back|coming back) to|(?:mentioned|above|earlier|previous(?:ly)?|"
    r"aforementioned|as before))\b",
    re.I,
)


def _english(text: str) -> list[Reference]:
    words = tokens(text)
    phrases = mentions(text)
    found: list[Reference] = []
    at = 0
    while at < len(words):
        reference, step = _pointing(text, words, at, phrases)
        if reference is not None:
            found.append(reference)
        at += step
    found += [Reference("back", back.start(), back.end()) for back in _BACK.finditer(text)]
    return found + _incomplete(text, words, phrases, found)


def _pointing(
    text: str, words: tuple[Token, ...], at: int, phrases: tuple[Mention, ...]
) -> tuple[Reference | None, int]:
    """The reference that begins at this word, if one does, and how many words it takes."""
    word = words[at]
    lower = word.lower.split("'")[0] if word.lower in AUXILIARIES else word.lower
    end = word.start + len(lower)
    after = words[at + 1].lower if at + 1 < len(words) else ""
    inside = _antecedent(words, at, phrases)
    if lower in PERSONS:
        owns = lower == "his" or (lower == "her" and after[:1].isalpha() and after not in _AFTER_OBJECT)
        return Reference("person", word.start, end, inside=inside, possessive=owns), 1
    if lower in PLURALS and lower != "their" and _COMPARES.search(text):
        return Reference("which", word.end, word.end, inside=inside), 1
    if lower in PLURALS:
        return Reference("plural", word.start, end, inside=inside, possessive=lower == "their"), 1
    if lower in THINGS:
        if _expletive(words, at):
            return None, 1
        return Reference("thing", word.start, end, inside=inside, possessive=lower == "its"), 1
    if lower in DEMONSTRATIVES:
        return _demonstrative(text, words, at, lower, inside)
    if lower == "there":
        before = words[at - 1].lower if at else ""
        exists = after in _BEING or before in _BEING or word.lower != "there"
        return (None if exists else Reference("place", word.start, end, inside=inside)), 1
    if lower == "the":
        return _definite(words, at, inside)
    if lower == "which":
        return _which(text, words, at)
    if lower in ("else", "another", "instead") or (
        lower in ("other", "others", "more") and at and words[at - 1].lower != "the"
    ):
        return _more(words, at, inside)
    return None, 1


_AFTER_OBJECT = PREPOSITIONS | CONJUNCTIONS | AUXILIARIES | QUESTION_WORDS | SELVES | {"a", "an", "the"}


# Words. What stands farther off in one message is not what a pronoun means.
_REACH = 200


def _antecedent(words: tuple[Token, ...], at: int, phrases: tuple[Mention, ...]) -> bool:
    """Does something stand before this word, in the same message, that it could mean?"""
    start = words[at].start
    if not phrases or phrases[0].end > start:
        return False
    if words[at].lower in ("their", "its", "his", "themselves", "itself", "himself", "herself"):
        return True  # "why do babies put everything in their mouths"
    # Inside one clause a pronoun seldom means a phrase of that clause: a clause must end in between. Between
    # the first phrase and the pronoun lies all that lies between any other and it.
    lately = words[max(0, at - _REACH) : at]
    between = [word.lower for word in lately if phrases[0].end <= word.start < start]
    if any(word in (",", ".", "?", "!", ";", ":", "—", "-") or word in CONJUNCTIONS for word in between):
        return True
    asks = any(word in QUESTION_WORDS or word == "that" for word in between)
    return asks and any(is_verb(word) for word in between)


def _expletive(words: tuple[Token, ...], at: int) -> bool:
    """ "is it safe to …", "it takes", "it is raining", "what is it called when": `it` means nothing."""
    after = [word.lower for word in words[at + 1 : at + 8]]
    if not after:
        return False
    if after[0] in ("rain", "rains", "raining", "snow", "snows", "snowing", "'s"):
        return True
    before = words[at - 1].lower if at else ""
    copula = (
        before in ("is", "was", "isn't", "would", "be")
        or after[0] in ("is", "was", "be", "would", "isn't")
        or words[at].lower == "it's"
    )
    clause = any(word in ("to", "that", "when", "if", "for", "how") for word in after[1:6] + after[:1])
    if copula and clause and not any(word in (",", ".") for word in after[:5]):
        return True
    if before in ("does", "do", "did", "will", "would", "can", "should") or words[at].lower == "it":
        takes = after[0] in (
            "take",
            "takes",
            "took",
            "mean",
            "means",
            "called",
            "cost",
            "costs",
            "matter",
            "matters",
            "make",
            "makes",
        )
        return takes and any(word in ("to", "when", "if", "that") for word in after[1:])
    return False


def _demonstrative(
    text: str, words: tuple[Token, ...], at: int, lower: str, inside: bool
) -> tuple[Reference | None, int]:
    word = words[at]
    before = words[at - 1].lower if at else ""
    end = at + 1
    ordinal = _ordinal(words, end)
    if ordinal is not None:
        place, size = ordinal
        last = words[min(end + size, len(words)) - 1]
        return Reference("ordinal", word.start, last.end, place=place, inside=inside), 1 + size
    while (
        end < len(words)
        and is_word(words[end])
        and (
            is_content(words[end].lower)
            or words[end].lower in ("one", "ones", "two", "three", "other", "same", "new", "old")
        )
    ):
        end += 1
    noun = words[end - 1] if end > at + 1 else None
    after = words[at + 1].lower if at + 1 < len(words) else ""
    if lower == "that" and _relative(words, at, before, after, noun):
        return None, 1
    if noun is None:
        plural = lower in ("these", "those")
        return Reference(
            "plural" if plural else "this", word.start, word.start + len(lower), inside=inside
        ), 1
    if noun.lower in _TIMES and lower in ("this", "these"):
        return None, end - at
    head = stem(noun.lower) if noun.lower not in ("one", "ones", "two", "three") else ""
    following = words[end].lower if end < len(words) else ""
    # "that white stuff inside a pomegranate": it says itself what it means.
    forward = following in PREPOSITIONS - {"for", "to", "in", "on", "at", "with"} or following in (
        "you",
        "who",
        "where",
    )
    forward = forward or (
        following in ("in", "on", "with", "from", "for")
        and end + 1 < len(words)
        and words[end + 1].lower in ("a", "an", "the", "your", "my", "every")
    )
    return Reference("noun", word.start, noun.end, head=head, inside=inside or forward), end - at


def _relative(words: tuple[Token, ...], at: int, before: str, after: str, noun: Token | None) -> bool:
    if not before or not after:
        return False
    if before in _SAYING:
        return True
    named = is_content(before) or before in (
        "something",
        "anything",
        "one",
        "those",
        "things",
        "thing",
        "all",
    )
    return named and (
        is_verb(after)
        or after in AUXILIARIES
        or after in SELVES
        or after in PERSONS
        or after in THINGS
        or after in PLURALS
    )


def _ordinal(words: tuple[Token, ...], at: int) -> tuple[int, int] | None:
    """("second one" → place 1, 2 words) at this position, or None."""
    if at >= len(words) or words[at].lower not in _ORDINALS:
        return None
    size = 1
    while (
        at + size < len(words)
        and size < 4
        and (words[at + size].lower in ("one", "ones", "two") or is_content(words[at + size].lower))
    ):
        size += 1
    return _ORDINALS[words[at].lower], size


def _definite(words: tuple[Token, ...], at: int, inside: bool) -> tuple[Reference | None, int]:
    word = words[at]
    after = words[at + 1].lower if at + 1 < len(words) else ""
    if after in _FORMER | _LATTER:
        return Reference(
            "former" if after in _FORMER else "latter", word.start, words[at + 1].end, inside=inside
        ), 2
    ordinal = _ordinal(words, at + 1)
    if ordinal is not None:
        place, size = ordinal
        last = words[at + size]
        following = words[at + size + 1].lower if at + size + 1 < len(words) else ""
        head = "" if last.lower in ("one", "ones", *_ORDINALS) else stem(last.lower)
        closed = following in PREPOSITIONS or following in ("who", "that")
        return Reference(
            "ordinal", word.start, last.end, head=head, place=place, inside=inside or (bool(head) and closed)
        ), 1 + size
    end = at + 1
    conditioned = False
    while (
        end < len(words)
        and is_word(words[end])
        and (
            is_content(words[end].lower)
            or words[end].lower in _CONDITIONS
            or words[end].lower in ("one", "ones", "two", "new", "old", "original")
        )
    ):
        conditioned = conditioned or words[end].lower in _CONDITIONS or words[end].lower in ("one", "ones")
        end += 1
    if end == at + 1:
        return None, 1
    noun = words[end - 1]
    head = "" if noun.lower in ("one", "ones") or noun.lower in _CONDITIONS else stem(noun.lower)
    following = words[end].lower if end < len(words) else ""
    closed = following in (
        "of",
        "in",
        "for",
        "that",
        "who",
        "between",
        "with",
        "on",
        "at",
        "from",
        "when",
        "to",
    )
    capital = noun.text[0].isupper()
    return Reference(
        "definite", word.start, noun.end, head=head, inside=inside or closed or (capital and not conditioned)
    ), end - at


def _which(text: str, words: tuple[Token, ...], at: int) -> tuple[Reference | None, int]:
    word = words[at]
    before = words[at - 1].lower if at else ""
    if (
        at
        and is_word(words[at - 1])
        and before not in CONJUNCTIONS
        and (is_content(before) or before in PREPOSITIONS)
    ):
        return None, 1  # a relative clause
    rest = text[word.end :]
    named = re.search(r"\bor\b|\bof the\b|,.*\bor\b", rest) is not None
    end = at + 1
    while end < len(words) and words[end].lower.split("'")[0] in (
        "one",
        "ones",
        "of",
        "them",
        "these",
        "those",
        "two",
    ):
        end += 1
    alone = end > at + 1 or (end < len(words) and not is_content(words[end].lower))
    if not alone:
        return None, 1
    return Reference("which", word.start, words[end - 1].end, inside=named), end - at


def _more(words: tuple[Token, ...], at: int, inside: bool) -> tuple[Reference | None, int]:
    word = words[at]
    after = words[at + 1].lower if at + 1 < len(words) else ""
    if word.lower == "more" and (
        after == "than"
        or (is_content(after) and not (at and words[at - 1].lower in ("any", "some", "me", "know")))
    ):
        return None, 1
    if any(each.lower == "than" for each in words[at:]):
        return None, 1
    return Reference("more", word.start, word.end, inside=inside), 1


def _incomplete(
    text: str, words: tuple[Token, ...], phrases: tuple[Mention, ...], found: list[Reference]
) -> list[Reference]:
    """What is left out: a fragment, "what about …", a question of two words."""
    about = _ABOUT.match(text)
    if about:
        return [Reference("and", about.start(), about.end())]
    start = 0
    while (greeting := _WHETHER.match(text[start:])) and greeting.end():
        start += greeting.end()
    core = [word for word in words if word.start >= start and is_word(word)]
    if not core:
        return [Reference("short", 0, len(text))]
    content = [phrase for phrase in phrases if phrase.start >= start]
    if any(word.lower in QUESTION_WORDS for word in core[:2]):
        return [Reference("short", start, len(text))] if _bare_question(core, content) else []
    verbal = any(
        word.lower in AUXILIARIES or (is_verb(word.lower) and (place > 0 or len(core) > 2))
        for place, word in enumerate(core)
    )
    joined = text[:start].casefold().lstrip().startswith(("and", "or", "but", "so"))
    if (not verbal and len(core) <= 8) or ((joined or core[0].lower in _ADDING) and len(core) <= 9):
        return [Reference("and", start, start)]
    return []


# With these a fragment adds a condition to the question before it.
_ADDING = frozenset("if when with for in on to from without same per".split())


def _bare_question(core: list[Token], content: list[Mention]) -> bool:
    """ "Why?", "for how long", "who scored it": a question about nothing that it names."""
    if not content:
        return len(core) <= 6
    named = any(phrase.proper or phrase.definite for phrase in content)
    return not named and len(core) <= 5 and not any(word.lower in AUXILIARIES for word in core)


# --- Chinese ----------------------------------------------------------------------------------------

_NUMERALS = {"一": 0, "1": 0, "二": 1, "2": 1, "两": 1, "三": 2, "3": 2, "四": 3, "4": 3, "五": 4, "5": 4}
_MEASURE = "个种款条本家部张台件只双辆首位座道份段步句样类项间套块支瓶次篇章把门集层班站户点"
# Words that begin with 那 or 这 and point at nothing.
_NAMES = (
    "那英|那达慕|那不勒斯|那拉|那曲|那坡|那吒|刹那|支那|那时候|"
    "这年头|这辈子|这阵子|这几天|这段时间|这两天|这几年|这会儿|[那这][天时次]"
)
_POINTERS = re.compile(
    rf"(?P<name>{_NAMES})"
    r"|(?P<former>前者|前一[个种款]|前面那[个种款])"
    r"|(?P<latter>后者|后一[个种款]|后面那?[个种款])"
    rf"|(?P<ordinal>[这那]第?(?P<number>[一二三四五12345])[{_MEASURE}]|"
    rf"第(?P<bare>[一二三四五12345])(?!次)[{_MEASURE}]"
    rf"|(?P<first>头一|首)[{_MEASURE}]|"
    rf"(?P<final>最后(?:面)?[一那这]?)[{_MEASURE}])(?P<onoun>[\u4e00-\u9fffA-Za-z]{{0,4}})"
    r"|(?P<person>他们?|她们?|(?:这|那)(?:个人|位))"
    r"|(?P<plural>它们|这些|那些|这几[个种]|那几[个种]|这两[个种]|那两[个种])"
    r"|(?P<thing>它)"
    r"|(?P<place>那边|那里|那儿|这边|这里|这儿|当地|里面|里头)"
    rf"|(?P<this>[这那](?:[{_MEASURE}]|样|么)?)(?P<head>[\u4e00-\u9fffA-Za-z]{{0,4}})"
)
_THEN = re.compile(
    r"^(?:好的?|嗯+|哦+|噢|行|那么|然后|对了|谢谢|知道了|明白了|懂了|OK|"
    r"ok)?[，,。!！\s]*(?:那么?(?![个种边里儿些样位家款条本部张台])|然后)[，,\s]*"
)
_NE = re.compile(r"呢\s*[？?!！。~～]*$")
_WHICH = re.compile(
    rf"哪(?:一?[{_MEASURE}](?:人)?|边|里面?|者)|谁(?=更|比|的?\S{{0,4}}(?:快|高|大|好|多|长|贵|便宜))"
)
_MORE = re.compile(
    r"还有(?:吗|别的|其他|没有|没|什么|呢|哪些)|别的|其他的?|另外的?|再(?:来|说|给|推荐|详细|具体|举)|"
    r"换(?:一?个|一?种)"
)
_COMPARED = re.compile(r"比|相比|也(?:一样|是|要|能|行|可以|得)|一样吗|同样|差多少")
_BACK_ZH = re.compile(
    r"刚才|刚刚说|前面(?:说|提|讲|那|的)|上面(?:说|提|那|的)|之前(?:说|提)|你(?:说|提到|推荐|给)的|说回|"
    r"回到|接着|继续|第一个说"
)
_PREDICATES = re.compile(
    r"[吗么]|怎|如何|什么|为什么|多少|多久|几|哪|谁|是不是|能不能|要不要|有没有|会不会|好不好|可以|"
    r"[能会要有是不](?!的)"
)


def _chinese(text: str) -> list[Reference]:
    found: list[Reference] = []
    quoted = [(phrase.start, phrase.end) for phrase in mentions(text) if phrase.quoted]
    for hit in _POINTERS.finditer(text):
        if hit.lastgroup is None or hit.group("name") or any(a <= hit.start() < b for a, b in quoted):
            continue
        found.append(_pointer(text, hit))
    found += [
        Reference("which", hit.start(), hit.end(), inside=bool(re.search(r"[和跟与、]|还是", text)))
        for hit in _WHICH.finditer(text)
        if not _noun_at(text, hit.end())
    ]
    found += [Reference("more", hit.start(), hit.end()) for hit in _MORE.finditer(text)]
    found += [Reference("back", hit.start(), hit.end()) for hit in _BACK_ZH.finditer(text)]
    return found + _incomplete_chinese(text)


_QUOTES_END = ("”", '"', "》", "」", "’", "'")


def _pointer(text: str, hit: "re.Match[str]") -> Reference:
    kind: Kind
    start, end, head, place = hit.start(), hit.end(), "", 0
    # A comma ends a clause that it may mean, a quotation is what it means.
    inside = (start > 3 and bool(re.search(r"[，。！？,;；]", text[:start]))) or text[:start].endswith(
        _QUOTES_END
    )
    if hit["former"]:
        kind = "former"
    elif hit["latter"]:
        kind = "latter"
    elif hit["ordinal"]:
        kind, head = "ordinal", hit["onoun"] or ""
        number = hit["number"] or hit["bare"]
        place = _NUMERALS[number] if number else (-1 if hit["final"] else 0)
        end -= len(head)
    elif hit["person"]:
        kind = "person"
    elif hit["plural"]:
        kind = "plural"
    elif hit["thing"]:
        kind = "thing"
    elif hit["place"]:
        kind = "place"
    else:
        kind, head = "this", hit["head"]
        end -= len(head)
        then = _THEN.match(text)
        if then and start < then.end():
            kind, end = ("short" if _PREDICATES.search(text) else "and"), start
        elif head := _noun_at(text, end):
            kind = "noun"
    following = text[end : end + 1]
    return Reference(kind, start, end, head=head, place=place, inside=inside, possessive=following == "的")


def _noun_at(text: str, at: int) -> str:
    """The noun that stands right at this place, or ""."""
    return next((piece.text for piece in pieces(text) if piece.start == at and piece.tag[0] == "n"), "")


def _incomplete_chinese(text: str) -> list[Reference]:
    core = text.strip("，。！？,.!?~～ \n")
    asks = _PREDICATES.search(core) is not None
    if (_NE.search(text) and not asks) or (not asks and len(core) <= 14):
        return [Reference("and", 0, 0)]
    if _COMPARED.search(core):
        return [Reference("short", 0, 0, inside=bool(re.search(r"[和跟与、]", core)))]
    if len(core) <= 6 or (len(core) <= 9 and not mentions(core)):
        return [Reference("short", 0, 0)]
    return []
