"""Which workers are alive, by their own word: each announces its queues in Valkey every few seconds."""

import os
import socket
import threading
import time

import redis
import structlog

from .redis import client

log = structlog.get_logger(__name__)

ANNOUNCE_SECONDS = 5
# Three announcements missed twice over, and longer than a restart takes: a worker that is being restarted
# still counts, so that its queue waits for it instead of failing.
ALIVE_SECONDS = 30


# Set when this process has been told to end: what it works on goes back to the queue.
leaving = threading.Event()


def name() -> str:
    """This thread, for the column that says who works on a generation."""
    return f"{socket.gethostname()}:{os.getpid()}:{threading.get_ident()}"[:120]


def _key(queue: str) -> str:
    return f"workers:{queue}"


def _since_key(queue: str) -> str:
    """Since when (seconds since 1970) somebody would be on the list if there was somebody."""
    return f"workers:{queue}:since"


def announce(queue: str) -> None:
    """Say that this process serves `queue` now. Raises redis.RedisError."""
    now = time.time()
    pipe = client().pipeline(transaction=False)
    pipe.zadd(_key(queue), {f"{socket.gethostname()}:{os.getpid()}": now})
    pipe.zremrangebyscore(_key(queue), 0, now - 10 * ALIVE_SECONDS)
    pipe.set(_since_key(queue), 0)
    pipe.execute()


def withdraw(queue: str) -> None:
    """Say that this process no longer serves `queue`."""
    try:
        client().zrem(_key(queue), f"{socket.gethostname()}:{os.getpid()}")
    except redis.RedisError as error:
        log.warning("withdraw_failed", queue=queue, error=str(error))


def alive(queue: str) -> int:
    """How many workers have announced `queue` lately. Raises redis.RedisError."""
    return int(client().zcount(_key(queue), time.time() - ALIVE_SECONDS, "+inf"))


def absent(queue: str) -> bool:
    """Is it certain that nobody serves `queue`? Not for a moment after Valkey was emptied: it has forgotten
    those who are there, too. Raises redis.RedisError."""
    if alive(queue):
        return False
    now = time.time()
    client().set(_since_key(queue), now, nx=True)
    return now - float(client().get(_since_key(queue)) or now) > 2 * ANNOUNCE_SECONDS


def keep_announcing(queue: str) -> None:
    """Announce `queue` until this process is `leaving`; a lost Valkey is waited for."""
    while not leaving.is_set():
        try:
            announce(queue)
        except redis.RedisError as error:
            log.warning("announce_failed", queue=queue, error=str(error))
        leaving.wait(ANNOUNCE_SECONDS)
    withdraw(queue)
