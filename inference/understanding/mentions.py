"""What a turn talks about: the phrases that a later turn may point back to.

English is cut at its function words and common verbs, Chinese at its particles and the verbs that usually
stand before an object. Quoted text, book titles, names and enumerations are recognised as such.
"""

import re
from functools import lru_cache
from typing import NamedTuple

import rjieba

from .script import is_chinese
from .words import DETERMINERS, Token, is_content, is_word, stem, tokens


class Mention(NamedTuple):
    """A phrase of a text, at `start:end`. `proper`: written as a name, a title or a quotation. `place`: its
    position in the enumeration it stands in, from 0, or None. `of`: how long that enumeration is. `sentence`:
    in which sentence of the text, from 0. `definite`: a determiner or possessive stands before it."""

    text: str
    start: int
    end: int
    proper: bool = False
    quoted: bool = False
    place: int | None = None
    of: int = 0
    sentence: int = 0
    definite: bool = False

    @property
    def head(self) -> str:
        """The word that says what it is: the last one in English, the last two characters in Chinese."""
        if is_chinese(self.text):
            return self.text[-2:]
        return stem(self.text.split()[-1]) if self.text.split() else ""


_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；\n])")
_QUOTED = re.compile(
    r"《([^》]+)》|“([^”]+)”|\"([^\"\n]+)\"|「([^」]+)」|(?<!\w)'([^'\n]+)'(?!\w)|`([^`\n]+)`"
)
# "Manorialism: History", "Ratt: Early years (1973-1982)": the title of an article and of its section.
_TITLE = re.compile(r"^(?P<whole>[^:：?？。!\n]{2,60}?)[:：]\s*(?P<part>[^?？\n]{2,90})$")


def title(text: str) -> tuple[str, str] | None:
    """("Manorialism", "History") of "Manorialism: History"; None for everything that isn't written like the
    heading of a page."""
    found = _TITLE.match(text.strip())
    if found is None or not found["whole"][:1].isupper() or len(found["whole"].split()) > 8:
        return None
    return found["whole"].strip(), found["part"].strip()


@lru_cache(maxsize=2048)
def mentions(text: str) -> tuple[Mention, ...]:
    """The phrases of a text in order of appearance; none overlap but a quotation and what is around it."""
    text = text[:4000]
    found = _chinese(text) if is_chinese(text) else _english(text)
    return tuple(sorted(found, key=lambda mention: (mention.start, -mention.end)))


def _sentence_starts(text: str) -> list[int]:
    return [0, *(cut.end() for cut in _SENTENCE.finditer(text))]


def _sentence_of(starts: list[int], at: int) -> int:
    return sum(start <= at for start in starts) - 1


def _quotations(text: str) -> list[Mention]:
    starts = _sentence_starts(text)
    found = []
    for quote in _QUOTED.finditer(text):
        inner = next(number for number in range(1, 7) if quote.group(number) is not None)
        if not quote.group(inner).strip():
            continue
        found.append(
            Mention(
                quote.group(inner),
                quote.start(inner),
                quote.end(inner),
                proper=True,
                quoted=True,
                sentence=_sentence_of(starts, quote.start()),
            )
        )
    return found


# --- English ----------------------------------------------------------------------------------------

_LINKS = frozenset("of the and & for in de la von van".split())


def _capital(token: Token) -> bool:
    return token.text[0].isupper() or any(char.isdigit() for char in token.text)


def _english(text: str) -> list[Mention]:
    found = _quotations(text)
    heading = title(text)
    starts = _sentence_starts(text)
    words = tokens(text)
    runs = _runs(text, words, starts)
    if heading is not None:
        whole = Mention(heading[0], 0, len(heading[0]), proper=True)
        runs = [run for run in runs if run.start >= whole.end]
        found.append(whole)
    taken = [(quote.start, quote.end) for quote in found if quote.quoted]
    runs = [run for run in runs if not any(start <= run.start and run.end <= end for start, end in taken)]
    return _enumerated(text, found + runs)


def _runs(text: str, words: tuple[Token, ...], starts: list[int]) -> list[Mention]:
    found: list[Mention] = []
    at = 0
    while at < len(words):
        if not _opens(words, at):
            at += 1
            continue
        end = at + 1
        while end < len(words) and _continues(words, at, end, text):
            end += 1
        while end - 1 > at and words[end - 1].lower in _LINKS:
            end -= 1
        found.append(_mention(text, words, at, end, starts))
        at = end
    return found


def _opens(words: tuple[Token, ...], at: int) -> bool:
    word = words[at]
    if not is_word(word):
        return False
    before = words[at - 1].lower if at else ""
    if is_content(word.lower):
        lone = at + 1 == len(words) or not is_word(words[at + 1]) or not is_content(words[at + 1].lower)
        return not (
            lone and word.text.islower() and _SAYS_HOW.search(word.lower) and before not in DETERMINERS
        )
    if (
        _capital(word)
        and at
        and is_word(words[at - 1])
        and word.text not in ("I", "A")
        and len(word.text) > 1
    ):
        return word.lower not in ("i'm", "i've", "i'll", "i'd") and before not in (".", "?", "!", ":")
    named = before in DETERMINERS or before in ("my", "your", "our", "his", "her", "their", "its")
    return named and not is_content(word.lower) and word.lower not in _NEVER_NOUNS


# Adverbs, and what was done: not what a sentence is about.
_SAYS_HOW = re.compile(
    r"(?:..ly|...ed)$|^(?:lol|haha|fine|quiet|free|safe|hard|easy|expensive|cheap|warm|hot|cold|dry|wet|"
    r"tall|wide|"
    r"heavy|light|early|late|fast|slow|full|empty|clean|dirty|strong|weak|happy|sorry|worth|available|"
    r"comfortable|typical|normal|common|popular|important|similar|solid|lovely|usual|ready|open|closed)$"
)
_NEVER_NOUNS = frozenset(
    "the a an of to in on and or not very too is are was were be other same first second third last next "
    "one "
    "ones more most few little lot lots best better worst worse much many kind sort way thing things own "
    "different that this these those it they you we he she i some any all".split()
)


def _continues(words: tuple[Token, ...], first: int, at: int, text: str) -> bool:
    word, before = words[at], words[at - 1]
    gap = text[before.end : word.start]
    if "\n" in gap:
        return False
    if word.text.islower() and before.text[0].isupper() and word.lower.endswith("ed"):
        return False  # a name and what it did
    if is_word(word) and (is_content(word.lower) or (_capital(word) and word.text != "I")):
        return True
    if word.lower in _LINKS and at + 1 < len(words):
        after = words[at + 1]
        capitals = _capital(before) or before.lower in _LINKS
        far = words[at + 2] if at + 2 < len(words) else None
        linked = after.lower in _LINKS and far is not None and far.text[0].isupper()
        return (
            capitals
            and before.text[0].isupper()
            and (after.text[0].isupper() or linked)
            and word.lower not in ("and", "in", "for")
        ) or (
            word.lower == "of" and is_word(after) and is_content(after.lower) and not before.text[0].isupper()
        )
    return False


def _mention(text: str, words: tuple[Token, ...], at: int, end: int, starts: list[int]) -> Mention:
    first, last = words[at], words[end - 1]
    before = words[at - 1].lower if at else ""
    sentence = _sentence_of(starts, first.start)
    opening = first.start in starts or (at > 0 and not is_word(words[at - 1]) and before in ".?!:")
    capitals = [
        word for word in words[at:end] if word.text[0].isupper() or any(c.isupper() for c in word.text[1:])
    ]
    proper = any(
        word is not first or not opening or sum(c.isupper() for c in word.text) > 1 for word in capitals
    )
    return Mention(
        text[first.start : last.end],
        first.start,
        last.end,
        proper=proper,
        sentence=sentence,
        definite=before in ("the", "my", "your", "our", "his", "her", "their", "its", "this", "that"),
    )


_BETWEEN_ITEMS = re.compile(
    r"^\W*(?:,|/|;|\.)?\s*(?:and|or|vs\.?|versus|with|than|&)?\W*(?:\d\.\s*|\(?\d\)\s*)?(?:the|a|an|my|"
    r"from|in|on|for|to)?\s*$",
    re.I,
)
_NUMBERED = re.compile(r"(?:^|\s)\(?(\d)[.)]\s+")


def _enumerated(text: str, found: list[Mention]) -> list[Mention]:
    """The same mentions, those that stand in one enumeration numbered."""
    ordered = sorted(found, key=lambda mention: mention.start)
    numbered = [(int(mark.group(1)), mark.end()) for mark in _NUMBERED.finditer(text)]
    if len(numbered) >= 2:
        return _by_number(ordered, numbered)
    groups: list[list[int]] = []
    for at in range(len(ordered)):
        if groups and at:
            last = ordered[groups[-1][-1]]
            between = text[last.end : ordered[at].start] if last.end <= ordered[at].start else "\n"
            listing = re.search(r"[,;/]|\b(?:and|or|vs|versus|than)\b|[、和跟与及或]|还是", between)
            if (
                len(between) <= 16
                and listing
                and "\n" not in between
                and not re.search(r"[.?!。？！]\s", between)
            ):
                groups[-1].append(at)
                continue
        groups.append([at])
    for group in groups:
        if len(group) > 1:
            for place, at in enumerate(group):
                ordered[at] = ordered[at]._replace(place=place, of=len(group))
    return ordered


def _by_number(ordered: list[Mention], numbered: list[tuple[int, int]]) -> list[Mention]:
    marks = [start for _, start in numbered]
    seen: set[int] = set()
    out = []
    for mention in ordered:
        item = sum(start <= mention.start for start in marks) - 1
        if item >= 0 and item not in seen:
            seen.add(item)
            mention = mention._replace(place=item, of=len(marks))
        out.append(mention)
    return out


# --- Chinese ----------------------------------------------------------------------------------------


_MARKS = r"\s，。！？；：、,.!?;:（）()《》“”\"「」…—~～/"
_CUTS = (
    "为什么 怎么样 怎么办 怎么 怎样 如何 什么 多少 多久 多长 多大 多高 多远 哪个 哪些 哪里 哪儿 哪种 "
    "哪家 哪 谁 "
    "这个 那个 这些 那些 这种 那种 这样 那样 这边 那边 这里 那里 这么 那么 它们 他们 她们 我们 你们 咱们 "
    "大家 "
    "可以 可能 应该 需要 必须 一定 一般 通常 大概 大约 差不多 左右 比较 非常 特别 最好 建议 推荐 试试 "
    "看看 比如 "
    "如果 的话 因为 所以 但是 不过 而且 或者 还是 以及 然后 之后 以后 之前 以前 时候 已经 正在 刚才 刚刚 "
    "现在 "
    "有没有 是不是 能不能 会不会 要不要 可不可以 好不好 行不行 没有 不是 不要 不用 不能 不会 不太 还有 "
    "另外 其中 "
    "就是 都是 也是 还要 还会 都行 都可以 不错 适合 打算 准备 想要 知道 觉得 听说 请问 帮我 告诉 关于 "
    "属于 包括 "
    "的 了 吗 呢 吧 啊 呀 嘛 哦 噢 嗯 着 把 被 也 都 就 才 很 太 最 更 挺 我 你 您 他 她 它 这 那 是 在 "
    "和 跟 与 及 或 让 并 而 但 若"
).split()
_CUT = re.compile("|".join(sorted(map(re.escape, _CUTS), key=len, reverse=True)) + f"|[{_MARKS}]+")
# Before its object a verb or an auxiliary may stay: it says little, so it goes, unless too little is left.
_LEADING = re.compile(
    r"^(?:想|要|会|能|得|该|先|再|还|又|别|不|没|请|给|用|去|来|到|从|往|向|对|为|买|选|看|做|吃|喝|换|"
    r"改|成|有|叫|说|问|"
    r"办|装|学|当|比|按|等|跑|开|加|放|打|报|考|查|养|写|找|带|住|穿|戴|玩|走|只|每|一|两|几|个|些|点|次|"
    r"下|上|里)+(?=.{2})"
)
_TRAILING = re.compile(
    r"(?<=..)(?:里面|上面|下面|里|上|下|中|时|后|前|内|外|要|会|能|好|多|用|去|来|到|给|有|不|没|吃|买)+$"
)
_LATIN = re.compile(r"[A-Za-z][\w.+#\-]*(?: [A-Z0-9][\w.+#\-]*)*")


class Piece(NamedTuple):
    text: str
    tag: str
    start: int
    end: int


# Parts of speech (as the segmenter names them) that a phrase may consist of: nouns of all kinds,
# abbreviations, idioms, distinguishing words, verbs used as nouns, times, places, Latin words.
_NOUNS = ("n", "j", "i", "l", "b", "vn", "an", "t", "s", "eng", "z")
_NUMBERS = ("m", "q")
# Nouns to the segmenter, but nothing that one points back to.
_EMPTY = frozenset(
    "时候 一下 有点 之后 以后 之前 以前 一般 问题 情况 时间 东西 办法 上面 下面 里面 左右 大部分 部分 "
    "最好 建议 推荐 "
    "试试 看看 比如 例如 现在 今天 明天 昨天 刚才 最近 平时 有人 别人 自己 大家 个人 意思 感觉 样子 影响 "
    "需要 可以 一点 "
    "谢谢 你好 您好 帮忙 请问 知道 介绍 不错 都行 行 好 先 好的 回头".split()
)


def _chinese(text: str) -> list[Mention]:
    """Noun phrases as the segmenter sees them. It doesn't know every name: where it sees none, a chunk
    between particles stands in, and where it takes a verb for the beginning of a name, the chunk without
    it."""
    runs, found = _noun_phrases(text), []
    chunks = _chunks(text)
    for chunk in chunks:
        inside = [run for run in runs if chunk.start <= run.start and run.end <= chunk.end]
        if not inside:
            found.append(chunk)
    for run in runs:
        shorter = [each for each in found if run.start < each.start and each.end == run.end]
        if not shorter:
            found.append(run)
    return found


def _chunks(text: str) -> list[Mention]:
    starts = _sentence_starts(text)
    quotes = _quotations(text)
    found: list[Mention] = []
    at = 0
    for start, end in [*((cut.start(), cut.end()) for cut in _CUT.finditer(text)), (len(text), len(text))]:
        if start > at and not any(quote.start <= at < quote.end for quote in quotes):
            chunk = _trimmed(text, at, start, starts)
            if chunk is not None and len(chunk.text) <= 8:
                found.append(chunk)
        at = end
    return _enumerated(text, found)


def _noun_phrases(text: str) -> list[Mention]:
    starts = _sentence_starts(text)
    found = _quotations(text)
    taken = [(quote.start, quote.end) for quote in found]
    words = [piece for piece in pieces(text) if not any(a <= piece.start < b for a, b in taken)]
    at = 0
    while at < len(words):
        end = _run(words, at)
        if end > at:
            start, stop = words[at].start, words[end - 1].end
            phrase = text[start:stop]
            if phrase not in _EMPTY and (len(phrase) > 1 or words[at].tag[0] == "n" or phrase.isascii()):
                proper = any(piece.tag == "eng" or piece.tag in _NAMES for piece in words[at:end])
                found.append(
                    Mention(phrase, start, stop, proper=proper, sentence=_sentence_of(starts, start))
                )
        at = max(end, at + 1)
    return _enumerated(text, found)


_NAMES = ("nr", "ns", "nt", "nz", "nrt", "nrfg")


@lru_cache(maxsize=2048)
def pieces(text: str) -> tuple[Piece, ...]:
    """The words of a Chinese text with their parts of speech, as the segmenter sees them."""
    found, at = [], 0
    for word, tag in rjieba.tag(text):
        start = text.find(word, at)
        if start < 0:
            continue
        at = start + len(word)
        if tag == "v" and len(word) > 2 and word[0] in _LIGHT:
            # A verb and its object that are often said together: 吃螃蟹.
            found += [Piece(word[0], "v", start, start + 1), Piece(word[1:], "n", start + 1, at)]
        elif word.strip():
            found.append(Piece(word, tag, start, at))
    return tuple(found)


def _nominal(piece: Piece) -> bool:
    return piece.tag.startswith(_NOUNS) or (piece.tag == "v" and len(piece.text) > 3)


def _run(pieces: list[Piece], at: int) -> int:
    """Where the phrase that begins at this piece ends; `at` itself if none does."""
    first = pieces[at]
    if (
        not (_nominal(first) or (first.tag.startswith(_NUMBERS) and any(map(str.isdigit, first.text))))
        or first.text in _EMPTY
    ):
        return at
    end = at + 1
    while end < len(pieces) and pieces[end].start == pieces[end - 1].end and _goes_on(pieces, end):
        end += 1
    return end


def _goes_on(pieces: list[Piece], at: int) -> bool:
    piece, before = pieces[at], pieces[at - 1]
    if piece.text in _EMPTY:
        return False
    after = pieces[at + 1] if at + 1 < len(pieces) and pieces[at + 1].start == piece.end else None
    if _nominal(piece) or (
        piece.tag.startswith(_NUMBERS) and (piece.text.isascii() or before.text.isascii())
    ):
        return True
    # A verb between two nouns of a term (多导睡眠监测), or one that closes it (肌效贴, before another verb).
    if piece.tag == "v" and piece.text not in _LIGHT:
        if after is not None and len(piece.text) > 1 and _nominal(after) and before.tag[0] == "n":
            return True
        return len(piece.text) == 1 and before.tag[0] == "n" and after is not None and after.tag[0] in "vd"
    return piece.tag in ("k", "g", "ng") or (piece.text == "-" and after is not None)


_LIGHT = frozenset(
    "是 有 要 能 会 可以 在 到 去 来 用 让 给 做 说 看 想 没有 没 吃 喝 买 卖 选 打 换 改 叫 放 贴 洗 穿 "
    "带 装 办 考 学".split()
)


def _trimmed(text: str, start: int, end: int, starts: list[int]) -> Mention | None:
    piece = text[start:end]
    lead = _LEADING.match(piece)
    if lead:
        start, piece = start + lead.end(), piece[lead.end() :]
    tail = _TRAILING.search(piece)
    if tail:
        piece = piece[: tail.start()]
    if len(piece) < 2 and not piece.isdigit():
        return None
    sentence = _sentence_of(starts, start)
    return Mention(piece, start, start + len(piece), proper=bool(_LATIN.search(piece)), sentence=sentence)
