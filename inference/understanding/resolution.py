"""A message written out: what it leans on put in where it leans.

By rules over the phrases of the history; `read_context` takes another way of writing it (a strong engine)
as an argument.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from .antecedents import Candidate, Scene, candidates, key_words, ranked
from .exchange import exchanged, exchanged_parts
from .mentions import mentions
from .references import Reference, references
from .script import is_chinese
from .turns import Turns

# Writes a message out, given its history; None where it can't.
Resolver = Callable[[str, Turns], str | None]

_POINTING = ("person", "plural", "thing", "this", "noun", "definite", "place", "ordinal", "former", "latter")


@dataclass(frozen=True)
class Resolved:
    """`text` with what it leans on, and the turns that this came from, most important first."""

    text: str
    turns: tuple[int, ...] = ()


def lead(text: str) -> Reference:
    """The reference that decides how a message is written out: what it points with, before what it leaves
    out."""
    pointing = [each for each in references(text) if not each.inside]
    for kinds in (("which",), _POINTING, ("and",), ("more",)):
        found = next((each for each in pointing if each.kind in kinds), None)
        if found is not None:
            return found
    return Reference("short", 0, 0)


def resolve(text: str, history: Turns) -> Resolved:
    """Write out a message that leans on its history."""
    pool = [each for each in candidates(history) if each.text.strip()]
    if not pool:
        return Resolved(text)
    reference = lead(text)
    if reference.kind == "which":
        return _compared(text, history)
    if reference.kind == "and":
        return _exchanged(text, history)
    scene = Scene.of(text, history)
    best = ranked(reference, scene, pool)[0][1]
    return Resolved(write(text, reference, best), (best.last,))


def write(text: str, reference: Reference, meant: Candidate) -> str:
    """The message with what its reference means written in."""
    if reference.kind in _POINTING:
        return _put_in(text, reference, meant)
    return _appended(text, meant.text)


# "that thing", "that stuff" say nothing that the phrase itself doesn't.
_EMPTY_NOUNS = frozenset("thing stuff on kind sort part bit plac guy person on".split())


def _put_in(text: str, reference: Reference, best: Candidate) -> str:
    start, end = reference.start, reference.end
    phrase = best.text
    if is_chinese(text):
        while reference.head and end < len(text) and text[end] in phrase and end - reference.end < 4:
            end += 1
    elif reference.head and reference.head not in key_words(phrase) and reference.head not in _EMPTY_NOUNS:
        noun = re.sub(r"^(?:this|that|these|those|the)\s+", "", text[start:end], flags=re.I)
        phrase = f"the {noun} {phrase}"
    if reference.possessive and not is_chinese(text):
        phrase += "'" if phrase.endswith("s") else "'s"
    return text[:start] + phrase + text[end:]


def _appended(text: str, phrase: str) -> str:
    if is_chinese(text):
        return phrase + text
    bare = text.rstrip()
    mark = re.search(r"[?.!]+$", bare)
    return f"{bare[: mark.start()]} ({phrase}){mark.group()}" if mark else f"{bare} ({phrase})"


def _compared(text: str, history: Turns) -> Resolved:
    """ "which one is lighter": said of what."""
    options, turns = _options(history)
    if not options:
        return Resolved(text)
    if is_chinese(text):
        return Resolved(options + text, turns)
    bare = re.sub(r"[\s?.!]+$", "", text)
    return Resolved(f"{bare}, {options}?", turns)


# Between two things that stand for a choice.
_CHOICE = re.compile(
    r"^\W*(?:(?:or|vs\.?|versus|and|than|with|from|to)\b|,|/|和|跟|与|还是|或者?|、)\W*(?:[\w'’]+ ){0,4}$|"
    r"^[上下里中的]?(?:和|跟|与|还是|或者?|、)\S{0,2}$",
    re.IGNORECASE,
)


def _options(history: Turns) -> tuple[str, tuple[int, ...]]:
    """What a choice is between, as it was written, and the turns that say so: the last pair that the person
    named, or the two things that they asked about in turn, or the last pair in an answer."""
    asked = [at for at, turn in enumerate(history) if turn["role"] == "user"]
    if asked and lead(history[asked[-1]]["content"]).kind == "and" and len(asked) > 1:
        named = exchanged_parts(history[asked[-2]]["content"], history[asked[-1]]["content"])
        joint = "和" if is_chinese(history[asked[-1]]["content"]) else " or "
        return joint.join(named), (asked[-2], asked[-1])
    for at in sorted(range(len(history)), key=lambda at: (history[at]["role"] != "user", -at)):
        said = history[at]["content"][:600]
        pair = _pair(said)
        if pair:
            return pair, (at,)
    subjects = [(at, mentions(history[at]["content"])) for at in asked]
    first = [(at, found[0].text) for at, found in subjects if found][-2:]
    return " / ".join(name for _, name in first), tuple(at for at, _ in first)


def _pair(said: str) -> str:
    """The span of the last two or more phrases that stand for a choice; "" if there are none."""
    phrases = mentions(said)
    for at in range(len(phrases) - 1, 0, -1):
        first, second = phrases[at - 1], phrases[at]
        if first.end <= second.start and _CHOICE.match(said[first.end : second.start]):
            while (
                at > 1
                and phrases[at - 2].end <= first.start
                and re.fullmatch(r"\s*[,、]\s*", said[phrases[at - 2].end : first.start])
            ):
                at, first = at - 1, phrases[at - 2]
            return said[first.start : second.end]
    return ""


def _exchanged(text: str, history: Turns, depth: int = 3) -> Resolved:
    """ "and Berlin?": the question before it, itself written out if it was such a fragment, asked about
    something else."""
    at = max((at for at, turn in enumerate(history) if turn["role"] == "user"), default=None)
    if at is None:
        return Resolved(text)
    base = history[at]["content"]
    if depth and at and lead(base).kind == "and":
        base = _exchanged(base, history[:at], depth - 1).text
    return Resolved(exchanged(base, text), (at,))
