"""Tokens in, text that may be shown out: whole characters only, and nothing that may yet be a stop string."""

from collections.abc import Callable, Sequence

REPLACEMENT = "\ufffd"

Decode = Callable[[Sequence[int]], str]


class StopStrings:
    """Text in pieces, up to the first stop string: what may yet become one is held back."""

    def __init__(self, stop: tuple[str, ...] = ()) -> None:
        self._stop = stop
        self._held = ""
        self.stopped = False

    def push(self, fresh: str) -> str:
        """What can be shown now. Sets `stopped` once a stop string is complete."""
        text = self._held + fresh
        places = [place for place in map(text.find, self._stop) if place >= 0]
        if places:
            self.stopped = True
            self._held = ""
            return text[: min(places)]
        keep = _possible_beginning(text, self._stop)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self) -> str:
        """What was held back and turns out to be text, when no more comes."""
        text, self._held = self._held, ""
        return text


class TextStream:
    """The text of a growing token sequence. What `push` and `finish` return, joined, is the decoded whole up
    to the first stop string, less a character left unfinished at the end."""

    def __init__(self, decode: Decode, stop: tuple[str, ...] = ()) -> None:
        self._decode = decode
        # Decoding starts a few tokens back, at `_start`, because some tokenizers drop a leading space.
        self._ids: list[int] = []
        self._start = 0
        self._read = 0
        self._until = StopStrings(stop)

    @property
    def stopped(self) -> bool:
        """Whether a stop string is complete."""
        return self._until.stopped

    def push(self, token: int) -> str:
        """The text that this token makes final, often ""."""
        self._ids.append(token)
        fresh = self._fresh()
        if not fresh or fresh.endswith(REPLACEMENT):
            return ""  # part of a character: its other bytes come with the next tokens
        self._start, self._read = self._read, len(self._ids)
        return self._until.push(fresh)

    def finish(self) -> str:
        """What was held back and turns out to be text, when no more tokens come."""
        if self.stopped:
            return ""
        return self._until.push(self._fresh().rstrip(REPLACEMENT)) + self._until.finish()

    def _fresh(self) -> str:
        """The text of the tokens not read yet."""
        before = self._decode(self._ids[self._start : self._read])
        return self._decode(self._ids[self._start :])[len(before) :]


def _possible_beginning(text: str, stop: tuple[str, ...]) -> int:
    """Length of the longest end of `text` that some stop string begins with."""
    longest = max((len(one) - 1 for one in stop), default=0)
    for length in range(min(longest, len(text)), 0, -1):
        if any(one.startswith(text[-length:]) for one in stop):
            return length
    return 0
