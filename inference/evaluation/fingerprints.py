"""How often fingerprints veto, and how often they veto what is the same.

`python -m inference.evaluation.fingerprints FILE [--json] [--part 0|1] [--show LABEL VERDICT]` reads
question groups (`{"lang", "same": [text…], "different": [{"text", "why"}…]}`) or cases (`{"lang", "class",
"expect", "seed", "probe"}`, of which the last user turns are compared), and counts verdicts.
"""

import argparse
import itertools
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from inference.evaluation.jsonl import Row, read_rows
from inference.understanding.fingerprint import Comparison, compare, fingerprint


class Pair(NamedTuple):
    """Two texts and what is known of them: `label` is "same", or why they differ."""

    language: str
    label: str
    a: str
    b: str


def read_pairs(path: Path, part: int | None = None) -> Iterator[Pair]:
    """The pairs of a file; `part` 0 or 1 takes the even or odd lines only. Raises BadCase on a line that is
    neither kind."""
    for number, pairs in enumerate(read_rows(path, _pairs_of)):
        if part is None or number % 2 == part:
            yield from pairs


def _pairs_of(row: Row) -> list[Pair]:
    if "same" in row and "different" in row and "probe" not in row:
        return list(_of_group(row))
    if "seed" in row and "probe" in row:
        label = "same" if row["expect"] == "hit" else row["class"]
        return [Pair(row["lang"], label, _question(row["seed"]), _question(row["probe"]))]
    raise ValueError("neither a question group nor a case")


def _of_group(row: dict[str, Any]) -> Iterator[Pair]:
    for a, b in itertools.combinations(row["same"], 2):
        yield Pair(row["lang"], "same", a, b)
    for other in row["different"]:
        yield Pair(row["lang"], other["why"], row["same"][0], other["text"])


def _question(turns: list[dict[str, str]]) -> str:
    return next(turn["content"] for turn in reversed(turns) if turn["role"] == "user")


def judge(pair: Pair) -> Comparison:
    """The verdict on one pair."""
    return compare(fingerprint(pair.a), fingerprint(pair.b))


def measure(pairs: list[Pair]) -> dict[str, Any]:
    """Verdicts by language and label, reasons of conflicts, and the microseconds that a fingerprint and a
    comparison take."""
    verdicts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    codes: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    reading, comparing = [], []
    for pair in pairs:
        started = time.perf_counter()
        a = fingerprint(pair.a)
        read = time.perf_counter()
        b = fingerprint(pair.b)
        again = time.perf_counter()
        comparison = compare(a, b)
        comparing.append(time.perf_counter() - again)
        reading.append(read - started)
        verdicts[pair.language, pair.label][comparison.verdict] += 1
        codes[pair.language, pair.label].update({reason.code for reason in comparison.reasons})
    figures: dict[str, Any] = {}
    for (language, label), counts in sorted(verdicts.items()):
        n = counts.total()
        figures.setdefault(language, {})[label] = {
            "n": n,
            "conflict": round(counts["conflict"] / n, 4),
            "agree": round(counts["agree"] / n, 4),
            "reasons": dict(codes[language, label].most_common()),
        }
    for language, labels in figures.items():
        different = [
            counts for (name, label), counts in verdicts.items() if name == language and label != "same"
        ]
        if n := sum(counts.total() for counts in different):
            labels["(all different)"] = {
                "n": n,
                "conflict": round(sum(counts["conflict"] for counts in different) / n, 4),
                "agree": round(sum(counts["agree"] for counts in different) / n, 4),
            }
    return {
        "by_language": figures,
        "microseconds": {"fingerprint_p50": _p50(reading), "compare_p50": _p50(comparing)},
    }


def _p50(seconds: list[float]) -> float:
    return round(sorted(seconds)[len(seconds) // 2] * 1e6, 1) if seconds else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Count the vetoes of fingerprints on a file of question groups or cases."
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--part", type=int, choices=(0, 1), help="only the even (0) or odd (1) lines")
    parser.add_argument(
        "--show", nargs=2, metavar=("LABEL", "VERDICT"), help="print the pairs of a label with that verdict"
    )
    options = parser.parse_args()
    pairs = list(read_pairs(options.file, options.part))
    if options.show:
        label, verdict = options.show
        for pair in pairs:
            if pair.label == label and (result := judge(pair)).verdict == verdict:
                print(f"{pair.a}\n{pair.b}\n    {'; '.join(result.reasons)}")
        return
    figures = measure(pairs)
    if options.json:
        print(json.dumps(figures, ensure_ascii=False))
        return
    for language, labels in figures["by_language"].items():
        for label, row in labels.items():
            reasons = " ".join(f"{code}={n}" for code, n in row.get("reasons", {}).items())
            rates = f"conflict={row['conflict']:.3f} agree={row['agree']:.3f}"
            print(f"{language} {label:18} n={row['n']:<5} {rates} {reasons}")
    print(figures["microseconds"])


if __name__ == "__main__":
    main()
