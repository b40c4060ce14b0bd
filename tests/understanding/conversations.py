"""Conversations written in one line: what the person and the assistant said in turn, a person first."""

from inference.understanding.context import Context, read_context
from inference.understanding.turns import Turn


def turns(*texts: str) -> list[Turn]:
    return [{"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(texts)]


def read(*texts: str) -> Context:
    return read_context(turns(*texts))
