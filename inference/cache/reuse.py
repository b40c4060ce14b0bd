"""How much of a stored answer is used again, by the class of its content."""

from dataclasses import replace

from django.conf import settings

from inference.models import Reuse
from inference.understanding.cacheability import Cacheability, classify
from inference.understanding.turns import Turns

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
