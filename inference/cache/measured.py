"""What the thresholds decide on: of the likest candidate of one lookup, all that they are compared with.

It is written down with every decision, so that what other thresholds would make of the same lookup can be
told later, without looking anything up again.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Protocol, Self
from uuid import UUID

from inference.models import Outcome


class Limits(Protocol):
    """The thresholds that are compared with; see `policy.Thresholds`."""

    @property
    def high(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def near(self) -> float: ...
    @property
    def consent(self) -> float: ...
    @property
    def likely(self) -> float: ...


class Step(StrEnum):
    """Where the rule of the two thresholds ends."""

    FAR = "far"
    OBJECTED = "objected"
    SAME = "same"
    BELOW = "below"
    DOUBTED = "doubted"
    UNCONVINCED = "unconvinced"
    IN_OTHER_WORDS = "in other words"
    LIKELY = "likely"


OUTCOMES = {
    Step.FAR: Outcome.MISS,
    Step.OBJECTED: Outcome.NEAR,
    Step.SAME: Outcome.HIT,
    Step.BELOW: Outcome.NEAR,
    Step.DOUBTED: Outcome.NEAR,
    Step.UNCONVINCED: Outcome.NEAR,
    Step.IN_OTHER_WORDS: Outcome.HIT,
    Step.LIKELY: Outcome.GRAY,
}

Ask = Callable[[], float | None]
"""What the verifier gives the pair, 0 to 1; None where there is no verifier."""


class NotAsked(Exception):
    """It takes what the verifier says to tell, and it was not asked."""


@dataclass(frozen=True)
class Measured:
    """Likenesses from 0 to 1: `score` is compared with `low`, `strict` (the same, as far from 1 as the
    language asks for) with `high`, `nearness` with `near`. `objected`: something forbids the pairing;
    `agrees`: the fingerprints do, part by part; `doubted`: not even a high score is enough, unless they
    agree. `otherwise`: it was served in another way, whatever these
    thresholds are. `provable` is the nearness of the nearest candidate, this or another, that a fresh answer
    might prove: without one nothing is near.

    Where the rule of the two thresholds served nothing, `evidence` is what all evidence came to, for the
    entry `likeliest`, and is compared with `likely`; None where nobody weighed it, as where it could not come
    to `complete`, what was asked for then."""

    wording: UUID
    entry: UUID
    content_class: str
    score: float
    strict: float
    nearness: float
    objected: bool = False
    agrees: bool = False
    doubted: bool = False
    verifier: float | None = None
    otherwise: bool = False
    provable: float = 0.0
    evidence: float | None = None
    likeliest: UUID | None = None
    complete: float = 0.0

    @property
    def candidate(self) -> UUID:
        """The entry that thresholds could have served."""
        return self.likeliest or self.entry

    def step(self, limits: Limits, ask: Ask) -> Step:
        """Cheap before dear: the verifier is asked last, and not for what agrees above `high`."""
        if self.nearness < limits.near:
            return Step.FAR
        if self.objected:
            return Step.OBJECTED
        if self.agrees and self.strict >= limits.high:
            return Step.SAME
        if self.score < limits.low:
            return Step.BELOW
        if not self.agrees and (self.doubted or self.strict < limits.high):
            return Step.DOUBTED
        said = ask()
        if said is not None and said < limits.consent:
            return Step.UNCONVINCED
        return Step.IN_OTHER_WORDS if self.strict >= limits.high else Step.LIKELY

    def outcome(self, limits: Limits) -> Outcome:
        """What would have come of the lookup under `limits`. Raises NotAsked where that hangs on a verifier
        that was not asked then."""
        found = OUTCOMES[self.step(limits, self._asked)]
        if found != Outcome.NEAR:
            return found
        if self.otherwise or (self.evidence is not None and self.evidence >= limits.likely):
            return Outcome.GRAY
        return Outcome.NEAR if self.provable >= limits.near else Outcome.MISS

    def _asked(self) -> float:
        if self.verifier is None:
            raise NotAsked
        return self.verifier

    def to_json(self) -> dict[str, Any]:
        values = asdict(self)
        return {
            # Not rounded: a score that equals a threshold is a hit.
            name: str(value) if isinstance(value, UUID) else value
            for name, value in values.items()
            if value is not None and value is not False
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The reverse of `to_json`."""
        ids = {name: UUID(data[name]) for name in ("wording", "entry", "likeliest") if name in data}
        return cls(**{**data, **ids})
