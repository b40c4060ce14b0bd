"""Which worker a session belongs to: the one that most likely still holds its keys and values.

Rendezvous hashing (Thaler and Ravishankar, 1998): each pair of session and worker has a weight, and the
heaviest worker wins. Whoever asks comes to the same answer without a table that could be lost; a worker that
comes takes only the sessions that it wins, one that goes leaves only its own.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b


def ranked(session: str, seats: Iterable[str]) -> list[str]:
    """`seats`, each of them once, in the order in which `session` prefers them."""
    return sorted(set(seats), key=lambda seat: (_weight(session, seat), seat), reverse=True)


def choose(session: str, waiting: Mapping[str, int], long: int) -> str | None:
    """The seat for `session` among those that `waiting` names with the number of questions before it: the
    first in its order where fewer than `long` wait, else where the fewest do. None when there is no seat."""
    order = ranked(session, waiting)
    short = next((seat for seat in order if waiting[seat] < long), None)
    return short or min(order, key=waiting.__getitem__, default=None)


def _weight(session: str, seat: str) -> bytes:
    return blake2b(f"{seat}\0{session}".encode(), digest_size=8).digest()
