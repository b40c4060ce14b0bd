"""The weights of `inference.cache.followup`, fitted to case files and conversations.

The same was asked by a case's probe and by its third wording where both follow on the same turns. Something
else was asked by the next question of a conversation, asked one question too early.
"""

import hashlib
import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inference.cache import followup, probe
from inference.cache.logistic import chance
from inference.evaluation.cases import Case
from inference.evaluation.fit_evidence import NothingToAsk
from inference.evaluation.jsonl import Row, read_rows
from inference.evaluation.pair_measures import weights_of
from inference.models import Scope
from inference.understanding.language import language
from inference.understanding.turns import Turn, Turns

_RIDGE = 1.0
_ASKED_FOR = (0.8, 0.9, 0.95, 0.97, 0.98)
# Longer histories only take longer to read.
_MOST_TURNS = 10

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pair:
    """Two questions at the same moment; `name` says where they are from."""

    name: str
    first: tuple[Turn, ...]
    second: tuple[Turn, ...]
    same: bool


@dataclass(frozen=True)
class Measured:
    pair: Pair
    lang: str
    half: int
    features: dict[str, float]


def same_of(cases: Sequence[Case]) -> Iterator[Pair]:
    for case in cases:
        if len(case.probe) > 1 and case.third[:-1] == case.probe[:-1]:
            yield Pair(case.id, case.probe, case.third, True)


def other_of(conversations: Sequence[Turns]) -> Iterator[Pair]:
    """One pair of a conversation, from where it has gone on longest."""
    for turns in conversations:
        asked = [at for at, turn in enumerate(turns) if turn["role"] == "user"]
        moments = [(at, after) for at, after in pairwise(asked) if 0 < at <= _MOST_TURNS]
        if moments:
            at, after = moments[-1]
            before, name = tuple(turns[:at]), turns[0]["content"]
            yield Pair(name, (*before, turns[at]), (*before, turns[after]), False)


def conversations(path: Path) -> list[Turns]:
    """Those of a JSONL file of cases (`seed`, `probe`) or of messages (`history`, `text`), each but once.
    Raises OSError and BadCase."""
    found: dict[str, Turns] = {}
    for turns in read_rows(path, _conversation):
        found.setdefault(turns[0]["content"], turns)
    return list(found.values())


def _conversation(row: Row) -> Turns:
    if "history" in row:
        return _turns([*row["history"], {"role": "user", "content": row["text"]}])
    return max(_turns(row["seed"]), _turns(row["probe"]), key=len)


def _turns(rows: Any) -> Turns:
    return [Turn(role=row["role"], content=str(row["content"])) for row in rows]


def measured(pairs: Sequence[Pair]) -> list[Measured]:
    """Raises NothingToAsk."""
    scope = Scope(hash="fit", pk=1)
    found = []
    for pair in pairs:
        read = [probe.read(scope, uuid.uuid4(), turns) for turns in (pair.second, pair.first)]
        features = followup.features(*read)
        if features is None:
            raise NothingToAsk("There is no embedder to ask.")
        half = hashlib.sha256(json.dumps(pair.name).encode()).digest()[0] % 2
        found.append(Measured(pair, language(read[0].question), half, features))
    return found


def fitted(rows: Sequence[Measured]) -> dict[str, float]:
    """The weights for these rows, of one language, and the constant."""
    return weights_of([row.features for row in rows], [row.pair.same for row in rows], _RIDGE)


def crossed(rows: Sequence[Measured]) -> dict[str, str]:
    """Each half weighed by the weights fitted on the other: how many of the same and of the different are
    taken for the same, by the probability asked for."""
    sure: list[tuple[float, bool]] = []
    for half in (0, 1):
        weights = fitted([row for row in rows if row.half != half])
        sure += [(chance(weights, row.features), row.pair.same) for row in rows if row.half == half]
    of = f"of {sum(same for _, same in sure)}/{sum(not same for _, same in sure)}"
    figures = {}
    for needed in _ASKED_FOR:
        taken = [same for p, same in sure if p >= needed]
        figures[str(needed)] = f"{sum(taken)}/{len(taken) - sum(taken)} {of}"
    return figures
