"""What the text names that every question of a scope is asked with: the lighthouse, where it says which one.

Whoever asks after "the lighthouse" there needs no history for it, and it is no sign of one: all who can be
given the answer have read the same text. Only what that text has one of counts: "the battery" of two phones
is whichever was spoken of.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from .mentions import Mention, mentions
from .references import Reference, references
from .script import is_chinese
from .turns import Turns
from .words import content, stem

# Longer texts are read as far as this: 100 pages.
_CHARS = 200_000


@dataclass(frozen=True)
class Ground:
    """`words`: all that the text is about, as `content` has it. `single`: the heads of phrases that it uses
    of one thing only."""

    words: frozenset[str] = frozenset()
    single: frozenset[str] = frozenset()

    def names(self, text: str, history: Turns) -> bool:
        """Is what the message is about named here, and nothing of that name was brought up that is not?"""
        own = frozenset(_stems(text))
        mine = own & self.single
        definite = [text[each.start : each.end] for each in references(text) if _is_open(each)]
        if not mine or 2 * len(own & self.words) < len(own):
            return False
        if not all(mine & frozenset(_stems(phrase)) for phrase in definite):
            return False
        asked = [turn["content"] for turn in history if turn["role"] == "user"]
        return all(
            of <= self.words
            for said in (text, *asked)
            for head, of in _owned(said, mentions(said))
            if head in mine
        )


def _is_open(reference: Reference) -> bool:
    return reference.kind == "definite" and not reference.inside


NOTHING = Ground()


@lru_cache(maxsize=8)
def ground(text: str) -> Ground:
    """What this text names. Nothing is named by none."""
    paragraphs = [part for part in re.split(r"\n\s*\n", text[:_CHARS]) if part.strip()]
    owners: dict[str, list[frozenset[str]]] = defaultdict(list)
    subjects: dict[str, set[str]] = defaultdict(set)
    pointed_at = set[str]()
    for paragraph in paragraphs:
        found = mentions(paragraph)
        subject = found[0].text if found and found[0].proper else ""
        for each, (head, of) in zip(found, _owned(paragraph, found), strict=True):
            # "Answer in one short sentence" speaks of no sentence that is there.
            if each.definite or each.proper or (is_chinese(each.text) and head in owners):
                pointed_at.add(head)
            owners[head].append(of)
            subjects[head].add(subject)
    words = frozenset().union(*(content(part) for part in paragraphs)) if paragraphs else frozenset()
    single = {head for head in pointed_at - {""} if _one(owners[head]) and len(subjects[head] - {""}) < 2}
    return Ground(words, frozenset(single))


def _one(owners: list[frozenset[str]]) -> bool:
    """Are these all of the same, as far as they say of what?"""
    said = [of for of in owners if of]
    return not said or bool(frozenset.intersection(*said))


def _owned(text: str, found: tuple[Mention, ...]) -> Iterator[tuple[str, frozenset[str]]]:
    """The head of each phrase, and the words that say which one or of what it is."""
    for each in found:
        head, of = _parts(each)
        after = _OF.match(text[each.end :])
        yield head, of | (content(after.group(1)) if after else frozenset())


_OF = re.compile(r"^\s+(?:of|for)\s+(?:the\s+|an?\s+)?([\w-]+(?:\s[A-Z][\w-]*)*)")


def _parts(mention: Mention) -> tuple[str, frozenset[str]]:
    """ "name of the reef" → its head and what it is of; "ferry ticket" → ticket, of a ferry."""
    if is_chinese(mention.text):
        before, _, last = mention.text.rpartition("的")
        return last[-2:], content(before) | content(last[:-2])
    thing, _, of = mention.text.partition(" of ")
    words = thing.split()
    if not words:
        return "", frozenset()
    return stem(words[-1].casefold()), content(" ".join(words[:-1])) | content(of)


def _stems(text: str) -> Iterator[str]:
    """By which the things that a text speaks of may be known: every word of its phrases, or in Chinese, where
    they are not told apart as well, any two characters of them."""
    for each in mentions(text):
        if is_chinese(each.text):
            yield from (each.text[at : at + 2] for at in range(len(each.text) - 1))
        else:
            yield from (stem(word.casefold()) for word in each.text.split())
