"""What a new message and its history show of whether it takes something back, as named features.

The signs: how the message is built (question, request, statement, bare fragment), whether the assistant has
just asked, which cue words stand outside quotations and set phrases, which values it exchanges for others of
their kind, and whose words it repeats.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

from .asking import OPENING_EN, taken_out
from .said_values import Said, read_values
from .script import COMMON_HAN
from .signal_cues import (
    ATTRIBUTE,
    CHANGE_REQUEST,
    CODE,
    CUES,
    DRAFTS,
    GOES_ALONG,
    GOES_ON,
    HEADING,
    LATE_QUESTION,
    NODS,
    NOT_ASKING_ZH,
    OPENS,
    PROPOSES,
    QUESTION_EN,
    QUESTION_ZH,
    QUOTED,
    RELATIVE_EN,
    REPORTED,
    SET_PHRASES,
    SHADE_EN,
    TURNS,
    WORK_EN,
    WORK_ZH,
)
from .turns import Turns

# Long texts are read at their ends: what a message replaces stands there, and time stays bounded.
_HEAD, _TAIL = 600, 300
_EARLIER, _EARLIER_HEAD = 6, 200
# A message takes something back in its first words or not at all; what follows is material.
_CLAUSES = 24

_CLAUSE = re.compile(r"(?:(?<!\d)[,.]|[,.](?!\d)|[，。!！?？;；…\n—]|\s-\s)+\s*")
_ASKS = re.compile(r"[?？]\W*$")
_INVITES = re.compile(
    r"\b(?:send|paste|share|tell|give|let) (?:me|it)\b|\bgo ahead\b|\blet me know\b|\bwhich one\b"
    r"|请(?:讲|说|发|问|提供|告诉|把)|您说\W*$|发过来|发来看看|发来|说说看|告诉我|需要我|要不要我",
    re.IGNORECASE,
)
_OFFERS = re.compile(
    r"\b(?:would you like|do you want|shall i|should i|want me to|anything (?:else|to)|can i|need"
    r" (?:any|me|help))\b|需要[^几什哪多,，]{1,8}吗"
    r"|要不要|要[^几什哪多,，]{1,8}吗|要我|还[有要](?:什么|其他|需要|改)|想要",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"^\W*(?:please |can you |could you |help (?:me )?)?(?:write|plan|draft|make|suggest|outline"
    r"|book|create|design|give|recommend|find|set|list|compose|translate|rewrite|summari[sz]e"
    r"|convert|compare|add|build|"
    r"fix|edit|polish|describe|packing|shopping|schedule|itinerary|invitation|remind)\b|帮|给我|写|推荐"
    r"|做个|安排|想[去买学养做换]|打算|排|起[个名]|翻译|拟|设计|列",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z][A-Za-z'’]*|\d+(?:\.\d+)?")
_LIGHT = frozenset(
    "a an the of to in on at for and or but is are was were be been it its this that i you we he"
    " she they me my your our his her do does did not no "
    "so as with from by if then than what which who how when where why can could would should"
    " will just have has had there here about".split()
)
_LIGHT_HAN = frozenset(
    "的了是我你您他她它们这那个有在不没就都也吗呢吧啊呀哦嗯和跟与给把被要想会能可以一上下里"
)
_NEGATED_EN = re.compile(
    r"\b(?:not|no|isn't|aren't|wasn't|weren't|don't|doesn't|didn't|never|neither|without"
    r"|nothing)\b((?:\s+[\w'%$.-]+){1,4})",
    re.IGNORECASE,
)
_NEGATED_ZH = re.compile(r"(?:不是|没有|没|不|非|别)([\u4e00-\u9fffA-Za-z0-9]{1,6})")
_TIME_VALUES = frozenset({"weekday", "month", "clock", "part of day", "day of month", "year"})


# Beside such words an attribute is not asked for: "you got the date wrong".
_SAYS_MORE = ("change", "wrong", "drop", "you_did", "first_person", "copula", "contrast")


# After an answer that begins so, a message that begins so agrees.
_DENIES = re.compile(r"\W*(?:no|nope|not|never)\b|\W*(?:不|没|否)", re.IGNORECASE)


# In a request for new work these are what the work is about: "three wrong translations".
_CHANGING = ("change", "drop", "not_doing", "gone", "wrong", "outright", "fails", "should", "contrast")
_TOPICAL = frozenset({"wrong", "drop", "dislike", "contrast", "you_did", "said", "gone"})


@dataclass(frozen=True)
class Clause:
    """A piece of the message between two marks; `asks`: it is a question; `works`: it asks for new work."""

    text: str
    start: int
    end: int
    asks: bool
    works: bool = False


@dataclass
class Reading:
    """`features` by name; `spans`: where in the message the features that have a place were found."""

    features: dict[str, float] = field(default_factory=dict)
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)

    def note(self, name: str, value: float = 1.0, span: tuple[int, int] | None = None) -> None:
        """Keep the greatest value and the first place of a feature."""
        if value > self.features.get(name, 0.0):
            self.features[name] = value
        if span and name not in self.spans:
            self.spans[name] = span


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())


def _ends(text: str) -> str:
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n{text[-_TAIL:]}"


def own_words(text: str) -> str:
    """The message with quotations, code and reported speech blanked out; places stay the same."""
    bare = QUOTED.sub(_blank, text)
    reported = REPORTED.search(bare)
    if reported:
        colon = re.search(r"[:：]|\bno\b", reported.group())
        at = reported.start() + (colon.end() if colon else 0)
        bare = bare[:at] + " " * (len(bare) - at)
    return bare


def clauses(text: str) -> list[Clause]:
    """The message's first clauses, with their places."""
    found: list[Clause] = []
    start = 0
    for mark in chain(_CLAUSE.finditer(text), (None,)):
        end = mark.start() if mark else len(text)
        piece = text[start:end]
        if piece.strip():
            asks = _asks(piece.strip(), mark.group() if mark else "", opens=not found)
            found.append(Clause(piece, start, end, asks))
        if len(found) == _CLAUSES:
            break
        start = mark.end() if mark else end
    return found


def _asks(piece: str, mark: str, opens: bool) -> bool:
    marked = "?" in mark or "？" in mark
    if HEADING.match(piece):
        return True
    if ATTRIBUTE.search(piece) and not any(CUES[name].search(piece) for name in _SAYS_MORE):
        return True
    if CHANGE_REQUEST.match(piece):
        return False
    # Who has not understood asks to have it explained.
    if CUES["puzzled"].search(piece):
        return True
    if COMMON_HAN.search(piece):
        asking = bool(QUESTION_ZH.search(NOT_ASKING_ZH.sub("", piece)))
        return asking or (marked and not piece.endswith("啊"))
    return (
        marked
        or bool(LATE_QUESTION.search(piece) or OPENING_EN.match(piece))
        or (bool(QUESTION_EN.match(piece)) and (opens or not RELATIVE_EN.match(piece)))
    )


def _works(piece: str) -> bool:
    """Does the clause ask for a piece of work, be it a shade of the last one?"""
    if COMMON_HAN.search(piece):
        return bool(WORK_ZH.match(piece))
    return bool(WORK_EN.match(piece) or SHADE_EN.match(piece))


def content_words(text: str) -> set[str]:
    """English words without their commonest endings, numbers, and Chinese character pairs."""
    found = {_stem(word.lower()) for word in _WORD.findall(text)} - _LIGHT
    for run in re.findall(r"[\u4e00-\u9fff]+", text):
        chars = "".join(char for char in run if char not in _LIGHT_HAN)
        found.update(chars[at : at + 2] for at in range(len(chars) - 1))
        if len(chars) == 1:
            found.add(chars)
    return found


def _stem(word: str) -> str:
    for ending in ("'s", "’s", "ing", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def read(history: Turns, text: str) -> Reading:
    """Read the message against what was said before it. Never raises."""
    reading = Reading()
    text = text[:_HEAD]
    answer = next((_ends(turn["content"]) for turn in reversed(history) if turn["role"] == "assistant"), "")
    earlier = [turn["content"][:_EARLIER_HEAD] for turn in history if turn["role"] == "user"][-_EARLIER:]
    own = own_words(text)
    _read_scene(reading, history, answer, earlier)
    parts = _read_form(reading, text, own)
    _read_cues(reading, parts, own)
    if _DENIES.match(answer) and _DENIES.match(own):
        reading.note("form echoes no")
        reading.features["form denies then asks"] = 0.0
    _read_values(reading, answer, earlier, text)
    _read_overlap(reading, answer, earlier, own)
    return reading


def _read_scene(reading: Reading, history: Turns, answer: str, earlier: list[str]) -> None:
    sentences = [part for part in re.split(r"(?<=[.!?。！？])\s*", answer.strip()) if part.strip()]
    last = sentences[-1] if sentences else ""
    closes = bool(_ASKS.search(last))
    proposed = closes and bool(PROPOSES.search(last))
    in_draft = bool(DRAFTS.search(answer))
    opens = (
        bool(sentences)
        and len(sentences) <= 3
        and bool(_ASKS.search(sentences[0]) and not PROPOSES.search(sentences[0]))
    )
    asked = (closes or opens) and not proposed and (not in_draft or bool(_OFFERS.search(last)))
    reading.note("scene asked", float(asked))
    reading.note("scene proposed", float(proposed or (in_draft and closes and not asked)))
    reading.note("scene invited", float(not asked and bool(_INVITES.search(last))))
    reading.note("scene offered", float(asked and bool(_OFFERS.search(last))))
    reading.note("scene answered too", float(asked and len(sentences) > 1) * min(1.0, len(answer) / 100))
    reading.note("scene opened", float(bool(OPENS.search(answer)) and len(answer) < 80))
    nod = NODS.match(answer)
    beyond = content_words(answer[nod.end() :]) if nod else set()
    reading.note("scene nodded", float(bool(nod)))
    reading.note("scene only nodded", float(bool(nod) and len(beyond) <= 2 and not read_values(answer)))
    reading.note("scene long answer", min(1.0, len(answer) / 200))
    reading.note("scene greeted", float(not earlier or (not answer)))
    request = earlier[-1] if earlier else ""
    reading.note("scene request", float(bool(_REQUEST.search(request))))
    # "Tell me how tall it is" is about nobody.
    about_user = bool(CUES["first_person"].search(" ".join(map(taken_out, earlier))))
    asks = any(clause.asks for clause in clauses(request))
    reading.note("scene about user", float(about_user))
    reading.note("scene general", float(asks and not about_user and not _REQUEST.search(request)))
    reading.note("scene question", float(asks))
    reading.note("scene stated", float(bool(request) and not asks and not _REQUEST.search(request)))
    reading.note("scene meta", float(bool(QUOTED.search(request) or CUES["meta"].search(request))))
    reading.note("scene several turns", float(len(history) > 2))


def _read_form(reading: Reading, text: str, own: str) -> list[Clause]:
    aside = SET_PHRASES.sub(_blank, own)
    reading.note("form set phrase", float(aside != own))
    aside = _going_along(own, aside)
    lead = SET_PHRASES.search(own)
    reading.note(
        "form set phrase first", float(bool(lead) and not own[: lead.start()].strip()) if lead else 0.0
    )
    reading.note("form quotes", float(own != text))
    reading.note("form code", float(bool(CODE.search(text))))
    said = len(own.strip())
    reading.note("form only quotes", float(own != text and said < 0.35 * len(text.strip())))
    parts = clauses(aside)
    # Whether a clause asks is told with the set phrases in it: 是不是 is one, and asks.
    whole = clauses(own)
    asking = [clause for clause in whole if clause.asks]
    # Nothing but a quotation: it is brought to be worked on.
    bare = not any(char.isalnum() for char in own)
    reading.note("form asks", float(bool(asking) or bare))
    reading.note("form last asks", float(bool(whole) and whole[-1].asks))
    reading.note("form first asks", float(bool(whole) and whole[0].asks))
    reading.note("form all ask", float(bool(whole) and len(asking) == len(whole)))
    reading.note("form marked question", float(bool(re.search(r"[?？]\W*$", text))))
    reading.note("form exclaims", float(bool(re.search(r"[!！]", own))))
    size = len(_WORD.findall(text)) + len(COMMON_HAN.findall(text)) / 1.7
    reading.note("form fragment", float(size <= 4))
    reading.note("form short", float(4 < size <= 9))
    reading.note("form long", float(size > 18))
    reading.note("form very long", float(size > 40))
    reading.note("form clauses", min(1.0, (len(whole) - 1) / 3))
    works = [_works(part.text) for part in whole]
    reading.note("form works", float(any(works)))
    reading.note("form works first", float(bool(works) and works[0]))
    reading.note("form goes on", float(bool(GOES_ON.search(own))))
    reading.note("form ba", float(bool(re.search(r"吧\W*$", own))))
    denies = bool(whole) and not whole[0].asks and bool(CUES["no_start"].search(whole[0].text))
    reading.note("form denies then asks", float(denies and whole[-1].asks))
    return [_as_in(part, whole, works) for part in parts]


def _going_along(own: str, aside: str) -> str:
    """`aside`, with a yes in the place of a set phrase that `own` begins with and that means one."""
    start = len(own) - len(own.lstrip())
    lead = GOES_ALONG.match(own, start)
    if lead is None or any(CUES[name].search(aside, lead.end()) for name in _CHANGING):
        return aside
    return aside[:start] + "ok".ljust(lead.end() - start) + aside[lead.end() :]


def _as_in(part: Clause, whole: list[Clause], works: list[bool]) -> Clause:
    """The clause with set phrases blanked out, as what it is with them."""
    around = [
        (clause.asks, work)
        for clause, work in zip(whole, works, strict=True)
        if clause.start <= part.start < clause.end or clause.start < part.end <= clause.end
    ]
    asks, work = any(asks for asks, _ in around), any(work for _, work in around)
    return Clause(part.text, part.start, part.end, asks, work)


def _read_cues(reading: Reading, parts: list[Clause], own: str) -> None:
    turn = max((part.start for part in parts if TURNS.match(own[part.start : part.end])), default=0)
    reading.note("form turns", float(turn > 0))
    for at, part in enumerate(parts):
        accepted = CUES["accepts"].search(part.text)
        for name, cue in CUES.items():
            if (name == "no_start" and at) or (name == "praise" and part.start < turn):
                continue
            if name == "change" and accepted:
                continue
            found = cue.search(part.text)
            if found:
                aside = part.asks or (part.works and name in _TOPICAL)
                span = (part.start + found.start(), part.start + found.end())
                reading.note(f"cue {name}{' asked' if aside else ''}", 1.0, span)
                if at == 0 and name in ("praise", "drop", "change", "topic"):
                    reading.note(f"cue {name} first")


def _read_values(reading: Reading, answer: str, earlier: list[str], text: str) -> None:
    said = read_values(text)
    in_answer = _by_kind(read_values(answer))
    by_user = _by_kind([value for turn in earlier for value in read_values(turn)])
    for value in said:
        ours, theirs = by_user.get(value.kind, set()), in_answer.get(value.kind, set())
        kind = "time" if value.kind in _TIME_VALUES else "name" if value.kind == "name" else "amount"
        span = (value.start, value.end)
        if theirs and value.value not in theirs and value.value in ours:
            reading.note("value restored", 1.0, span)
        if value.value in ours and value.value not in theirs and not theirs:
            reading.note("value repeated", 1.0, span)
        if (ours or theirs) and value.value not in ours | theirs:
            reading.note(f"value other {kind}", 1.0, span)
        if theirs and value.value not in ours | theirs:
            reading.note("value not in answer", 1.0, span)
        if not ours and not theirs:
            reading.note(f"value new {kind}", 1.0, span)
        if value.value in theirs:
            reading.note("value of answer", 1.0, span)


def _by_kind(values: list[Said]) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {}
    for value in values:
        found.setdefault(value.kind, set()).add(value.value)
    return found


def _read_overlap(reading: Reading, answer: str, earlier: list[str], own: str) -> None:
    mine = content_words(own)
    theirs = content_words(answer)
    before = set().union(*(content_words(turn) for turn in earlier)) if earlier else set()
    if mine:
        share = 1 / math.sqrt(len(mine))
        reading.note("overlap user only", min(1.0, len(mine & (before - theirs)) * share))
        reading.note("overlap answer only", min(1.0, len(mine & (theirs - before)) * share))
        reading.note("overlap both", min(1.0, len(mine & theirs & before) * share))
        reading.note("overlap none", float(not mine & (theirs | before)))
    for pattern in (_NEGATED_EN, _NEGATED_ZH):
        for match in pattern.finditer(own):
            denied = content_words(match.group(1))
            if denied & theirs:
                reading.note("denies answer", 1.0, match.span())
            if denied & before:
                reading.note("denies user", 1.0, match.span())
