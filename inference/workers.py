"""Which workers are alive, by their own word: each announces itself in Valkey every few seconds.

A worker of the generate queue has a seat too: a queue that it alone serves, named after it, so that what a
session asks can go to the worker that holds its keys and values. A worker that is started again under its
name finds its seat, and what waits there, as it left them. Times are Valkey's, since clocks of hosts differ.
"""

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import redis
import structlog
from django.conf import settings

from .redis import client

log = structlog.get_logger(__name__)

_TICK_SECONDS = 1
# The seat of a worker that was not heard of for this long is cleared away.
FORGET_SECONDS = 600

# Set when this process has been told to end: what it works on goes back to the queue.
leaving = threading.Event()

_seat = ""  # of this process; "" while it has none


@cache
def _process(pid: int) -> str:
    """With a random part: a container that is started again has the same name and the same pid."""
    return f"{socket.gethostname()}:{pid}:{secrets.token_hex(3)}"


def process() -> str:
    """This process and no other, not even one that is started in its place."""
    return _process(os.getpid())


def name() -> str:
    """This thread, for the column that says who works on a generation."""
    return f"{process()}:{threading.get_ident()}"[:120]


def process_of(name: str) -> str:
    """The process that the thread called `name` belongs to."""
    return name.rpartition(":")[0]


def take_seat(node: str) -> str:
    """Have a queue of this worker's own, which Celery knows as `node`; returns its name."""
    global _seat
    _seat = f"generate.{node}"[:100]
    return _seat


def own_seat() -> str:
    return _seat


def announce_seconds() -> float:
    """Between two announcements: six may be missed before a worker counts as gone."""
    return settings.WORKER_ALIVE_SECONDS / 6


def _key(queue: str) -> str:
    return f"workers:{queue}"


def _since_key(queue: str) -> str:
    """Since when (seconds since 1970) somebody would be on the list if there was somebody."""
    return f"workers:{queue}:since"


def _member(process: str, seat: str) -> str:
    return f"{process} {seat}"


def announce(queue: str) -> None:
    """Say that this process serves `queue` now. Raises redis.RedisError."""
    pipe = client().pipeline(transaction=False)
    pipe.zadd(_key(queue), {_member(process(), _seat): now()})
    pipe.set(_since_key(queue), 0)
    pipe.execute()


def succeed(queue: str) -> None:
    """Strike whoever had this process's seat before it off the list: one that was killed could not withdraw,
    and would count as there for as long as a living one may say nothing. Raises redis.RedisError."""
    before = [member for member, _ in _ages(queue) if _seat and _seat_of(member) == _seat]
    others = [member for member in before if member != _member(process(), _seat)]
    if others:
        client().zrem(_key(queue), *others)


def withdraw(queue: str) -> None:
    """Say that this process no longer serves `queue`."""
    try:
        # Not forgotten, so that its seat is cleared away once it is certain that it stays empty.
        client().zadd(
            _key(queue), {_member(process(), _seat): now() - settings.WORKER_ALIVE_SECONDS}, xx=True
        )
    except redis.RedisError as error:
        log.warning("withdraw_failed", queue=queue, error=str(error))


@dataclass(frozen=True)
class Roll:
    """Who serves a queue now: processes, and the seats of those that have one."""

    processes: frozenset[str]
    seats: frozenset[str]


def roll(queue: str) -> Roll:
    """Those who have announced `queue` lately. Raises redis.RedisError."""
    members = [member.partition(" ") for member, age in _ages(queue) if age < settings.WORKER_ALIVE_SECONDS]
    return Roll(
        processes=frozenset(process for process, _, _ in members),
        seats=frozenset(seat for _, _, seat in members if seat),
    )


def alive(queue: str) -> int:
    """How many workers have announced `queue` lately. Raises redis.RedisError."""
    return len(roll(queue).processes)


def absent(queue: str) -> bool:
    """Is it certain that nobody serves `queue`? Not for a moment after Valkey was emptied: it has forgotten
    those who are there, too. Raises redis.RedisError."""
    if alive(queue):
        return False
    asked_at = now()
    client().set(_since_key(queue), asked_at, nx=True)
    return asked_at - float(client().get(_since_key(queue)) or asked_at) > 2 * announce_seconds()


def abandoned_seats(queue: str) -> list[str]:
    """Strike those who were not heard of for FORGET_SECONDS off the list; returns the seats that nobody
    has had since. Raises redis.RedisError."""
    ages = _ages(queue)
    old = [member for member, age in ages if age > FORGET_SECONDS]
    if old:
        client().zrem(_key(queue), *old)
    kept = {_seat_of(member) for member, age in ages if age <= FORGET_SECONDS}
    return sorted({_seat_of(member) for member in old} - kept - {""})


def _seat_of(member: str) -> str:
    return member.partition(" ")[2]


def _ages(queue: str) -> list[tuple[str, float]]:
    """Everyone on the list, with the seconds since they were heard of last."""
    pipe = client().pipeline(transaction=False)
    pipe.time()
    pipe.zrange(_key(queue), 0, -1, withscores=True)
    (seconds, micros), members = pipe.execute()
    now = seconds + micros / 1e6
    return [(member, now - float(heard)) for member, heard in members]


def now() -> float:
    """Valkey's time, in seconds since 1970. Raises redis.RedisError."""
    seconds, micros = client().time()
    return float(seconds + micros / 1e6)


def keep_announcing(queue: str, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Announce `queue` until this process is `leaving`, and do `meanwhile` every second; a lost Valkey is
    waited for."""
    announced = float("-inf")
    while not leaving.is_set():
        if time.monotonic() - announced >= announce_seconds():
            try:
                announce(queue)
                if announced == float("-inf"):
                    succeed(queue)
                announced = time.monotonic()
            except redis.RedisError as error:
                log.warning("announce_failed", queue=queue, error=str(error))
        meanwhile()
        leaving.wait(_TICK_SECONDS)
    withdraw(queue)
