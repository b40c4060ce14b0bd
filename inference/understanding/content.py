"""The content of a question: its terms in order, and how they hang together: what is denied, done, turned
into what."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from . import opposites
from .fillers import FILLERS, LIGHT, MODALS, THIRD_PERSON
from .polarity import fails, negates, remainder
from .quantities import UNITS
from .tokens import Word, singular

# A verb in any form, up to five words, its particle.
_PHRASAL = {
    verb: re.compile(
        rf"\b{verb}(?:e?s|(?:{verb[-1]})?(?:ed|ing))?((?: [\w'.-]+){{0,5}}?) ({'|'.join(particles)})\b",
        re.IGNORECASE,
    )
    for verb, particles in opposites.phrasal_verbs().items()
}
_MOVERS_TO = frozenset(
    "to into onto -> → => >> ⇒ ➡ 到 至 成 为 往 向 换 转 去 当 给 传 寄 改 等于 相当于 访问 登录 连接".split()
)
# 改成, 传到, 导入, 转回: verbs that say where to.
_MOVER_VERB = re.compile("[\u4e00-\u9fff]{1,3}[成到为给回至往入进]")
_MOVERS_FROM = frozenset("from 从 由 自 把".split())
# 献血后多久能健身: what stands before 后 comes first, what stands before 前 last.
_AFTER = frozenset("后 之后 以后".split())
_BEFORE = frozenset("前 之前 以前".split())
_BREAK = re.compile(r"[,;.!?。，、;]+|:")
_BARE_SIGNS = frozenset("- -> → => >> # + ~ -- ... :".split())
# Light words of which the opposite is another matter.
_TELLING = frozenset("over under above below before after up down on off best".split())


class Content(NamedTuple):
    """`terms` are stems and Chinese words in their order; `light` what else is said, in alphabetical
    order; `verbs` those of them known to be verbs;
    `negations` the terms denied ("" for a negator without one); `actions` (pair, side); `directions`
    (from, to); `entities` (kind, term)."""

    terms: tuple[str, ...]
    light: tuple[str, ...]
    verbs: tuple[str, ...]
    negations: tuple[str, ...]
    actions: tuple[tuple[str, str], ...]
    directions: tuple[tuple[str, str], ...]
    entities: tuple[tuple[str, str], ...]


def join_phrases(folded: str) -> str:
    """Phrasal verbs as one word: "turn the light off" → "turn_off the light"."""
    lowered = folded.lower()
    for verb, pattern in _PHRASAL.items():
        if verb in lowered:
            # Group 2 is the particle, group 1 what stands before it.
            folded = pattern.sub(rf"{verb}_\2\1", folded)
    return folded


def _mover(word: Word) -> str:
    """Does the word say where something goes ("to"), where it comes from ("from") or what it replaces?"""
    if word.text in _MOVERS_TO or (word.tag[:1] == "v" and _MOVER_VERB.fullmatch(word.text)):
        return "to"
    if word.text in _MOVERS_FROM:
        return "from"
    return "instead" if word.text == "instead" else ""


def _term(word: Word, first: bool, in_chinese: bool) -> str:
    dimension = UNITS.get(word.text, ("",))[0]
    if dimension.startswith("money"):
        return dimension
    # A name keeps its ending: Windows are not windows.
    named = in_chinese or (word.capital and not first)
    return singular(word.text) if word.kind == "latin" and not named else word.text


def _is_content(word: Word, first: bool, in_chinese: bool) -> bool:
    if word.kind == "sign":
        return not _BREAK.fullmatch(word.text) and word.text not in _BARE_SIGNS
    if word.kind == "latin" and in_chinese:
        # Named, not said: am 和 is 怎么区别.
        return True
    if word.kind == "latin" and len(word.text) == 1 and word.capital and not first and word.text != "i":
        return True
    # Particles and interjections are a closed class, and tagged as such.
    return word.text not in FILLERS and not (
        word.kind == "han" and word.tag[:1] in "uye" and len(word.text) < 3
    )


def _entity(word: Word, first: bool, in_chinese: bool) -> str:
    """The kind of name that a word is, "" for none."""
    if word.kind == "code" or (word.kind == "latin" and any(sign.isdigit() for sign in word.text)):
        return "code"
    if word.tag in ("ns", "nsf"):
        return "place"
    if word.tag in ("nr", "nrt", "nrfg", "nt", "nz", "name"):
        return "name"
    return "name" if word.kind == "latin" and ((word.capital and not first) or in_chinese) else ""


def read_content(words: Sequence[Word], asks_how: bool = False) -> Content:
    """Sort a text's words (numbers, dates and form taken out) into what they say. Where the question
    `asks_how`, what fails (删不掉, 打不开) is what is wanted."""
    in_chinese = any(word.kind == "han" for word in words)
    terms: list[str] = []
    light: list[str] = []
    verbs: list[str] = []
    entities: list[tuple[str, str]] = []
    denied: dict[str, int] = {}
    directions: list[tuple[str, str]] = []
    source, pending, open_negations, first = "", "", 0, True
    before: list[str] = []
    order = (True, "")
    for at, word in enumerate(words):
        if negates(words, at):
            open_negations += not (asks_how and fails(word))
            rest = remainder(word)
            if not rest or rest in FILLERS:
                continue
            word = Word(rest, "han", "v")
        mover = _mover(word)
        if word.kind == "sign" and _BREAK.fullmatch(word.text):
            if open_negations:
                denied[""] = denied.get("", 0) + open_negations
            order = (True, "")
            source, pending, before, open_negations, first = "", "", [], 0, word.text[0] in ".!?。"
        if before and word.text in _AFTER | _BEFORE:
            order = (word.text in _AFTER, before[-1])
        if not _is_content(word, first, in_chinese):
            if word.text in LIGHT:
                light.append(THIRD_PERSON.get(word.text, word.text))
            pending = mover or pending
            first = first and word.kind == "sign"
            continue
        term = _term(word, first, in_chinese)
        if not mover:
            if pending == "to":
                # Without tags "to wear" can't be told from "to Rome": only what stands right before counts.
                near = before if in_chinese else before[-1:]
                directions.extend((origin, term) for origin in ([source] if source else near or [""]))
                source = ""
            elif pending == "instead":
                directions.extend((term, target) for target in before[-1:])
            elif pending == "from":
                source = term
                directions.append((term, ""))
            if order[1]:
                directions.append((order[1], term) if order[0] else (term, order[1]))
            before.append(term)
        pending = mover
        was_first, first = first, False
        if word.kind == "number":
            continue
        terms.append(term)
        if word.tag[:1] == "v":
            verbs.append(term)
        if kind := _entity(word, was_first, in_chinese):
            entities.append((kind, term))
        if open_negations:
            denied[term] = denied.get(term, 0) + open_negations
            open_negations = 0
    if open_negations:
        denied[""] = denied.get("", 0) + open_negations
    negations = tuple(term for term, times in denied.items() if times % 2)
    return Content(
        tuple(terms),
        tuple(sorted(MODALS.get(word, word) for word in light)),
        tuple(verbs),
        negations,
        _actions([*terms, *(word for word in light if word in _TELLING), *_superlatives(words)], negations),
        tuple(dict.fromkeys(pair for pair in directions if pair[0] != pair[1])),
        tuple(dict.fromkeys(entities)),
    )


def _superlatives(words: Sequence[Word]) -> list[str]:
    """最 and the word behind it, which the segmenter takes for one word only in part."""
    return [f"最{word.text}" for before, word in pairwise(words) if before.text == "最"]


def _actions(terms: Sequence[str], negations: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Which side of which pair of opposites the terms are on; what is denied is on neither."""
    found = (side for term in terms if term not in negations for side in opposites.sides(term))
    return tuple(dict.fromkeys(found))
