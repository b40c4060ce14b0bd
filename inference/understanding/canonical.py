"""When the wording that an entry was born with may stand for another wording of the same question."""

import re
from collections import Counter
from collections.abc import Iterable

from .fingerprint import Fingerprint, compare, fingerprint
from .normalise import normalise

# What opens a condition, a restriction or a purpose; it reaches to the end of its clause.
_OPENS = re.compile(
    r"\b(?:if|unless|when|whenever|while|without|with|except|excluding|apart from|besides|only|for|before"
    r"|after|until|during|instead of|rather than|as an?|under|over|within|given|assuming|provided|in case"
    r"|but not|whose|using|according to)\b"
    # A relative clause, not the "which" of "in which year".
    r"|(?<!\bin)(?<!\bof)(?<!\bat)(?<!\bon)(?<!\bby)(?<!\bto)(?<!\bfor)(?<!\bfrom) (?:that|which|who)\b"
    r"|如果|要是|假如|倘若|除了|除非|除去|没有|不带|不用|只|仅|对于|针对|作为|根据|按照|使用|用于|当(?=.*时)|在(?=.*[下后前时])",
    re.IGNORECASE,
)
_CLAUSE_ENDS = re.compile(r"[,;.!?。，；！？\n]|的话")


def adds_nothing(question: str, canonical: str) -> bool:
    """Does `question` say nothing of its own: no entity, quantity, negation or condition that `canonical`
    doesn't have, and nothing that contradicts it? Then the model loses nothing when it reads `canonical` in
    its place. Doubt counts as saying something."""
    if normalise(question) == normalise(canonical):
        return True
    asked, known = fingerprint(question), fingerprint(canonical)
    if asked.language != known.language or compare(asked, known).verdict == "conflict":
        return False
    return not _typed(asked) - _typed(known) and _own_words(question, asked) <= set(known.terms)


def _typed(one: Fingerprint) -> Counter[tuple[str, object]]:
    """What must be the same whatever the wording, as often as it occurs."""
    parts: dict[str, Iterable[object]] = {
        "quantity": one.quantities,
        "version": one.versions,
        "date": one.dates,
        "negation": one.negations,
        "form": one.form,
        "direction": one.directions,
    }
    return Counter((part, value) for part, values in parts.items() for value in values)


def _own_words(question: str, asked: Fingerprint) -> set[str]:
    """The terms that `question` may not have to itself: its names, and the words of its conditions."""
    words = {term for _, term in asked.entities}
    for opened in _OPENS.finditer(question):
        if opened.start() > 0:  # "When does it open?" asks and sets no condition
            clause = _CLAUSE_ENDS.split(question[opened.end() :], maxsplit=1)[0]
            words |= set(fingerprint(clause).terms)
    return words
