"""Fits the weights of `inference.understanding.signals` to labelled messages, offline.

    python -m inference.evaluation.train_signals LABELLED.jsonl [--write] [--l2 1] [--threshold 0.65]

Our own examples (`signal_examples.jsonl`) are added to the file. Prints the figures of a five-fold
cross-validation in which messages that resemble each other (their words or their histories) are never on both
sides, for each set apart; then, with --write, fits to all and writes `signal_weights.json`.

Earlier messages of a history count as further examples of "none", at a part of the weight, but for those that
are labelled otherwise: whoever wrote the history went on from them as if nothing had been taken back.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from inference.evaluation.signals import Figures, SignalCase, figures, read
from inference.understanding import signals
from inference.understanding.signal_reading import read as read_signs
from inference.understanding.signals import crossed, weights_from

Array = npt.NDArray[np.float64]
Signs = Mapping[str, float]

EXAMPLES = Path(__file__).with_name("signal_examples.jsonl")
WEIGHTS = Path(signals.__file__).with_name("signal_weights.json")
_FOLDS = 5
_ALIKE = 0.35
_SEEN_AT_LEAST = 3
_EARLIER_WEIGHT = 0.3
_OURS_WEIGHT = 0.6
_KINDS = ("correction", "rejection", "restatement")


def fit(rows: Array, is_so: Array, weights: Array, l2: float) -> Array:
    """Weights of an L2-regularised logistic regression by Newton's method, shape (columns + 1,): the last is
    the bias, which is not held back."""
    rows = np.hstack([rows, np.ones((len(rows), 1))])
    held = np.eye(rows.shape[1]) * l2
    held[-1, -1] = 1e-6
    found = np.zeros(rows.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-np.clip(rows @ found, -30, 30)))
        slope = rows.T @ (weights * (p - is_so)) + held @ found
        curve = (rows * (weights * p * (1 - p))[:, None]).T @ rows + held
        step = np.linalg.solve(curve, slope)
        found -= step
        if np.abs(step).max() < 1e-6:
            break
    return found


def table(signs: Sequence[Signs], names: Sequence[str]) -> Array:
    """Shape (messages, names)."""
    at = {name: column for column, name in enumerate(names)}
    rows = np.zeros((len(signs), len(names)))
    for row, found in zip(rows, signs, strict=True):
        for name, value in found.items():
            if name in at:
                row[at[name]] = value
    return rows


def earlier_messages(cases: Sequence[SignalCase]) -> list[SignalCase]:
    """The users' earlier messages that followed an answer, as cases of their own; but for those that are
    labelled as a signal themselves."""
    signals = {case.text for case in cases if case.invalidates}
    return [
        SignalCase(case.id, case.lang, "none", False, case.history[:at], turn["content"])
        for case in cases
        for at, turn in enumerate(case.history)
        if at >= 2 and turn["role"] == "user" and turn["content"] not in signals
    ]


def learn(cases: Sequence[SignalCase], l2: float, threshold: float) -> dict[str, object]:
    """Weights as `signals.weights_from` reads them."""
    more = earlier_messages(cases)
    signs = [crossed(read_signs(case.history, case.text)) for case in [*cases, *more]]
    seen = Counter(name for found in signs for name in found)
    names = sorted(name for name in seen if seen[name] >= _SEEN_AT_LEAST)
    rows = table(signs, names)
    own = {(case.id, case.text) for case in read(EXAMPLES)}
    weights = np.array(
        [_OURS_WEIGHT if (case.id, case.text) in own else 1.0 for case in cases]
        + [_EARLIER_WEIGHT] * len(more)
    )
    is_so = np.array([float(case.invalidates) for case in [*cases, *more]])
    found = fit(rows, is_so, weights, l2)
    which = [at for at, case in enumerate(cases) if case.invalidates]
    kinds = {}
    for kind in _KINDS:
        is_kind = np.array([float(cases[at].label == kind) for at in which])
        kinds[kind] = _named(fit(rows[which], is_kind, np.ones(len(which)), 2 * l2), names)
    return {
        "threshold": threshold,
        "bias": round(float(found[-1]), 3),
        "invalidates": {
            name: round(float(w), 3) for name, w in zip(names, found, strict=False) if abs(w) > 1e-3
        },
        "kinds": kinds,
    }


def _named(found: Array, names: Sequence[str]) -> dict[str, float]:
    named = {name: round(float(w), 3) for name, w in zip(names, found, strict=False) if abs(w) > 1e-2}
    return {"bias": round(float(found[-1]), 3), **named}


def _grams(text: str) -> set[str]:
    plain = re.sub(r"\W+", "", text.lower())
    size = 4 if re.search("[a-z]{4}", plain) else 2
    return {plain[at : at + size] for at in range(len(plain) - size + 1)}


def alike(cases: Sequence[SignalCase]) -> list[int]:
    """A number for each case, the same for those that resemble each other, directly or through others."""
    leader = list(range(len(cases)))

    def lead(at: int) -> int:
        while leader[at] != at:
            at = leader[at]
        return at

    said = [_grams(case.text) for case in cases]
    before = [_grams(" ".join(turn["content"] for turn in case.history)) for case in cases]
    for at in range(len(cases)):
        for other in range(at):
            if any(
                a[at] and a[other] and len(a[at] & a[other]) > _ALIKE * len(a[at] | a[other])
                for a in (said, before)
            ):
                leader[lead(at)] = lead(other)
    return [lead(at) for at in range(len(cases))]


def cross_validate(
    cases: Sequence[SignalCase], l2: float, threshold: float
) -> dict[tuple[str, str], signals.Signal]:
    """What is said of each case (by id and text) by weights that were not fitted to it or its like."""
    groups = alike(cases)
    order = np.random.default_rng(0).permutation(sorted(set(groups)))
    fold = {int(group): at % _FOLDS for at, group in enumerate(order)}
    said: dict[tuple[str, str], signals.Signal] = {}
    for number in range(_FOLDS):
        known = [case for case, group in zip(cases, groups, strict=True) if fold[group] != number]
        weights = weights_from(learn(known, l2, threshold))
        for case, group in zip(cases, groups, strict=True):
            if fold[group] == number:
                said[case.id, case.text] = signals.detect(case.history, case.text, weights)
    return said


def report(
    cases: Sequence[SignalCase], said: Mapping[tuple[str, str], signals.Signal]
) -> dict[str, Figures | float]:
    """Figures by language, and how often the kind of a signal is right where there is one."""
    by_lang = {
        lang: figures(
            (case.invalidates, said[case.id, case.text].invalidates) for case in cases if case.lang == lang
        )
        for lang in sorted({case.lang for case in cases})
    }
    hit = [case for case in cases if case.invalidates and said[case.id, case.text].invalidates]
    right = sum(said[case.id, case.text].kind == case.label for case in hit)
    return {**by_lang, "kind right": right / max(1, len(hit))}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", type=Path)
    parser.add_argument("--l2", type=float, default=1.0)
    parser.add_argument("--threshold", type=float, default=0.65)
    parser.add_argument("--write", action="store_true", help=f"write {WEIGHTS.name}")
    options = parser.parse_args()
    given, ours = read(options.cases), read(EXAMPLES)
    said = cross_validate([*given, *ours], options.l2, options.threshold)
    print(json.dumps({options.cases.name: report(given, said), EXAMPLES.name: report(ours, said)}, indent=1))
    if options.write:
        learned = learn([*given, *ours], options.l2, options.threshold)
        WEIGHTS.write_text(json.dumps(learned, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
