"""How many threads the model is computed with: the fewest that are about as fast as any.

Threads that share a pass wait for each other some 200 times in it, asleep. Where two processors are halves of
one core that costs more than the second one brings: on two such, 36 tokens a second were written on two
threads and 57 on one, for eight answers at once 158 and 260. What they wait is about as long in every pass,
so longer ones gain all the same: 256 tokens behind 4,000 took 566 ms on one and 401 on two. On others reading
any prompt takes half as long on twice as many. So it is measured, once in a process for each kind of model,
and for each of three kinds of passes. What comes out is the same in every bit.
"""

import logging
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import torch

log = logging.getLogger(__name__)

# Passes of up to so many rows write answers, longer ones read prompts.
FEW_ROWS = 16
# Those are far into a context in which rows, each with the tokens before all of them, make so many pairs.
FAR = 1 << 17
# Fewer threads are taken, which leave more to others, if they are not slower by more than this.
ABOUT_AS_FAST = 1.1
# The best of so many goes counts, since whatever else the machine does can only slow one down.
GOES = {"few": 6, "many": 2, "far": 1}

_known: dict[Hashable, "Threads"] = {}
_measuring = threading.Lock()


@dataclass(frozen=True, slots=True)
class Threads:
    """For passes of `few` rows, of `many`, and of many `far` into a context."""

    few: int
    many: int
    far: int

    def use(self, rows: int, pairs: int) -> None:
        """For what this thread computes next: `rows`, and how many `pairs` they make with tokens before."""
        wanted = self.few if rows <= FEW_ROWS else self.many if pairs < FAR else self.far
        if wanted != torch.get_num_threads():
            only_here(wanted)


def only_here(count: int) -> None:
    """Gives the calling thread so many. torch's setting has a part of each thread and one for threads to
    come: this thread takes the first along, a passing one sets the second back."""
    torch.get_num_threads()  # has this thread take its part, which else it would with its first pass
    others = _in_passing(torch.get_num_threads)
    torch.set_num_threads(count)
    _in_passing(lambda: torch.set_num_threads(others))


def _in_passing(act: Callable[[], Any]) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(act()))
    thread.start()
    thread.join()
    return found[0]


def candidates(most: int) -> list[int]:
    """1, 2, 4 ... and `most`."""
    return sorted({most, *(1 << power for power in range(most.bit_length()) if 1 << power < most)})


def fewest(seconds: dict[int, float]) -> int:
    """The least number of threads that is about as fast as the fastest."""
    return min(n for n, taken in seconds.items() if taken <= ABOUT_AS_FAST * min(seconds.values()))


def measured(kind: Hashable, *passes: Callable[[], object]) -> Threads:
    """What is best for each of the three kinds of `passes` (as many as Threads has), as each of these makes
    one. Measured in a thread of its own, as answers are computed."""
    with _measuring:
        most = torch.get_num_threads()
        kind = (kind, most)
        if kind not in _known:
            _known[kind] = _in_passing(lambda: _measure(candidates(most), passes))
            log.info("Threads: %d for a step, %d and %d for prompts.", *astuple(_known[kind]))
        return _known[kind]


def _measure(counts: Sequence[int], passes: Sequence[Callable[[], object]]) -> Threads:
    best: dict[str, dict[int, float]] = {name: {} for name in GOES}
    for count in counts:
        only_here(count)
        for (name, goes), act in zip(GOES.items(), passes, strict=True):
            act()  # code is written for each number of threads
            best[name][count] = min(_seconds(act) for _ in range(goes))
    return Threads(**{name: fewest(seconds) for name, seconds in best.items()})


def _seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began
