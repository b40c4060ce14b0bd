"""Words that questions are made of: what can stand for what without, and with, changing what is asked."""

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

DATA = Path(__file__).parent / "verifier_data"
LANGUAGES = ("en", "zh")


@dataclass(frozen=True)
class Words:
    """Rows of what is exchangeable. The same is asked with another of `synonyms`, with something put `before`
    or `after`, with a typo (right, wrong), or with another opening (a pattern and its forms); something else
    with one of `opposites`, with another of its kind, with another question word, or with a rider: a
    condition or a form. `same_riders` may be added to both of two questions."""

    synonyms: list[list[str]]
    before: list[str]
    after: list[str]
    opposites: list[list[str]]
    kinds: list[list[str]]
    asked: list[list[str]]
    riders: list[str]
    same_riders: list[str]
    typos: list[list[str]] = field(default_factory=list)
    openings: list[list[str]] = field(default_factory=list)


@cache
def words(lang: str) -> Words:
    return Words(**json.loads((DATA / f"words_{lang}.json").read_text(encoding="utf-8")))
