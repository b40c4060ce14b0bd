"""How many bytes the prefix store may hold: more while reuse pays, less while it doesn't."""

from dataclasses import dataclass, field

# A change follows two windows in a row on the same side, so a burst of new conversations moves nothing.
WINDOW = 64
WINDOWS_IN_A_ROW = 2
SHRINK_BELOW = 0.30
GROW_ABOVE = 0.60
STEP = 1.25


@dataclass(slots=True)
class Budget:
    """`limit` bytes, moved between `floor` and `ceiling` by the share of prompt tokens that were found.
    Raises ValueError unless floor ≤ limit ≤ ceiling. Not thread-safe: the store calls it under its lock."""

    limit: int
    floor: int
    ceiling: int
    _asked: int = field(default=0, init=False)
    _found: int = field(default=0, init=False)
    _count: int = field(default=0, init=False)
    _streak: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if not 0 < self.floor <= self.limit <= self.ceiling:
            raise ValueError(f"a budget needs 0 < floor <= limit <= ceiling, not {self}")

    @classmethod
    def fixed(cls, limit: int) -> "Budget":
        """One that never moves."""
        return cls(limit, limit, limit)

    @classmethod
    def up_to(cls, ceiling: int) -> "Budget":
        """One that begins at `ceiling` and gives back up to three quarters of it."""
        return cls(ceiling, max(1, ceiling // 4), ceiling)

    def observe(self, found: int, asked: int) -> None:
        """A lookup found `found` of `asked` tokens; every WINDOW lookups the limit may move."""
        self._asked += asked
        self._found += found
        self._count += 1
        if self._count < WINDOW:
            return
        ratio = self._found / self._asked if self._asked else 0.0
        self._asked = self._found = self._count = 0
        self._judge(1 if ratio > GROW_ABOVE else -1 if ratio < SHRINK_BELOW else 0)

    def _judge(self, side: int) -> None:
        self._streak = self._streak + side if side * self._streak >= 0 and side else side
        if abs(self._streak) < WINDOWS_IN_A_ROW:
            return
        moved = self.limit * STEP if self._streak > 0 else self.limit / STEP
        self.limit = max(self.floor, min(self.ceiling, int(moved)))
        self._streak = 0
