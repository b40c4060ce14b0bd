"""When a sequence is recalled rather than kept whole."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from inference.kv.ledger import Ledger
from inference.kv.recallable import Recall

# A session that holds more of the memory than this is worth compressing while others ask for it.
SHARE = 1 / 3


@dataclass(frozen=True, slots=True)
class RecallPolicy:
    """Sequences from `min_tokens` tokens on (0: none), if they hold more than `share` of the memory that keys
    and values may take, or leave no room for another as large. `how` they are recalled, and by scope what is
    different there: any of min_tokens, budget, ratio."""

    min_tokens: int = 0
    how: Recall = field(default_factory=Recall)
    share: float = SHARE
    scopes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.min_tokens < 0 or not 0 <= self.share <= 1:
            raise ValueError(f"no sequence can be chosen so: {self}")
        for scope in self.scopes:
            self._of(scope)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """From `min_tokens`, `share`, `scopes` and Recall's own fields. Raises ValueError, TypeError."""
        own = {name: value for name, value in options.items() if name in ("min_tokens", "share", "scopes")}
        how = {name: value for name, value in options.items() if name not in own}
        return cls(how=Recall(**how), **own)

    def _of(self, scope: str) -> tuple[int, Recall]:
        changes: dict[str, Any] = dict(self.scopes.get(scope, {}))
        min_tokens = int(changes.pop("min_tokens", self.min_tokens))
        try:
            return min_tokens, replace(self.how, **changes)
        except TypeError as problem:
            raise ValueError(f"recall in scope {scope!r}: {problem}") from problem

    @property
    def on(self) -> bool:
        """Whether any sequence can be chosen."""
        return any(self._of(scope)[0] for scope in ("", *self.scopes))

    def chosen(self, scope: str, tokens: int, held: int, ledger: Ledger) -> Recall | None:
        """How a sequence of `tokens` that holds `held` bytes is recalled; None if it stays whole. One that
        its budget would take whole does."""
        min_tokens, how = self._of(scope)
        if not min_tokens or tokens < min_tokens or tokens <= how.budget:
            return None
        memory = ledger.total if ledger.limit is None else ledger.limit
        room = ledger.room
        wanted = held > self.share * memory or (room is not None and room < held)
        return how if wanted else None
