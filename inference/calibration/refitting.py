"""From labelled lookups to policies: for every scope and class that there is enough of, and for all together.

What serves less than before may be put in force at once. What serves more is a proposal until somebody
agrees.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from inference.cache.policy import Standing, Thresholds, standing
from inference.models import Scope

from .bounds import needed
from .fitting import Fit, Goal, Kind, fit
from .pairs import Labelled, histogram, known_from, pairs

# A fit to nearly the same pairs that comes to the same thresholds says nothing new.
_MORE_PAIRS = 1.1


@dataclass(frozen=True)
class Proposal:
    """What a fit makes of the thresholds of one scope (None: all) and class ("": all). `fitted` is what it
    comes to; `safe` serves nothing that isn't served now."""

    scope: Scope | None
    content_class: str
    before: Standing
    fit: Fit
    data: dict[str, Any]

    @property
    def fitted(self) -> Thresholds:
        found, live = self.fit.thresholds, self.before.live
        return replace(
            live,
            high=found["high"],
            low=found["low"],
            near=min(live.near, found["low"]),
            likely=found["likely"],
        )

    @property
    def safe(self) -> Thresholds:
        live, fitted = self.before.live, self.fitted
        return replace(
            live,
            high=max(live.high, fitted.high),
            low=max(live.low, fitted.low),
            likely=max(live.likely, fitted.likely),
        )

    @property
    def lowers(self) -> bool:
        return self.fitted.lowers(self.before.live)

    @property
    def changes(self) -> bool:
        return not self.fitted.same_as(self.before.live)

    @property
    def certified(self) -> bool:
        """Can anything be said of how many hits are wrong?"""
        return any(one.certified is not None or one.refuted for one in self.fit.kinds.values())

    def to_json(self) -> dict[str, Any]:
        """For the policy's row."""
        return {**self.fit.to_json(), "data": self.data}


def proposals(
    labelled: Sequence[Labelled],
    source: str,
    goal: Goal,
    *,
    scope: Scope | None = None,
    content_class: str | None = None,
    own_scopes: bool = True,
) -> list[Proposal]:
    """One for each group with enough pairs for a bound: all lookups, each class, and (with `own_scopes`) each
    scope's. With `scope` or `content_class` only that one, however few there are."""
    if scope is not None or content_class is not None:
        return [_proposal(labelled, source, goal, scope, content_class or "")]
    least = needed(0, goal.target, goal.level)
    found = []
    for whose, of, group in _groups(labelled, own_scopes):
        proposal = _proposal(group, source, goal, whose, of)
        if max(fitted.n for fitted in proposal.fit.kinds.values()) >= least or not (of or whose):
            found.append(proposal)
    return found


def _groups(
    labelled: Sequence[Labelled], own_scopes: bool
) -> Iterator[tuple[Scope | None, str, list[Labelled]]]:
    yield None, "", list(labelled)
    for of in sorted({one.measured.content_class for one in labelled}):
        yield None, of, [one for one in labelled if one.measured.content_class == of]
    if own_scopes:
        known = Scope.objects.in_bulk({one.scope for one in labelled if one.scope is not None})
        for pk, of in sorted(
            {(one.scope, one.measured.content_class) for one in labelled if one.scope in known}
        ):
            group = [one for one in labelled if (one.scope, one.measured.content_class) == (pk, of)]
            yield known[pk], of, group


def _proposal(
    labelled: Sequence[Labelled], source: str, goal: Goal, scope: Scope | None, content_class: str
) -> Proposal:
    before = standing(scope, content_class)
    live = before.live
    present: dict[Kind, float] = {"high": live.high, "low": live.low, "likely": live.likely}
    fitted = fit(pairs(labelled, live), present, goal, known_from(labelled))
    return Proposal(scope, content_class, before, fitted, _data(labelled, source))


def _data(labelled: Sequence[Labelled], source: str) -> dict[str, Any]:
    return {
        "source": source,
        "lookups": len(labelled),
        "right": sum(one.right for one in labelled),
        "wrong": sum(not one.right for one in labelled),
        "by_class": dict(Counter(one.measured.content_class for one in labelled)),
        "scores": histogram(labelled).to_json(),
    }


def says_something_new(proposal: Proposal, last: dict[str, Any] | None) -> bool:
    """Is it worth a version of its own, after the fit `last`? Only what can say something about the bound is;
    and the same thresholds once more only if much was observed since."""
    if not proposal.certified:
        return False
    if last is None:
        return True
    if last.get("digest") == proposal.fit.digest:
        return False
    return proposal.changes or proposal.fit.pairs >= _MORE_PAIRS * int(last.get("pairs", 0))
