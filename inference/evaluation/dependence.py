"""How well dependence is told and dependent questions are written out.

Two kinds of files. Messages (`{"lang", "history", "text", "dependent"}`, and if known `"resolved"`, `"same"`,
`"different"`): precision, recall and F1 of the verdict, how often it is sure that a message stands alone, and
how often the question as resolved is nearer to one of its `same` than to every one of its `different`. Cases
(see cases.py): how often the nearest seed, by resolved questions alone, is the case's own, and how many hits
that would give at a precision of 0.95.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inference.embedding import Embedder
from inference.evaluation.cases import Case, parse_case
from inference.evaluation.jsonl import Row, read_rows
from inference.understanding import standalone
from inference.understanding.context import Context, careful, read_context
from inference.understanding.turns import Turn

Progress = Callable[[str, int, int], None]

_BATCH = 32


@dataclass(frozen=True)
class Message:
    """One message in its conversation, and what is known of it. `same` are other wordings of what it means,
    `different` what it could wrongly be taken for."""

    lang: str
    history: tuple[Turn, ...]
    text: str
    dependent: bool
    resolved: str
    same: tuple[str, ...]
    different: tuple[str, ...]


def read(path: Path) -> list[Message | Case]:
    """The lines of either kind of file. Raises OSError, and BadCase with the line's number."""
    return read_rows(path, _row)


def _row(row: Row) -> Message | Case:
    return parse_case(row) if "seed" in row else _message(row)


def _message(row: Row) -> Message:
    turns: list[Turn] = [{"role": turn["role"], "content": str(turn["content"])} for turn in row["history"]]
    return Message(
        lang=str(row["lang"]),
        history=tuple(turns),
        text=str(row["text"]),
        dependent=bool(row["dependent"]),
        resolved=str(row.get("resolved", row["text"])),
        same=tuple(map(str, row.get("same", ()))),
        different=tuple(map(str, row.get("different", ()))),
    )


def _quiet(what: str, done: int, total: int) -> None:
    """Nobody watches."""


def _embedded(texts: Sequence[str], embedder: Embedder, progress: Progress) -> dict[str, Any]:
    """Every text once, with its vector."""
    unique = list(dict.fromkeys(texts))
    found: dict[str, Any] = {}
    for at in range(0, len(unique), _BATCH):
        batch = unique[at : at + _BATCH]
        found |= dict(zip(batch, embedder.embed(batch), strict=True))
        progress("embedding", min(at + _BATCH, len(unique)), len(unique))
    return found


# --- messages ---------------------------------------------------------------------------------------


def evaluate_messages(
    messages: Sequence[Message], embedder: Embedder, progress: Progress = _quiet
) -> dict[str, Any]:
    """`{"overall": F, "by_lang": {lang: F}, "milliseconds": …}`; F has the binary question's `n`,
    `precision`, `recall`, `f1`; the share of those that stand alone that are surely seen to (`alone`), and
    of the dependent ones (`torn_off`); and `nearest`, the share whose resolved question is nearer to its same
    than to its different: of all that have one, of the dependent ones, and (`nearest_written`) of the
    questions as people resolved them."""
    ask = embedder.embed if standalone.knows(embedder.identity) else None
    started = time.perf_counter()
    read = [
        read_context([*each.history, {"role": "user", "content": each.text}], vectors=ask)
        for each in messages
    ]
    milliseconds = (time.perf_counter() - started) * 1000 / max(1, len(messages))
    texts = [text for each in messages for text in (each.resolved, *each.same, *each.different)]
    vectors = _embedded([*texts, *(context.resolved for context in read)], embedder, progress)
    judged = [_judge(each, context, vectors) for each, context in zip(messages, read, strict=True)]
    languages = sorted({each.lang for each in messages})
    return {
        "overall": _figures(judged),
        "by_lang": {
            lang: _figures([row for row, each in zip(judged, messages, strict=True) if each.lang == lang])
            for lang in languages
        },
        "milliseconds": round(milliseconds, 3),
    }


@dataclass(frozen=True)
class _Judged:
    """`nearest` and `nearest_written` are None where there is nothing to be near to."""

    dependent: bool
    verdict: bool
    alone: bool
    nearest: bool | None
    nearest_written: bool | None


def _judge(message: Message, context: Context, vectors: dict[str, Any]) -> _Judged:
    def nearest(text: str) -> bool | None:
        if not message.same:
            return None
        same = max((float(vectors[text] @ vectors[other]) for other in message.same), default=0.0)
        different = max((float(vectors[text] @ vectors[other]) for other in message.different), default=-1.0)
        return same > different

    found = context.dependence
    alone = not careful(context).dependence.dependent
    return _Judged(
        message.dependent, found.dependent, alone, nearest(context.resolved), nearest(message.resolved)
    )


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _figures(judged: Sequence[_Judged]) -> dict[str, Any]:
    right = sum(row.dependent and row.verdict for row in judged)
    said, are = sum(row.verdict for row in judged), sum(row.dependent for row in judged)
    alone = [row.alone for row in judged if not row.dependent]
    torn_off = [row.alone for row in judged if row.dependent]
    near = [row for row in judged if row.nearest is not None]
    leaning = [row for row in near if row.dependent]
    return {
        "n": len(judged),
        "precision": _share(right, said),
        "recall": _share(right, are),
        "f1": _share(2 * right, said + are),
        "alone": _share(sum(alone), len(alone)),
        "torn_off": _share(sum(torn_off), len(torn_off)),
        "nearest": _share(sum(bool(row.nearest) for row in near), len(near)),
        "nearest_dependent": _share(sum(bool(row.nearest) for row in leaning), len(leaning)),
        "nearest_written": _share(sum(bool(row.nearest_written) for row in near), len(near)),
    }


# --- cases ------------------------------------------------------------------------------------------


def evaluate_cases(cases: Sequence[Case], embedder: Embedder, progress: Progress = _quiet) -> dict[str, Any]:
    """`{"overall": F, "by_class": {class: F}}`; F has `n`, `own_first` (of the cases that expect a hit,
    the share whose nearest seed is their own), and overall `recall_at_95` with its `threshold` (None if no
    threshold gives a precision of 0.95)."""
    seeds: dict[tuple[tuple[str, str], ...], str] = {}
    for case in cases:
        seeds.setdefault(_said(case), read_context(case.seed[:-1]).resolved)
    probes = [read_context(case.probe).resolved for case in cases]
    vectors = _embedded([*seeds.values(), *probes], embedder, progress)
    index = {said: at for at, said in enumerate(seeds)}
    stored = np.stack([vectors[text] for text in seeds.values()])
    found = []
    for case, probe in zip(cases, probes, strict=True):
        scores = stored @ vectors[probe]
        own = scores[index[_said(case)]]
        # Two seeds may be one question; whichever is found first, the answer is the same question's.
        found.append((float(scores.max()), bool(own >= scores.max() - 1e-6), case.expect == "hit", case.kind))
    classes = sorted({kind for *_, kind in found})
    return {
        "overall": {**_own_first(found), **_at_precision(found, 0.95)},
        "by_class": {kind: _own_first([row for row in found if row[3] == kind]) for kind in classes},
    }


def _said(case: Case) -> tuple[tuple[str, str], ...]:
    return tuple((turn["role"], turn["content"]) for turn in case.seed)


def _own_first(found: Sequence[tuple[float, bool, bool, str]]) -> dict[str, Any]:
    hits = [own for _, own, expected, _ in found if expected]
    return {"n": len(found), "own_first": _share(sum(hits), len(hits))}


def _at_precision(found: Sequence[tuple[float, bool, bool, str]], wanted: float) -> dict[str, Any]:
    """The most hits that any one threshold gives at that precision. A hit on a case that expects none, or on
    another case's seed, is a wrong one."""
    expected = sum(expects for _, _, expects, _ in found)
    best, threshold, right = 0, None, 0
    for at, (score, own, expects, _) in enumerate(sorted(found, key=lambda row: -row[0]), 1):
        right += own and expects
        if right / at >= wanted and right > best:
            best, threshold = right, round(score, 4)
    return {"recall_at_95": _share(best, expected), "threshold": threshold}
