"""How well signals are told: case files in, figures for `invalidates` out."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from inference.understanding.signals import Signal, detect
from inference.understanding.turns import Turn, Turns

from .jsonl import Row, read_rows

LABELS = ("correction", "rejection", "restatement", "none")

Detect = Callable[[Turns, str], Signal]


@dataclass(frozen=True)
class SignalCase:
    """A message, what was said before it, and what it does to that."""

    id: str
    lang: str
    label: str
    invalidates: bool
    history: tuple[Turn, ...]
    text: str


class Figures(TypedDict):
    """For the question `invalidates`; None where nothing of the kind is among the cases."""

    n: int
    precision: float | None
    recall: float | None
    f1: float | None
    false_positive_rate: float | None


class Report(TypedDict):
    overall: Figures
    by_lang: dict[str, Figures]
    by_label: dict[str, Figures]


def read(path: Path) -> list[SignalCase]:
    """The cases of a JSONL file. Raises OSError, and BadCase with the line's number."""
    return read_rows(path, _case)


def _case(row: Row) -> SignalCase:
    if row["label"] not in LABELS:
        raise ValueError(f"label is {row['label']!r}, none of {', '.join(LABELS)}")
    history = tuple(Turn(role=turn["role"], content=str(turn["content"])) for turn in row["history"])
    return SignalCase(
        str(row["id"]), str(row["lang"]), row["label"], bool(row["invalidates"]), history, str(row["text"])
    )


def evaluate(cases: Sequence[SignalCase], detector: Detect = detect) -> Report:
    """Every case through the detector."""
    found = [(case, detector(case.history, case.text).invalidates) for case in cases]
    langs = sorted({case.lang for case in cases})
    labels = [label for label in LABELS if any(case.label == label for case in cases)]
    return Report(
        overall=figures((case.invalidates, said) for case, said in found),
        by_lang={
            lang: figures((case.invalidates, said) for case, said in found if case.lang == lang)
            for lang in langs
        },
        by_label={
            label: figures((case.invalidates, said) for case, said in found if case.label == label)
            for label in labels
        },
    )


def figures(pairs: Iterable[tuple[bool, bool]]) -> Figures:
    """From pairs (is, was said to be)."""
    counted = list(pairs)
    right = sum(is_ and said for is_, said in counted)
    actual, claimed = sum(is_ for is_, _ in counted), sum(said for _, said in counted)
    others = len(counted) - actual
    precision = right / claimed if claimed else None
    recall = right / actual if actual else None
    f1 = 2 * right / (actual + claimed) if actual else None
    false = (claimed - right) / others if others else None
    return Figures(n=len(counted), precision=precision, recall=recall, f1=f1, false_positive_rate=false)
