"""How far back a prompt goes. Whatever is left out goes in steps, never one exchange at a time: between two
steps each prompt begins with all of the one before it, and what was computed for that is used again."""

from collections.abc import Sequence
from dataclasses import dataclass

from .turns import Turn, Turns

# The summary has one part for each step of exchanges; of a very long conversation the last parts are kept,
# at least this many, and they go in steps of as many. About 1,400 tokens at most.
LEAST_PARTS = 4


def exchanges(turns: Turns) -> list[list[Turn]]:
    """`turns` in groups that belong together: each begins with a user's turn, where there is one."""
    groups: list[list[Turn]] = []
    for turn in turns:
        if turn["role"] == "user" or not groups:
            groups.append([])
        groups[-1].append(turn)
    return groups


def cuts(count: int, step: int) -> list[int]:
    """How many of the `count` oldest may be left out, ascending: whole steps, all but the newest, all."""
    return sorted({*range(0, count, step), max(0, count - 1), count})


def left_out(sizes: Sequence[int], room: int, step: int) -> int:
    """How many of the oldest to leave out, so that the sizes of the others add up to at most `room`."""
    return next((cut for cut in cuts(len(sizes), step) if sum(sizes[cut:]) <= room), len(sizes))


@dataclass(frozen=True)
class Window:
    """What a prompt shows of a conversation: `shown` word for word, and before that a summary of each of
    `parts`, the oldest first."""

    parts: tuple[tuple[Turn, ...], ...]
    shown: tuple[Turn, ...]


def arrange(past: Turns, least: int, step: int) -> Window:
    """The turns before a question, as a prompt shows them: at least the `least` newest exchanges word for
    word, at most `step` - 1 more, and the others summarised by `step` exchanges."""
    groups = exchanges(past)
    covered = max(0, len(groups) - least) // step * step
    parts = [_joined(groups[at : at + step]) for at in range(0, covered, step)]
    forgotten = max(0, len(parts) - LEAST_PARTS) // LEAST_PARTS * LEAST_PARTS
    return Window(tuple(parts[forgotten:]), _joined(groups[covered:]))


def last_part(past: Turns, step: int) -> tuple[Turn, ...]:
    """The part that a later prompt will summarise, if the newest exchange was its last; else ()."""
    groups = exchanges(past)
    return _joined(groups[-step:]) if groups and len(groups) % step == 0 else ()


def _joined(groups: Sequence[Sequence[Turn]]) -> tuple[Turn, ...]:
    return tuple(turn for group in groups for turn in group)
