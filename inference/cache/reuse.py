"""How much of a stored answer is used again, by the class of its content."""

from dataclasses import replace
from enum import StrEnum

from django.conf import settings

from inference.models import Outcome, Reuse
from inference.understanding.cacheability import Cacheability, classify
from inference.understanding.turns import Turns

from .decision import Decided

# REUSE_GRADES changes single ones. A class that isn't here is answered with the stored answer as it is, if
# its answers are stored at all.
GRADES = {
    "fact": Reuse.ANSWER,
    "personal": Reuse.ANSWER,
    "live": Reuse.PREFIX,
    "creative": Reuse.PREFIX,
}


def grade(content_class: str) -> Reuse:
    """Raises ValueError where REUSE_GRADES names no grade."""
    return Reuse(settings.REUSE_GRADES.get(content_class, GRADES.get(content_class, Reuse.ANSWER)))


def judge(turns: Turns) -> Cacheability:
    """What may be done with an answer to the last of `turns`, by its content and the grade of its class."""
    judged = classify(turns)
    if not judged.stored or grade(judged.content_class) != Reuse.PREFIX:
        return judged
    reason = f"of a {judged.content_class} answer only keys and values are used again"
    return replace(judged, stored=False, shareable=False, ttl=None, life=None, reason=reason)


# --- what is not proved yet -----------------------------------------------------------------------------


class Suspects(StrEnum):
    """What becomes of a hit while its pairing or its entry is suspect, unless it is in doubt: then it is not
    found at all."""

    SERVE = "serve"  # given as it is, and checked in the background
    WITHHOLD = "withhold"  # answered anew; the fresh answer proves it, or not
    REWRITE = "rewrite"  # the model answers from it, in words that fit the question


def suspects(content_class: str) -> Suspects:
    """Raises ValueError where SUSPECTS names no such way."""
    return Suspects(settings.SUSPECTS.get(content_class, settings.SUSPECTS.get("", Suspects.SERVE)))


def _suspect_as(decided: Decided, way: Suspects) -> bool:
    """Would something suspect be served, in a class that treats it in this way?"""
    found = decided.served
    if found is None or (found.proved and decided.outcome != Outcome.GRAY):
        return False
    return suspects(found.content_class) == way


def withheld(decided: Decided) -> Decided:
    """The same, or where it is suspect and its class withholds such, a near of it."""
    if decided.found is None or not _suspect_as(decided, Suspects.WITHHOLD):
        return decided
    reason = f"{decided.reason}; not proved yet, and withheld as its class has it"
    return replace(decided, outcome=Outcome.NEAR, reason=reason, near=(decided.found,))


def is_rewritten(decided: Decided) -> bool:
    """Is it suspect, and of a class in which the model answers from such?"""
    return _suspect_as(decided, Suspects.REWRITE)
