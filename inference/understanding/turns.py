"""What a conversation is made of, for everything that reads one."""

from collections.abc import Sequence
from typing import Literal, TypedDict

Role = Literal["system", "user", "assistant"]


class Turn(TypedDict):
    """One utterance."""

    role: Role
    content: str


Turns = Sequence[Turn]
