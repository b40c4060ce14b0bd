"""How the comparison of answers judges labelled pairs: two answers, and the questions they were given to."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.cache import agreement
from inference.cache.agreement import Agreement, Answer, Asked
from inference.cache.logistic import Features
from inference.embedding import embed
from inference.models import Verdict
from inference.understanding.comparison import overlap_of
from inference.understanding.fingerprint import compare, fingerprint
from inference.understanding.normalise import normalise

from .cases import Case
from .jsonl import Row, read_rows
from .pair_measures import weights_of

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Pair:
    """`stored` was the answer to `stored_question`, `fresh` is one to `question`; `label` is agree only if
    serving the one for the other is right. Of the part `tune` thresholds were read, of `measure` not."""

    id: str
    lang: str
    label: str
    kind: str
    part: str
    question: str
    stored_question: str
    stored: str
    fresh: str


def read(path: Path) -> list[Pair]:
    """The pairs of a JSONL file. Raises OSError, and BadCase with the line's number."""
    return read_rows(path, parse)


def parse(row: Row) -> Pair:
    """Raises ValueError or KeyError for a row that is none."""
    if row["label"] not in ("agree", "disagree"):
        raise ValueError(f"label is {row['label']!r}, neither agree nor disagree")
    question = str(row["question"])
    return Pair(
        id=str(row["id"]),
        lang=str(row["lang"]),
        label=row["label"],
        kind=str(row["kind"]),
        part=str(row.get("part") or "measure"),
        question=question,
        stored_question=str(row.get("stored_question") or question),
        stored=str(row["stored"]),
        fresh=str(row["fresh"]),
    )


def judge(pair: Pair) -> Agreement:
    """The verdict, as the live code comes to it for a question without a history."""
    stored, fresh = _answers(pair)
    return agreement.judge(stored, fresh, _asked(pair))


def _asked(pair: Pair) -> Asked:
    asked, other = fingerprint(pair.question), fingerprint(pair.stored_question)
    return Asked(
        compare(asked, other),
        same=normalise(pair.question) == normalise(pair.stored_question),
        texts=(pair.question, pair.stored_question),
        words=agreement.words_of(asked, other),
        near=overlap_of(asked, other).near,
    )


def _answers(pair: Pair) -> tuple[Answer, Answer]:
    vectors = embed([pair.stored, pair.fresh])
    stored, fresh = (None, None) if vectors is None else vectors
    return Answer(pair.stored, stored), Answer(pair.fresh, fresh)


def evaluate(pairs: Sequence[Pair], progress: Progress = lambda *_: None) -> dict[str, Any]:
    """Figures of all pairs, by part, and by language and kind. `precision` and `recall` are of agree,
    `disagree_precision` and `disagree_recall` of disagree; `wrong` names the pairs that were called agree and
    are none."""
    judged = []
    for at, pair in enumerate(pairs):
        progress("pairs", at, len(pairs))
        judged.append((pair, judge(pair).verdict))
    progress("pairs", len(pairs), len(pairs))
    parts, kinds = defaultdict(list), defaultdict(list)
    for pair, verdict in judged:
        parts[pair.part].append((pair, verdict))
        kinds[f"{pair.lang}/{pair.label}/{pair.kind}"].append(verdict)
    return {
        "overall": _figures(judged),
        "by_part": {part: _figures(parts[part]) for part in sorted(parts)},
        "by_kind": {kind: _counts(kinds[kind]) for kind in sorted(kinds)},
        "wrong": [pair.id for pair, verdict in judged if (verdict, pair.label) == ("agree", "disagree")],
    }


def _figures(judged: Sequence[tuple[Pair, Verdict]]) -> dict[str, Any]:
    counted = Counter((pair.label, str(verdict)) for pair, verdict in judged)
    called = {verdict: sum(counted[label, verdict] for label in ("agree", "disagree")) for verdict in Verdict}
    are = {label: sum(counted[label, verdict] for verdict in Verdict) for label in ("agree", "disagree")}
    return {
        "n": len(judged),
        "unclear": called[Verdict.UNCLEAR],
        "precision": _share(counted["agree", "agree"], called[Verdict.AGREE]),
        "recall": _share(counted["agree", "agree"], are["agree"]),
        "disagree_precision": _share(counted["disagree", "disagree"], called[Verdict.DISAGREE]),
        "disagree_recall": _share(counted["disagree", "disagree"], are["disagree"]),
    }


def _counts(verdicts: Sequence[Verdict]) -> dict[str, int]:
    counted = Counter(map(str, verdicts))
    return {"n": len(verdicts)} | {str(verdict): counted[str(verdict)] for verdict in Verdict}


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


# --- fitting --------------------------------------------------------------------------------------------

_RIDGE = 1.0


def of_cases(cases: Sequence[Case]) -> list[Pair]:
    """Cases as pairs: the stored answer, and the fresh one to what is asked now. Every second one is kept for
    measuring."""
    return [
        Pair(
            id=case.id,
            lang=case.lang,
            label="agree" if case.expect == "hit" else "disagree",
            kind=f"case/{case.kind}",
            part="measure" if at % 2 else "tune",
            question=case.probe[-1]["content"],
            stored_question=case.seed[-2]["content"],
            stored=case.answer,
            fresh=case.fresh,
        )
        for at, case in enumerate(cases)
        if case.fresh and case.answer
    ]


def fit(pairs: Sequence[Pair], progress: Progress = lambda *_: None) -> dict[str, dict[str, float]]:
    """The weights by language, fitted to the part `tune`. Identical answers are left out: there, the
    questions decide."""
    rows: dict[str, list[tuple[Features, bool]]] = defaultdict(list)
    tuned = [
        pair for pair in pairs if pair.part == "tune" and normalise(pair.stored) != normalise(pair.fresh)
    ]
    for at, pair in enumerate(tuned):
        progress("features", at, len(tuned))
        stored, fresh = _answers(pair)
        alike = agreement.likeness(stored.vector, fresh.vector)
        known = agreement.features_of(pair.stored, pair.fresh, alike, _asked(pair).words)
        said = agreement.verified(pair.stored, pair.fresh)
        if said is not None:
            rows[pair.lang].append((known | agreement.of_verifier(said), pair.label == "agree"))
    progress("features", len(tuned), len(tuned))
    return {
        lang: weights_of([known for known, _ in found], [same for _, same in found], _RIDGE)
        for lang, found in sorted(rows.items())
    }


def write(weights: Mapping[str, Mapping[str, float]]) -> None:
    """Put them where the live code reads them."""
    agreement.WEIGHTS.write_text(json.dumps(weights, indent=1, sort_keys=True) + "\n", encoding="utf-8")
