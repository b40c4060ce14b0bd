"""What a question asks for, in parts that can be compared one by one.

Two questions can read almost alike and mean opposite things, or share no word and mean the same. A
fingerprint says what must be equal whatever the wording; `compare` says whether two of them differ for
certain, agree on everything, or leave it open.
"""

import re
from collections.abc import Iterable

from .asking import plainly
from .comparison import compare
from .content import join_phrases, read_content
from .dates import take_dates
from .folding import fold
from .form import take_form
from .intent import read_intents, read_mood
from .language import language
from .normalise import normalise
from .parts import Comparison, Fingerprint, Reason
from .polarity import set_aside
from .quantities import count, write_out_halves
from .tokens import read_words

__all__ = ["VERSION", "Comparison", "Fingerprint", "Reason", "compare", "confusable", "fingerprint"]

# Part of the scope: fingerprints of another version are never compared with these.
VERSION = "1"

_MARKS = re.compile(r"[\s,.;:!?\"'，。！？、；：()\[\]{}-]+")
_QUOTED = re.compile(r'"([^"]{1,60})"|《([^》]{1,40})》|`([^`]{1,80})`')


def fingerprint(text: str) -> Fingerprint:
    """Read one self-contained question. Never raises; an empty text has an empty fingerprint."""
    folded = plainly(fold(text))
    form, left = take_form(folded)
    dates, left = take_dates(left)
    counted = count(read_words(join_phrases(set_aside(write_out_halves(left)))))
    lowered = folded.lower()
    intents = read_intents(lowered)
    content = read_content(counted.rest, asks_how=bool({"howto", "fix"} & set(intents)))
    return Fingerprint(
        text=_MARKS.sub("", lowered),
        language=language(text),
        mood=read_mood(lowered),
        intents=intents,
        terms=content.terms,
        light=content.light,
        verbs=content.verbs,
        actions=content.actions,
        directions=content.directions,
        entities=content.entities
        + tuple(("quoted", "".join(inner).lower()) for inner in _QUOTED.findall(folded)),
        quantities=counted.quantities,
        versions=counted.versions,
        dates=dates,
        negations=content.negations,
        form=form,
    )


def confusable(a_text: str, b_text: str, pairs: Iterable[tuple[str, str]]) -> Reason | None:
    """The reason not to serve one question's answer to the other where one names the first of a confusable
    pair and the other the second; None where no pair applies. Pairs count in both directions."""
    pairs = list(pairs)
    if not pairs:
        return None
    a, b = normalise(fold(a_text)), normalise(fold(b_text))
    for pair in pairs:
        names = tuple(name for name in (normalise(fold(name)) for name in pair) if name)
        if len(set(names)) == 2:
            in_a, in_b = _named(a, names), _named(b, names)
            if in_a and in_b and not in_a & in_b:
                return Reason("confusable", " / ".join(pair))
    return None


def _named(text: str, names: tuple[str, ...]) -> set[str]:
    """Which names the text uses. The longer one is looked for first: JavaScript does not name Java."""
    longest_first = sorted(names, key=len, reverse=True)
    pattern = "|".join(
        rf"(?<![a-z0-9]){re.escape(n)}(?![a-z0-9])" if n.isascii() else re.escape(n) for n in longest_first
    )
    return set(re.findall(pattern, text))
