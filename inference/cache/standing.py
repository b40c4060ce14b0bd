"""What the verdicts on a pairing come to: how much each weighs, and what follows from their sum.

Only what somebody said, and what a comparison with a fresh answer came to, weighs a whole verdict. What
people only do next is a hint: they edit and ask again for many reasons, and stay for no reason at all.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal
from uuid import UUID

from django.conf import settings

from inference.calibration.bounds import wilson
from inference.models import Verdict


class Witness(StrEnum):
    """Who or what a verdict comes from."""

    OPERATOR = "operator"  # settles everything that was said before it
    NEAR = "near"  # the reader's own fresh answer, compared with the stored one that was not served
    GRAY = (
        "gray"  # a fresh answer that was asked for in the background, compared with the one that was served
    )
    USER = "user"  # a thumb
    CORRECTION = "correction"  # the next message takes back what was answered
    REGENERATE = "regenerate"  # another answer was asked for
    EDIT = "edit"  # the question was put differently at once
    REPEAT = "repeat"  # the same was asked in other words within two turns
    CONTINUED = "continued"  # the conversation went on, and nothing of the above happened
    UNDO = "undo"  # says nothing of a pairing: the message had been misread


# For and against. There is no other table of these; docs/architecture.md repeats it for readers.
WEIGHTS: Mapping[str, tuple[float, float]] = {
    Witness.OPERATOR: (1.0, 1.0),
    Witness.NEAR: (1.0, 1.0),
    Witness.GRAY: (1.0, 1.0),
    Witness.USER: (1.0, 1.0),
    Witness.CORRECTION: (0.0, 1.0),
    Witness.REGENERATE: (0.0, 0.5),
    Witness.EDIT: (0.0, 0.5),
    Witness.REPEAT: (0.0, 0.5),
    Witness.CONTINUED: (0.25, 0.0),
    Witness.UNDO: (0.0, 0.0),
}

COMPARED = frozenset({Witness.NEAR, Witness.GRAY})
"""Verdicts on a fresh answer."""
HINTS = frozenset({Witness.REGENERATE, Witness.EDIT, Witness.REPEAT, Witness.CONTINUED})
"""What people did and did not say. Too weak to be counted as right or wrong one by one."""
PEOPLE = HINTS | {Witness.USER, Witness.CORRECTION}
"""A person is heard once, however often they say it."""

# What a comparison that is left open weighs: three are a doubt, at which people look. They never refute.
UNCLEAR = 0.34


@dataclass(frozen=True)
class Given:
    """One verdict: its source, and the conversation that it was given in."""

    source: str
    verdict: str
    session: UUID | None

    @property
    def is_open(self) -> bool:
        """Was it compared, and left open?"""
        return self.source in COMPARED and self.verdict == Verdict.UNCLEAR

    @property
    def weight(self) -> tuple[float, float]:
        """For and against."""
        agree, disagree = WEIGHTS.get(self.source, (0.0, 0.0))
        if self.verdict == Verdict.AGREE:
            return agree, 0.0
        return (0.0, disagree) if self.verdict == Verdict.DISAGREE else (0.0, 0.0)


@dataclass(frozen=True)
class Tally:
    """Weights for and against, how many verdicts they are of, and the weight of those that are open."""

    agreeing: float = 0.0
    against: float = 0.0
    verdicts: int = 0
    unclear: float = 0.0


def tally(given: Iterable[Given]) -> Tally:
    """The sum. Of what one conversation says, the strongest counts, and what speaks against it first."""
    given = list(given)
    sums: list[tuple[float, float]] = []
    of_person: dict[UUID | None, list[tuple[float, float]]] = defaultdict(list)
    for one in given:
        if any(one.weight):
            (of_person[one.session] if one.source in PEOPLE else sums).append(one.weight)
    for weights in of_person.values():
        against = max(weight for _, weight in weights)
        sums.append((0.0, against) if against else (max(weight for weight, _ in weights), 0.0))
    unclear = UNCLEAR * sum(one.is_open for one in given)
    return Tally(sum(weight for weight, _ in sums), sum(weight for _, weight in sums), len(sums), unclear)


def bounds(agreeing: float, against: float) -> tuple[float, float]:
    """Between which shares of agreement the true one lies, each with 90% confidence."""
    return wilson(agreeing, agreeing + against, confidence=0.8)


Standing = Literal["proved", "open", "doubted", "refuted"]

# What weighs less is a hint, and takes nothing from anybody.
_A_DOUBT = 1.0


def standing(found: Tally, content_class: str) -> Standing:
    """What the verdicts make of something in this class: `proved` once the lower bound clears the target,
    `refuted` once the upper one lies below it, `doubted` as soon as one whole verdict speaks against it, or
    as much is left open, and the lower bound does not clear the target all the same; else `open`."""
    target, enough = target_of(content_class), found.verdicts >= settings.OBSERVATIONS_LEAST
    if enough and bounds(found.agreeing, found.against + found.unclear)[0] >= target:
        return "proved"
    if found.against + found.unclear < _A_DOUBT:
        return "open"
    _, upper = bounds(found.agreeing, found.against)
    return "refuted" if enough and found.against >= _A_DOUBT and upper < target else "doubted"


def target_of(content_class: str) -> float:
    """Which share of all verdicts on something in this class must agree, at least."""
    targets = settings.AGREEMENT_TARGETS
    return float(targets.get(content_class, targets.get("", _TARGET)))


# Three of three verdicts clear it, or eight of nine; none of two fails it, or one of four.
_TARGET = 0.6
