"""Does a message stand on its own, or does it lean on what was said before?

A logistic regression over what the message points with, what it brings itself and what it shares with its
history. The weights lie in `dependence.json`; they were fitted offline, by
inference/evaluation/fit_understanding.py.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from . import standalone
from .asking import taken_out
from .grounding import NOTHING, Ground
from .mentions import mentions, pieces
from .references import references
from .script import is_chinese
from .standalone import Vectors, spoken_of
from .turns import Role, Turn, Turns
from .words import (
    CONJUNCTIONS,
    QUESTION_WORDS,
    RELATIONAL,
    RELATIONAL_CHINESE,
    SELVES,
    content,
    is_word,
    tokens,
)


@dataclass(frozen=True)
class Dependence:
    """`on`: the turn of the window that is leaned on most, by index, or None. `leans_on`: all of them, in
    order. `confidence`: how sure the verdict is, 0.5 to 1."""

    dependent: bool = False
    on: int | None = None
    confidence: float = 1.0
    reasons: tuple[str, ...] = ()
    leans_on: tuple[int, ...] = ()


def features(text: str, history: Turns, ground: Ground = NOTHING) -> dict[str, float]:
    """What the verdict rests on, by name. Values lie between 0 and about 3. What the `ground` names needs no
    history."""
    chinese = is_chinese(text)
    language = "zh" if chinese else "en"
    # Of what the ground names, "which name" is no choice between names that were spoken of.
    pointing = [each for each in references(text) if ground is NOTHING or each.kind != "which"]
    own = content(text)
    before = spoken_of(history) - ground.words
    found: dict[str, float] = {}
    for reference in pointing:
        if reference.kind == "definite" and reference.head in ground.single:
            continue
        where = ":inside" if reference.inside else ""
        if reference.kind == "definite":
            where += ":known" if reference.head in before else ":new"
        found[f"{reference.kind}{where}"] = 1.0
    strong = [each for each in pointing if not each.inside and each.kind not in ("definite", "more")]
    found["points"] = float(bool(strong))
    known = [each for each in pointing if each.kind != "definite" or each.head in before]
    found["first points"] = float(bool(known) and not known[0].inside)
    last = spoken_of(history[-2:]) - ground.words if len(history) > 1 else before
    found["known"] = len(own & before) / len(own) if own else 0.5
    found["known last"] = len(own & last) / len(own) if own else 0.5
    found["all known"] = float(bool(own) and own <= before)
    found["none known"] = float(bool(own) and not own & before)
    found["brings"] = math.log1p(len(own - before))
    found["own"] = math.log1p(len(own))
    length = len(text) / 2.0 if chinese else float(sum(map(is_word, tokens(text))))
    found["length"] = math.log1p(length)
    found["long"] = float(length > 22)
    found["clauses"] = math.log1p(len(re.findall(r"[,;，；。.]", text)))
    found["names"] = math.log1p(sum(mention.proper for mention in mentions(text)))
    for name, value in (_opening_chinese(text) if chinese else _opening(text)).items():
        found[name] = value
    return {f"{language} {name}": value for name, value in found.items() if value} | {language: 1.0}


_DEFINES = re.compile(
    r"^(?:what(?:'s| is| are| does| do)|who (?:is|was|are|invented|wrote)|define|how do (?:you|i)|do|"
    r"does|can|why do|is it) ",
    re.I,
)


def _opening(text: str) -> dict[str, float]:
    words = [word.lower for word in tokens(text) if is_word(word)]
    first = words[0] if words else ""
    return {
        "starts and": float(first in CONJUNCTIONS),
        "starts wh": float(first in QUESTION_WORDS),
        "defines": float(bool(_DEFINES.match(text))),
        "self": float(any(word in SELVES or word.startswith("i'") for word in words)),
        "generic you": float("you" in words),
        "the": float("the" in words),
        "article": float("a" in words or "an" in words),
        "relational": float(_open_nouns(text)),
        "comparative": float(any(word.endswith("er") or word == "more" for word in words[1:])),
    }


def _open_nouns(text: str) -> bool:
    """Does a noun that is of something stand without it? "What are the benefits?", but not "the benefits of
    sleep"."""
    for phrase in mentions(text):
        last = (phrase.text.split() or [""])[-1].casefold()
        of = _COMPLEMENT.match(text[phrase.end :])
        if (
            last in RELATIONAL
            or last.removesuffix("s") in RELATIONAL
            or (last.endswith("ies") and last[:-3] + "y" in RELATIONAL)
        ) and not of:
            return True
    return False


_COMPLEMENT = re.compile(
    r"^\W*(?:of|in|for|between|to|from|about|behind|on|that|with|does|do|did|is|are|at)\b", re.IGNORECASE
)


# Such a noun at the beginning, or after a particle, with nothing before it that it could be of.
_OPEN_CHINESE = re.compile(r"(?:^|[，。、？！]|那|有|需要|是)" + RELATIONAL_CHINESE.pattern)


def _noun_of_noun(text: str) -> bool:
    """Does it say of what: 水的沸点?"""
    words = pieces(text)
    return any(
        words[at].text == "的" and words[at - 1].tag[0] in "nj" and words[at + 1].tag[0] in "nj"
        for at in range(1, len(words) - 1)
    )


def _opening_chinese(text: str) -> dict[str, float]:
    return {
        "self": float("我" in text),
        "relational": float(bool(_OPEN_CHINESE.search(text))),
        "noun of noun": float(_noun_of_noun(text)),
        "particle": float(bool(re.search(r"[啊呀嘛呢]", text))),
        "meaning": float(bool(re.search(r"是什么意思|什么叫|是谁|哪里人|是什么$", text))),
        "predicate": float(bool(re.search(r"怎么|如何|为什么|多少|吗|几|哪", text))),
    }


@cache
def _weights() -> Mapping[str, float]:
    stored = json.loads((Path(__file__).parent / "dependence.json").read_text(encoding="utf-8"))
    return {name: float(weight) for name, weight in stored["weights"].items()}


def likelihood(text: str, history: Turns, vectors: Vectors | None = None, ground: Ground = NOTHING) -> float:
    """How likely the message leans on its history, 0 to 1; 0 without one. By its words, and where these leave
    it open, by `vectors`. A message that is about what the `ground` names needs no history for it."""
    if not any(turn["content"].strip() for turn in history):
        return 0.0
    text = taken_out(text)
    if not ground.names(text, history):
        ground = NOTHING
    by_words = _likelihood(text, tuple((turn["role"], turn["content"]) for turn in history), ground)
    if vectors is None or points(text):
        return by_words
    return standalone.likelihood(text, history, by_words, vectors, ground)


# What is left out, or compared, is often in the message after all; what is pointed at never is.
_OPEN_KINDS = frozenset({"definite", "which", "more", "and", "short"})


def points(text: str) -> bool:
    """Does the message point out of itself: "it", "that one", 第二个?"""
    return any(not each.inside and each.kind not in _OPEN_KINDS for each in references(text))


# A conversation asks for its earlier messages again with each new one.
@lru_cache(maxsize=1024)
def _likelihood(text: str, said: tuple[tuple[Role, str], ...], ground: Ground) -> float:
    history: list[Turn] = [{"role": role, "content": content} for role, content in said]
    weights = _weights()
    score = sum(weights.get(name, 0.0) * value for name, value in features(text, history, ground).items())
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, score))))


LEANS = 0.5
"""At or above this likelihood a message counts as leaning on its history."""


def topic_start(history: Turns, vectors: Vectors | None = None, ground: Ground = NOTHING) -> int:
    """The user turn with which the topic of the last one began: back over those that lean on their history.
    0 for an empty history."""
    asked = [at for at, turn in enumerate(history) if turn["role"] == "user"]
    for at in reversed(asked):
        if likelihood(history[at]["content"], history[:at], vectors, ground) < LEANS:
            return at
    return 0
