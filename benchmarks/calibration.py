"""Does calibration keep its word? On streams whose error is known, thresholds are fitted 200 times to fresh
lookups; how often do they let more wrong answers through than the target allows?

    python -m benchmarks.calibration [--json] [--quick]
"""

import argparse
from typing import Any

import numpy as np

from benchmarks.report import report, show, target
from inference.calibration.fitting import Goal, Kind, fit
from inference.calibration.streams import STREAMS, Stream

SIZES = (500, 2_000, 10_000)
PRESENT: dict[Kind, float] = {"high": 0.985, "low": 0.90, "likely": 0.97}


def measured(stream: Stream, size: int, repetitions: int, goal: Goal) -> dict[str, Any]:
    """How often the realised share of wrong hits was above the target, and what the thresholds served."""
    shares, served, certified = [], [], 0
    for seed in range(repetitions):
        pairs = stream.draw(size, np.random.default_rng([seed, size]))
        found = fit(pairs, PRESENT, goal)
        # Only what is certified promises anything: the other kind is not served at all here.
        low, high = (
            1.01 if found.kinds[kind].certified is None else found.thresholds[kind]
            for kind in ("low", "high")
        )
        certified += low <= 1 or high <= 1
        share, wrong = stream.realised(high, low)
        served.append(share)
        shares.append(wrong)
    over = np.array(shares) > goal.target
    return {
        "repetitions": repetitions,
        "exceeded": int(over.sum()),
        "exceeded_share": round(float(over.mean()), 4),
        "certified_share": round(certified / repetitions, 4),
        "mean_wrong_share": round(float(np.mean(shares)), 5),
        "worst_wrong_share": round(float(np.max(shares)), 5),
        "mean_served": round(float(np.mean(served)), 4),
        "best_served": round(best(stream, goal), 4),
    }


def best(stream: Stream, goal: Goal) -> float:
    """The most that could be served by who knew each kind's error exactly."""
    total = 0.0
    for weight, kind in ((stream.agreeing, stream.agree), (1 - stream.agreeing, stream.strict)):
        able = [kind.above(t) for t in np.arange(0.5, 1.0, 0.001)]
        total += weight * max((share for share, wrong in able if wrong <= goal.target * share), default=0.0)
    return total


def run(repetitions: int, sizes: tuple[int, ...]) -> dict[str, Any]:
    goal = Goal()
    found = {
        stream.name: {str(size): measured(stream, size, repetitions, goal) for size in sizes}
        for stream in STREAMS
    }
    rows = [row for sizes_of in found.values() for row in sizes_of.values()]
    worst = max(row["exceeded_share"] for row in rows)
    targets = [
        target("share of repetitions above the target, in the worst stream", worst, "<= 0.05", worst <= 0.05)
    ]
    more = {"target": goal.target, "confidence": goal.confidence}
    return report("calibration", {"streams": found}, targets, **more)


def lines(found: dict[str, Any]) -> list[str]:
    head = (
        f"{'stream':<12}{'lookups':>9}{'exceeded':>10}{'certified':>11}{'wrong':>9}{'served':>9}{'best':>9}"
    )
    rows = [
        f"{name:<12}{size:>9}{row['exceeded_share']:>10.3f}{row['certified_share']:>11.3f}"
        f"{row['mean_wrong_share']:>9.4f}{row['mean_served']:>9.3f}{row['best_served']:>9.3f}"
        for name, sizes in found["streams"].items()
        for size, row in sizes.items()
    ]
    return [head, *rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="40 repetitions, fewer lookups")
    options = parser.parse_args()
    found = run(40, SIZES[:2]) if options.quick else run(200, SIZES)
    show(found, options.json, lines)


if __name__ == "__main__":
    main()
