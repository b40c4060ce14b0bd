"""Whether two questions that were asked at the same moment of a conversation ask the same.

All that was said before them is the same, so whatever they lean on is, too: what is left to compare is what
was asked. A conversation has many next questions, and all of them are about its subject; so it is likeness of
the bare questions that counts most, and little that of what they are written out to.

One logistic for each language (`followup.json`), fitted by `inference.evaluation.fit_followup` to wordings of
one question against the next question of the same conversation.
"""

from dataclasses import dataclass
from pathlib import Path

from inference.embedding import embed
from inference.understanding.comparison import overlap_of
from inference.understanding.language import language

from . import logistic
from .logistic import Features
from .lookup import Candidate
from .prints import Prints
from .probe import Probe

WEIGHTS = Path(__file__).with_name("followup.json")
# So many of the likest are weighed against each other.
CONSIDERED = 4


def weigh(probe: Probe, candidate: Candidate) -> float:
    """How likely they ask the same, 0 to 1; 0 while there is no embedder, and in a language that nothing was
    fitted for."""
    weights = logistic.read(WEIGHTS).get(language(probe.question))
    resolved = candidate.resolved or candidate.question
    known = features(probe, Stored(candidate.question, resolved, candidate.prints))
    if weights is None or known is None:
        return 0.0
    return logistic.chance(weights, known)


@dataclass(frozen=True)
class Stored:
    """What is known of a stored question."""

    question: str
    resolved: str
    prints: Prints


def features(asked: Probe | Stored, stored: Probe | Stored) -> Features | None:
    """What speaks for the two asking the same; None while there is no embedder. What the verifier says adds
    nothing (as many right at as many wrong), so it is not asked."""
    texts = (asked.question, stored.question, asked.resolved, stored.resolved)
    vectors = embed([text.casefold() for text in texts])
    if vectors is None:
        return None
    a, b = asked.prints.words, stored.prints.words
    return {
        "words": float(vectors[0] @ vectors[1]),
        "written_out": float(vectors[2] @ vectors[3]),
        "share": overlap_of(a, b).share,
        "same_intent": float(bool(set(a.intents) & set(b.intents))),
    }
