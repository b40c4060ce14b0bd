"""Pairs of questions for the verifier, balanced: same and different, each in near and in far wording.

Groups written by people have distant positives and close negatives only. A model that sees nothing else
learns that a small edit means another question, so the two missing corners are made here.
"""

import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from inference.evaluation.altering import alter, exchange_in_all
from inference.evaluation.jsonl import Row, read_rows
from inference.evaluation.question_words import DATA, LANGUAGES, words
from inference.evaluation.rewording import reword

# One in seven: 193 groups of 1,350.
HELD_OUT_EVERY = 7

_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Pair:
    first: str
    second: str
    same: bool
    lang: str
    kind: str


@dataclass(frozen=True)
class Group:
    """Wordings of one question, and what looks like it and is another. Two groups are unrelated."""

    lang: str
    same: list[str]
    different: list[str]


@dataclass(frozen=True)
class Corners:
    """A question with all four corners written by hand: the same in near and far wording, another in near and
    far."""

    lang: str
    text: str
    near: list[str]
    far: list[str]
    near_not: list[str]
    far_not: list[str]


@dataclass(frozen=True)
class Scheme:
    """Questions put together of parts: what is asked, with several frames each, and slots whose senses have
    several ways to say them. Slots in `swap` are of one kind, and exchanging them is another question (from A
    to B), except in the asks of `either_way`."""

    lang: str
    slots: dict[str, list[list[str]]]
    asks: dict[str, list[str]]
    swap: list[str] = field(default_factory=list)
    either_way: list[str] = field(default_factory=list)


Whole = TypeVar("Whole")


def learned(wholes: Sequence[Whole]) -> list[Whole]:
    """What is learned from. Whole groups are held out, spread over all domains."""
    return [whole for i, whole in enumerate(wholes) if i % HELD_OUT_EVERY]


def held_out(wholes: Sequence[Whole]) -> list[Whole]:
    return [whole for i, whole in enumerate(wholes) if not i % HELD_OUT_EVERY]


def read_groups(paths: Iterable[Path]) -> list[Group]:
    """Raises OSError, and BadCase for a line that is no group."""
    return [group for path in paths for group in read_rows(path, _group)]


def _group(row: Row) -> Group:
    """Near misses come bare or with why they differ; of a message in its conversation, what it means written
    out is one wording more."""
    resolved = [row["resolved"]] if "resolved" in row else []
    different = [other if isinstance(other, str) else other["text"] for other in row["different"]]
    return Group(row["lang"], resolved + row["same"], different)


def read_schemes() -> list[Scheme]:
    return _ours("schemes", Scheme)


def read_corners() -> list[Corners]:
    return _ours("corners", Corners)


def _ours(name: str, kind: "Callable[..., Part]") -> "list[Part]":
    return [
        part
        for lang in LANGUAGES
        for part in read_rows(DATA / f"{name}_{lang}.jsonl", partial(_part, kind, lang))
    ]


def _part(kind: "Callable[..., Part]", lang: str, row: Row) -> "Part":
    return kind(lang, **row)


Part = TypeVar("Part", Scheme, Corners)


# --- of groups ---------------------------------------------------------------------------------------------


def all_pairs(group: Group) -> list[Pair]:
    """As written: every two wordings, every wording with everything that differs."""
    same = [
        Pair(a, b, True, group.lang, "group") for i, a in enumerate(group.same) for b in group.same[i + 1 :]
    ]
    return same + [Pair(a, b, False, group.lang, "group") for a in group.same for b in group.different]


def _written(rng: random.Random, group: Group, same: bool) -> Pair:
    if same:
        texts: Sequence[str] = rng.sample(group.same, 2)
        if rng.random() < 0.3:
            texts = exchange_in_all(rng, texts, group.lang) or texts
    elif len(group.different) > 1 and rng.random() < 0.12:
        texts = rng.sample(group.different, 2)
    else:
        texts = [rng.choice(group.same), rng.choice(group.different)]
    # As often on one side as on the other, and of positives as of negatives: a greeting is no evidence.
    texts = [reword(rng, text, group.lang, 1) if rng.random() < 0.2 else text for text in texts]
    return Pair(texts[0], texts[1], same, group.lang, "group")


def near_copy(rng: random.Random, group: Group, same: bool) -> Pair:
    text = rng.choice([*group.same, *group.different])
    other = text if same else alter(rng, text, group.lang)
    if same and rng.random() < 0.35:
        # What makes another question of one stands in both: then it is no difference.
        text = other = alter(rng, text, group.lang)
    if same or rng.random() < 0.6:
        other = reword(rng, other, group.lang, rng.choice([1, 1, 2, 3]))
    if rng.random() < 0.2:
        text = reword(rng, text, group.lang, 1)
    return Pair(text, other, same, group.lang, "near copy")


def far_altered(rng: random.Random, group: Group, same: bool) -> Pair:
    one, other = rng.sample(group.same, 2)
    if not same:
        other = alter(rng, other, group.lang)
    return Pair(one, reword(rng, other, group.lang, rng.choice([1, 2])), same, group.lang, "far, altered")


# --- of schemes --------------------------------------------------------------------------------------------

Senses = dict[str, int]


def _said(
    rng: random.Random,
    scheme: Scheme,
    ask: str,
    senses: Senses,
    frame: str | None = None,
    turned: bool = False,
) -> str:
    frame = frame or rng.choice(scheme.asks[ask])
    if turned:
        a, b = (f"{{{slot}}}" for slot in scheme.swap)
        frame = frame.replace(a, "\0").replace(b, a).replace("\0", b)
    text = _SLOT.sub(lambda m: rng.choice(scheme.slots[m[1]][senses[m[1]]]), frame)
    return text[:1].upper() + text[1:] if scheme.lang == "en" and rng.random() < 0.8 else text


def composed(rng: random.Random, scheme: Scheme, same: bool) -> Pair:
    """Near or far by chance: in the same frame or in another."""
    ask = rng.choice(list(scheme.asks))
    senses = {slot: rng.randrange(len(ways)) for slot, ways in scheme.slots.items()}
    frame = rng.choice(scheme.asks[ask])
    first = _said(rng, scheme, ask, senses, frame)
    if same:
        others = [other for other in scheme.asks[ask] if other != frame]
        second = _said(rng, scheme, ask, senses, rng.choice(others) if rng.random() < 0.75 else frame)
        if second == first:
            second = reword(rng, second, scheme.lang, 2)
    elif scheme.swap and ask not in scheme.either_way and rng.random() < 0.35:
        second = _said(rng, scheme, ask, senses, frame if rng.random() < 0.45 else None, turned=True)
    else:
        ask, senses = _another(rng, scheme, ask, senses, set(_SLOT.findall(frame)))
        kept = frame if frame in scheme.asks[ask] and rng.random() < 0.45 else None
        second = _said(rng, scheme, ask, senses, kept)
    if rng.random() < 0.2:
        second = reword(rng, second, scheme.lang, 1)
    return Pair(first, second, same, scheme.lang, "composed")


def _another(
    rng: random.Random, scheme: Scheme, ask: str, senses: Senses, used: set[str]
) -> tuple[str, Senses]:
    if rng.random() < 0.4:
        return rng.choice([other for other in scheme.asks if other != ask]), senses
    slot = rng.choice(sorted(used))
    changed = rng.choice([i for i in range(len(scheme.slots[slot])) if i != senses[slot]])
    return ask, senses | {slot: changed}


# --- all together ------------------------------------------------------------------------------------------


def four_corners(corners: Corners) -> list[Pair]:
    """As written: the question with each text of its corners."""
    rows = ((corners.near, True), (corners.far, True), (corners.near_not, False), (corners.far_not, False))
    return [
        Pair(corners.text, other, same, corners.lang, "corners") for others, same in rows for other in others
    ]


def cornered(rng: random.Random, corners: Corners, same: bool) -> Pair:
    near, far = (corners.near, corners.far) if same else (corners.near_not, corners.far_not)
    first = rng.choice([corners.text, corners.text, *corners.near, *corners.far])
    second = rng.choice(near if rng.random() < 0.5 else far)
    if first == second:
        first = corners.text
    if rng.random() < 0.25:
        second = reword(rng, second, corners.lang, 1)
    return Pair(first, second, same, corners.lang, "corners")


def strangers(rng: random.Random, group: Group, other: Group) -> Pair:
    """Of two groups that are about similar things."""
    first, second = rng.choice(group.same), rng.choice([*other.same, *other.different])
    return Pair(first, second, False, group.lang, "strangers")


@dataclass
class Mixture:
    """What pairs are drawn from. `neighbours[i]` are the groups whose questions look most like group i's."""

    groups: list[Group]
    neighbours: list[list[int]]
    schemes: list[Scheme]
    corners: list[Corners]

    def draw(self, rng: random.Random) -> Pair:
        """One pair: as often the same as not, either language alike, its sides in either order."""
        lang, same = rng.choice(LANGUAGES), rng.random() < 0.5
        pair = rng.choices([make for make, _ in self._makers], [weight for _, weight in self._makers])[0](
            rng, lang, same
        )
        if rng.random() < 0.06:
            pair = _with_same_rider(rng, pair)
        return pair if rng.random() < 0.5 else Pair(pair.second, pair.first, pair.same, pair.lang, pair.kind)

    @property
    def _makers(self) -> list[tuple[Callable[[random.Random, str, bool], Pair], float]]:
        return [
            (lambda rng, lang, same: _written(rng, self._group(rng, lang)[1], same), 0.46),
            (lambda rng, lang, same: near_copy(rng, self._group(rng, lang)[1], same), 0.18),
            (lambda rng, lang, same: far_altered(rng, self._group(rng, lang)[1], same), 0.08),
            (lambda rng, lang, same: composed(rng, _of(rng, self.schemes, lang), same), 0.14),
            (lambda rng, lang, same: cornered(rng, _of(rng, self.corners, lang), same), 0.09),
            (self._strangers, 0.05),
        ]

    def _strangers(self, rng: random.Random, lang: str, same: bool) -> Pair:
        number, group = self._group(rng, lang)
        return (
            _written(rng, group, True)
            if same
            else strangers(rng, group, self.groups[rng.choice(self.neighbours[number])])
        )

    def _group(self, rng: random.Random, lang: str) -> tuple[int, Group]:
        while True:
            number = rng.randrange(len(self.groups))
            if self.groups[number].lang == lang:
                return number, self.groups[number]


def _of(rng: random.Random, all_of: list[Part], lang: str) -> Part:
    return rng.choice([one for one in all_of if one.lang == lang])


def _with_same_rider(rng: random.Random, pair: Pair) -> Pair:
    """Both sides with the same condition or form added: what both say makes no difference."""
    rider = rng.choice(words(pair.lang).same_riders)
    return Pair(_bare(pair.first) + rider, _bare(pair.second) + rider, pair.same, pair.lang, pair.kind)


def _bare(text: str) -> str:
    return text.rstrip("?？。. ")
