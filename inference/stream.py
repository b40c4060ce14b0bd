"""A generation's Redis stream: append-only, replayable from any seq. Nothing else touches it.

Deltas are numbered from 1 without gaps, and a delta's entry id is `seq-0`: "after seq N" is a read from
`N-0`, and an append made twice is refused by the server. What replaces or ends the text so far (snapshot,
done) stands at `seq-1`, `seq-2`, … behind the delta it follows. What the question took back (invalidated)
stands before everything else.
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

import redis
import structlog
from django.conf import settings

from . import metrics
from .ending import Ending, Invalidated
from .redis import client

log = structlog.get_logger(__name__)

Kind = Literal["delta", "snapshot", "done", "invalidated"]
START = "0-0"
_BEFORE_ALL = "0-1"


@dataclass(frozen=True)
class Item:
    """One thing read from a stream. The text of a snapshot replaces all before it; that of done is the
    Ending as JSON, or empty, and then the database knows it; that of invalidated the Invalidated as JSON."""

    kind: Kind
    seq: int
    text: str
    position: str


def _key(generation: UUID) -> str:
    return f"generation:{generation}:stream"


def _stop_key(generation: UUID) -> str:
    return f"generation:{generation}:stop"


def _split(position: str) -> tuple[int, int]:
    seq, _, sub = position.partition("-")
    return int(seq), int(sub)


def _item(position: str, fields: dict[str, str]) -> Item:
    return Item(fields["kind"], _split(position)[0], fields.get("text", ""), position)  # type: ignore[arg-type]


def fold(items: Iterable[Item]) -> tuple[str, int]:
    """The text that these items add up to, and the seq it reaches."""
    text, seq = "", 0
    for item in items:
        if item.kind in ("done", "invalidated"):
            continue
        text = item.text if item.kind == "snapshot" else text + item.text
        seq = item.seq
    return text, seq


# --- writing ------------------------------------------------------------------------------------


class Writer:
    """Appends one generation's answer, and a copy to each follower's stream.

    Valkey may go away and come back empty. Meanwhile the text is kept here; the first write that gets
    through again is a snapshot of it. Nothing is raised: losing the watching must not lose the answer.
    """

    def __init__(self, generation: UUID) -> None:
        self.generation = generation
        self.seq = 0
        self._sub = 0
        self._before, self._since, self._pieces = "", 0, list[str]()
        self._in_step: set[UUID] = set()  # streams that hold exactly what was written so far
        self._left: set[UUID] = set()  # followers' streams that their own writer has taken up meanwhile
        self._take_up()

    @property
    def text(self) -> str:
        return self._before + "".join(self._pieces)

    def text_at(self, seq: int) -> str:
        """What a reader who has seen everything up to `seq` has on the screen."""
        return self._before + "".join(self._pieces[: max(0, seq - self._since)])

    def append(self, pieces: Iterable[str], followers: Set[UUID] = frozenset()) -> None:
        """Add deltas, in one round trip for all streams."""
        new = list(pieces)
        first = self.seq + 1
        self._pieces += new
        self.seq += len(new)
        if new:
            self._sub = 0
        streams = {self.generation, *followers} - self._left
        self._in_step &= streams
        current = list(self._in_step)
        lost = self._write(
            [
                (stream, f"{first + offset}-0", {"kind": "delta", "text": piece}, True)
                for stream in current
                for offset, piece in enumerate(new)
            ]
        )
        self._in_step -= lost
        self._catch_up(streams - self._in_step - self._left)

    def replace(self, text: str) -> None:
        """Put `text` in the place of everything this generation's own readers hold."""
        self._before, self._since, self._pieces = text, self.seq, []
        self._in_step = set()
        self._catch_up({self.generation})

    def done(self, ending: Ending, followers: Set[UUID] = frozenset()) -> None:
        """End the streams; the outcome is in the database by now. They are kept for those who come late."""
        self._catch_up({self.generation, *followers} - self._in_step)
        self._sub += 1
        position = f"{self.seq}-{self._sub}"
        _close(self.generation, position, ending.to_json())
        for follower in followers:
            _close(follower, position)

    def _take_up(self) -> None:
        """Stand behind an earlier attempt at the same generation, if there was one, and wipe its text."""
        try:
            last = _last_position(self.generation)
        except redis.RedisError:
            return
        if last == START:
            # The first delta makes the stream; from then on a missing stream is a lost one.
            self._write([(self.generation, "0-1", {"kind": "snapshot", "text": ""}, False)])
            self._sub = 1
        else:
            self.seq, self._sub = _split(last)
            self._since = self.seq
            self._catch_up({self.generation})
        self._in_step = {self.generation}

    def _catch_up(self, streams: Set[UUID]) -> None:
        """Bring streams that miss something into step, with a snapshot."""
        if not streams:
            return
        self._sub += 1
        fields = {"kind": "snapshot", "text": self.text}
        lost = self._write([(s, f"{self.seq}-{self._sub}", fields, False) for s in streams])
        self._in_step |= streams - lost

    def _write(self, entries: list[tuple[UUID, str, dict[str, str], bool]]) -> set[UUID]:
        """Write (stream, id, fields, must_exist) entries; returns the streams where that failed."""
        if not entries:
            return set()
        try:
            pipe = client().pipeline(transaction=False)
            for stream, position, fields, must_exist in entries:
                pipe.xadd(_key(stream), fields, id=position, nomkstream=must_exist)
            for stream in {stream for stream, _, _, must_exist in entries if not must_exist}:
                pipe.expire(_key(stream), settings.STREAM_TTL_SECONDS)  # so that none is left for ever
            results = pipe.execute(raise_on_error=False)[: len(entries)]
        except redis.RedisError as error:
            log.warning("stream_unavailable", generation=str(self.generation), error=str(error))
            metrics.STAGE_ERRORS.labels(stage="stream").inc()
            return {entry[0] for entry in entries}
        failed = {
            entry[0]: result
            for entry, result in zip(entries, results, strict=True)
            if result is None or isinstance(result, Exception)
        }
        # An id that is too small: somebody else has written there.
        refused = {stream for stream, error in failed.items() if isinstance(error, redis.ResponseError)}
        self._left |= refused - {self.generation}
        return set(failed)


def tell(generation: UUID, invalidated: Invalidated) -> None:
    """Let readers know at once what the question took back, before its answer is looked for."""
    try:
        fields = {"kind": "invalidated", "text": invalidated.to_json()}
        client().xadd(_key(generation), fields, id=_BEFORE_ALL)
        client().expire(_key(generation), settings.STREAM_TTL_SECONDS)
    except redis.RedisError as error:
        log.warning("stream_unavailable", generation=str(generation), error=str(error))
        metrics.STAGE_ERRORS.labels(stage="stream").inc()


def pieces(text: str, size: int = 48) -> list[str]:
    """A stored answer in deltas of a few words."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def deliver(generation: UUID, pieces: list[str]) -> None:
    """Write an answer that is there as a whole, to a stream that nobody has written an answer to yet."""
    try:
        pipe = client().pipeline(transaction=False)
        for seq, piece in enumerate(pieces, start=1):
            pipe.xadd(_key(generation), {"kind": "delta", "text": piece}, id=f"{seq}-0")
        pipe.expire(_key(generation), settings.STREAM_TTL_SECONDS)
        pipe.execute()
    except redis.RedisError as error:
        log.warning("stream_unavailable", generation=str(generation), error=str(error))
        metrics.STAGE_ERRORS.labels(stage="stream").inc()


def delivered(generation: UUID, pieces: list[str], ending: Ending) -> None:
    """End what was delivered; the outcome is in the database by now."""
    _close(generation, f"{len(pieces)}-1", ending.to_json())


def _close(generation: UUID, position: str, ending: str = "") -> None:
    try:
        pipe = client().pipeline(transaction=False)
        pipe.xadd(_key(generation), {"kind": "done", "text": ending}, id=position)
        pipe.expire(_key(generation), settings.STREAM_TTL_SECONDS)
        pipe.delete(_stop_key(generation))
        pipe.execute()
    except redis.RedisError:
        metrics.STAGE_ERRORS.labels(stage="stream").inc()


def _last_position(generation: UUID) -> str:
    last = _last(generation)
    return last.position if last else START


def _last(generation: UUID) -> Item | None:
    rows = client().xrevrange(_key(generation), count=1)
    return _item(*rows[0]) if rows else None


def position_of(generation: UUID) -> str | None:
    """Where the stream stands; None when Valkey can't say."""
    try:
        return _last_position(generation)
    except redis.RedisError:
        return None


def ending(generation: UUID) -> Ending | None:
    """What its readers were told of how it ended; None if they were told nothing yet."""
    try:
        last = _last(generation)
    except redis.RedisError:
        return None
    return Ending.from_json(last.text) if last and last.kind == "done" and last.text else None


def end(generation: UUID, text: str) -> None:
    """End a stream that nobody writes any more (a dead worker's, or a stopped follower's) with `text`, which
    its readers may have read past."""
    try:
        seq, sub = _split(_last_position(generation))
        client().xadd(_key(generation), {"kind": "snapshot", "text": text}, id=f"{seq}-{sub + 1}")
        _close(generation, f"{seq}-{sub + 2}")
    except redis.RedisError:
        metrics.STAGE_ERRORS.labels(stage="stream").inc()


def text_until(generation: UUID, seen: int | None = None) -> str | None:
    """What the stream's readers have on the screen, up to seq `seen`; None if the stream is gone."""
    try:
        rows = client().xrange(_key(generation), max="+" if seen is None else f"{seen}-{2**31}")
    except redis.RedisError:
        return None
    return fold(_item(*row) for row in rows)[0] if rows else None


# --- stopping -----------------------------------------------------------------------------------


def request_stop(generation: UUID, seen: int) -> None:
    """Ask whoever writes the stream to stop. The first request counts: it is what that person saw.
    Raises redis.RedisError, so that the person hears when it could not be asked."""
    client().set(_stop_key(generation), seen, ex=settings.STREAM_TTL_SECONDS, nx=True)


def stop_requested(generation: UUID) -> int | None:
    """The seq up to which the person had read when they asked to stop; None while nobody has."""
    try:
        seen = client().get(_stop_key(generation))
    except redis.RedisError:
        return None
    return None if seen is None else int(seen)


def forget(generations: Iterable[UUID]) -> None:
    """Delete these streams. What can't be, or is written again by someone who hasn't heard yet, goes by
    itself after an hour."""
    keys = [_key(generation) for generation in generations]
    try:
        for at in range(0, len(keys), 500):
            client().unlink(*keys[at : at + 500])
    except redis.RedisError as error:
        log.warning("streams_not_forgotten", error=str(error))
        metrics.STAGE_ERRORS.labels(stage="stream").inc()


# --- reading ------------------------------------------------------------------------------------


async def last_seq(connection: Any, generation: UUID) -> int:
    """The seq that the stream has reached, 0 when there is none. Raises redis.RedisError."""
    last = await connection.xrevrange(_key(generation), count=1)
    return _split(last[0][0])[0] if last else 0


async def read(connection: Any, generation: UUID, position: str, wait_ms: int | None) -> list[Item]:
    """The items behind `position`; waits up to `wait_ms` for the first one (None: does not wait).
    Raises redis.RedisError."""
    streams = await connection.xread({_key(generation): position}, count=500, block=wait_ms)
    if not streams:
        return []
    rows = streams[0][1] if isinstance(streams, list) else next(iter(streams.values()))[0]
    return [_item(*row) for row in rows]
