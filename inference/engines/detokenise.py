"""Tokens in, text that may be shown out: whole characters only, and nothing that may yet be a stop string."""

from collections.abc import Callable, Sequence

REPLACEMENT = "\ufffd"

Decode = Callable[[Sequence[int]], str]


class TextStream:
    """The text of a growing token sequence. What `push` and `finish` return, joined, is the decoded whole up
    to the first stop string, less a character left unfinished at the end."""

    def __init__(self, decode: Decode, stop: tuple[str, ...] = ()) -> None:
        self._decode = decode
        self._stop = stop
        # Decoding starts a few tokens back, at `_start`, because some tokenizers drop a leading space.
        self._ids: list[int] = []
        self._start = 0
        self._read = 0
        self._held = ""
        self.stopped = False

    def push(self, token: int) -> str:
        """The text that this token makes final, often "". Sets `stopped` once a stop string is complete."""
        self._ids.append(token)
        fresh = self._fresh()
        if not fresh or fresh.endswith(REPLACEMENT):
            return ""  # part of a character: its other bytes come with the next tokens
        self._start, self._read = self._read, len(self._ids)
        return self._release(fresh)

    def finish(self) -> str:
        """What was held back and turns out to be text, when no more tokens come."""
        if self.stopped:
            return ""
        text = self._release(self._fresh().rstrip(REPLACEMENT))
        if not self.stopped:
            text, self._held = text + self._held, ""
        return text

    def _fresh(self) -> str:
        """The text of the tokens not read yet."""
        before = self._decode(self._ids[self._start : self._read])
        return self._decode(self._ids[self._start :])[len(before) :]

    def _release(self, fresh: str) -> str:
        """`fresh` behind what was held, up to a stop string or the possible beginning of one."""
        text = self._held + fresh
        places = [place for place in map(text.find, self._stop) if place >= 0]
        if places:
            self.stopped = True
            self._held = ""
            return text[: min(places)]
        keep = _possible_beginning(text, self._stop)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]


def _possible_beginning(text: str, stop: tuple[str, ...]) -> int:
    """Length of the longest end of `text` that some stop string begins with."""
    longest = max((len(one) - 1 for one in stop), default=0)
    for length in range(min(longest, len(text)), 0, -1):
        if any(one.startswith(text[-length:]) for one in stop):
            return length
    return 0
