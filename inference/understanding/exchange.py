"""The earlier question with one part exchanged: "and Berlin?" after "What's the capital of France?".

Every phrase of the earlier question may be the part that goes, and so may none: then the new part is added.
A linear score over features decides; the weights lie in `exchange.json` and were set by hand.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .mentions import Mention, mentions
from .script import is_chinese
from .words import PREPOSITIONS, is_word, tokens

_OPENING = re.compile(
    r"^(?:(?:(?:ok(?:ay)?|oh|ah|hm+|alright|right|so|and|but|or|plus|then|well|thanks?|great|cool|nice|"
    r"good|got it|"
    r"what|how)\b(?:\s+(?:about|if)\b)?[\s,.!?:;]*)+|(?:好的?|嗯+|哦+|行|那么|那|然后|对了|换成|"
    r"如果(?:是|换成)?|要是)+[，,\s]*)",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"(?:呢|的话|怎么样)?[\s?？。.!！~～，,]*(?:呢)?[\s?？。.!！~～]*$|\s+(?:instead|then|though|too)\W*$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Exchange:
    """One way to read the fragment: `text` is the whole question; `found` speaks for or against it."""

    text: str
    found: Mapping[str, float]
    out: str = ""


def new_part(text: str) -> str:
    """What the fragment brings: "and on Windows?" → "on Windows"."""
    part = text.strip()
    opening = _OPENING.match(part)
    if opening and opening.end() < len(part):
        part = part[opening.end() :]
    closing = _CLOSING.search(part)
    if closing and closing.start() > 0:
        part = part[: closing.start()]
    return part.strip(" ，,") or text.strip()


def exchanges(base: str, text: str) -> list[Exchange]:
    """All readings of the fragment against the earlier question; the first adds it and takes nothing "
    "out."""
    part = new_part(text)
    phrases = _parts(base)
    added = Exchange(_added(base, part), {"added": 1.0, "added short": float(len(part) <= 4)})
    return [added, *(_exchange(base, part, each, phrases) for each in phrases)]


def _parts(base: str) -> list[Mention]:
    """The phrases of the question, and of "the capital of Peru" also "Peru"."""
    found = []
    for each in mentions(base):
        found.append(each)
        inner = each.text.rfind(" of ")
        if inner > 0:
            found.append(
                each._replace(text=each.text[inner + 4 :], start=each.start + inner + 4, definite=False)
            )
    return found


def _added(base: str, part: str) -> str:
    if is_chinese(base):
        return f"{part}，{base}"
    bare = base.rstrip()
    mark = re.search(r"[?.!]+$", bare)
    return f"{bare[: mark.start()]}, {part}{mark.group()}" if mark else f"{bare}, {part}"


def _preposition(words: str) -> str:
    found = tokens(words)
    return found[0].lower if found and found[0].lower in PREPOSITIONS else ""


def _exchange(base: str, part: str, out: Mention, phrases: list[Mention]) -> Exchange:
    start, end = out.start, out.end
    before = [word for word in tokens(base[:start]) if is_word(word)]
    leads = _preposition(part)
    last = [word.lower for word in before[-2:]]
    same = bool(leads) and leads in last
    if leads and last and (same or last[-1] in PREPOSITIONS):
        at = before[-1] if last[-1] in PREPOSITIONS else before[-2]
        start = at.start
    elif (
        last
        and last[-1] in ("the", "a", "an", "my")
        and part.split()[0].casefold() in ("the", "a", "an", "my")
    ):
        start = before[-1].start
    inner = mentions(part)
    core = inner[0] if inner else Mention(part, 0, len(part))
    at_end = not re.search(r"\w", base[end:].replace("吗", "").replace("呢", ""))
    place = phrases.index(out)
    a, b = out.text, core.text
    found = {
        "first": float(place == 0),
        "last": float(place == len(phrases) - 1),
        "only": float(len(phrases) == 1),
        "at end": float(at_end),
        "at start": float(out.start <= 1),
        "same preposition": float(same),
        "another preposition": float(bool(leads) and not same),
        "both names": float(out.proper and core.proper),
        "one name": float(out.proper != core.proper),
        "both capital": float(a[:1].isupper() == b[:1].isupper()),
        "both digits": float(any(map(str.isdigit, a)) and any(map(str.isdigit, b))),
        "one digits": float(any(map(str.isdigit, a)) != any(map(str.isdigit, b))),
        "same first": float(a[:1].casefold() == b[:1].casefold()),
        "same last": float(a[-1:].casefold() == b[-1:].casefold()),
        "same last two": float(a[-2:].casefold() == b[-2:].casefold()),
        "shared": len(set(a.casefold()) & set(b.casefold()))
        / max(1, len(set(a.casefold()) | set(b.casefold()))),
        "length differs": abs(math.log((1 + len(a)) / (1 + len(b)))),
        "long": float(len(a) > (8 if is_chinese(a) else 24)),
        "definite": float(out.definite),
        "both quoted": float(out.quoted and core.quoted),
        "one quoted": float(out.quoted != core.quoted),
        "known": float(a in part),
    }
    rest = part if not out.quoted else part.strip("\"'“”《》")
    return Exchange(base[:start] + rest + base[end:], found, out.text)


@cache
def _weights() -> Mapping[str, float]:
    stored = json.loads((Path(__file__).parent / "exchange.json").read_text(encoding="utf-8"))
    return {name: float(weight) for name, weight in stored["weights"].items()}


def _best(base: str, readings: list[Exchange]) -> Exchange:
    weights, language = _weights(), "zh" if is_chinese(base) else "en"

    def score(reading: Exchange) -> float:
        return sum(
            (weights.get(name, 0.0) + weights.get(f"{language} {name}", 0.0)) * value
            for name, value in reading.found.items()
        )

    return max(readings, key=score)


def exchanged(base: str, text: str) -> str:
    """The likeliest reading of the fragment, as a whole question."""
    return _best(base, exchanges(base, text)).text


def exchanged_parts(base: str, text: str) -> tuple[str, str]:
    """What the fragment puts beside what: ("Instant Pot", "Ninja Foodi")."""
    readings = exchanges(base, text)
    out = _best(base, readings[1:]).out if len(readings) > 1 else base
    return out, new_part(text)
