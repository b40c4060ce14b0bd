"""The scripted conversations of the benchmark, decided in a cache that holds every answer of the other
branch: after the correction none of them is served, by any layer."""

import json
import uuid
from typing import Any

import pytest

from benchmarks.correction_replay import SCRIPTS
from inference.cache import decision, learning, lifecycle, probe
from inference.cache.decision import Decided
from inference.models import Scope, Session
from inference.understanding.turns import Turn

from .conftest import turns

OTHER = {
    "en": "Here is how that goes: take three steps, one after the other.",
    "zh": "可以这样做：分三步，一步一步来。",
}


def scripts(lang: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in SCRIPTS.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if row["lang"] == lang and row["kind"] not in ("control", "undo")]


def conversation(asked: list[str], answer: str) -> list[Turn]:
    """These questions, all but the last answered."""
    said = [text for question in asked for text in (question, answer)]
    return turns(*said[:-1])


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_nothing_of_the_other_branch_is_served(scope: Scope, lang: str) -> None:
    others: dict[str, set[uuid.UUID]] = {}
    for script in scripts(lang):
        owner = Session.objects.create(pk=uuid.uuid4())
        planted: dict[str, uuid.UUID] = {}
        for asked in script["others"]:
            for end in range(len(script["before"]), len(asked) + 1):
                said = conversation(asked[:end], OTHER[lang])
                read = probe.read(scope, owner.pk, said)
                if read.exact_key not in planted:
                    vector = learning.answer_of(OTHER[lang]).vector
                    stored = lifecycle.plant(read, owner, OTHER[lang], "fact", vector)
                    planted[read.exact_key] = stored.entry_id
        others[script["id"]] = set(planted.values())
    stale, hits = [], 0
    for script in scripts(lang):
        there = set().union(*others.values())
        late = script.get("late", range(len(script["after"])))
        followed = [*script["before"], script["correction"], *script["after"]]
        for end in [len(script["before"]), *(len(script["before"]) + 1 + at for at in late)]:
            decided = decide(scope, conversation(followed[: end + 1], OTHER[lang]))
            if decided.served is not None and decided.served.entry in there:
                stale.append((script["id"], followed[end], decided.layer, decided.reason))
        # The trap is real: without the correction the same follow-ups are served.
        uncorrected = script["others"][-1]
        hits += decide(scope, conversation(uncorrected, OTHER[lang])).served is not None
    assert stale == []
    assert hits == len(scripts(lang))


def decide(scope: Scope, said: list[Turn]) -> Decided:
    return decision.decide(probe.read(scope, uuid.uuid4(), said))
