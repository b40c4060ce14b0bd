"""A supervisord event listener: shows what the programs write, each line with its program's name.

supervisord itself writes their output to files only. The protocol (events on stdin, READY and RESULT on
stdout) is at supervisord.org/events.html.
"""

import sys
from collections import defaultdict
from typing import BinaryIO, TextIO

_WIDTH = 9


class Lines:
    """Puts the pieces in which output arrives together again, program by program."""

    def __init__(self) -> None:
        self._open: defaultdict[str, bytes] = defaultdict(bytes)

    def add(self, program: str, piece: bytes) -> list[str]:
        """The lines that `piece` completes, each with the program's name before it."""
        *complete, self._open[program] = (self._open[program] + piece).split(b"\n")
        return [f"{program:<{_WIDTH}}| {line.decode(errors='replace')}" for line in complete]


def fields(text: str) -> dict[str, str]:
    """`a:1 b:2` as a dictionary."""
    return dict(pair.split(":", 1) for pair in text.split())


def listen(events: BinaryIO, answers: TextIO, screen: TextIO) -> None:
    """Handle events until supervisord closes the pipe."""
    lines = Lines()
    while True:
        answers.write("READY\n")
        answers.flush()
        header = events.readline()
        if not header:
            return
        payload = events.read(int(fields(header.decode())["len"]))
        head, _, piece = payload.partition(b"\n")
        for line in lines.add(fields(head.decode())["processname"], piece):
            print(line, file=screen, flush=True)
        answers.write("RESULT 2\nOK")
        answers.flush()


if __name__ == "__main__":
    listen(sys.stdin.buffer, sys.stdout, sys.stderr)
