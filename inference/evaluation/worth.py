"""What a replayed log says of the cache: how much it would answer, how rightly, and what that saves."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from inference.calibration.bounds import interval
from inference.understanding.script import HAN

from .replaying import Asked

Tokens = Callable[[str], int]

# What a chat template adds to each turn, about.
_PER_TURN = 4
# Shares of questions with an equivalent, at which the advice changes.
HARDLY, SURELY = 0.30, 0.60


def estimated_tokens(text: str) -> int:
    """Without a tokenizer: a Chinese character is about one token, and so are four other ones."""
    han = len(HAN.findall(text))
    return han + (len(text) - han + 3) // 4


@dataclass(frozen=True)
class Speed:
    """How long an answer takes of which the log doesn't say it: completion tokens a second."""

    tokens_per_second: float


def report(asked: Sequence[Asked], tokens: Tokens, speed: Speed) -> dict[str, Any]:
    """All figures of a replay, with and without the cache."""
    costs = [_cost(one, tokens, speed) for one in asked]
    without, with_cache = (
        _summed(costs),
        _summed(cost for one, cost in zip(asked, costs, strict=True) if not one.served),
    )
    lookups = [one.lookup_ms for one in asked]
    with_cache["seconds"] = round(with_cache["seconds"] + sum(lookups) / 1000, 3)
    return {
        **figures(asked),
        "by_class": _grouped(asked, lambda one: f"{one.language}/{one.content_class}"),
        "without_cache": without,
        "with_cache": with_cache,
        "saved": {
            "seconds": round(without["seconds"] - with_cache["seconds"], 3),
            "seconds_share": _ratio(without["seconds"] - with_cache["seconds"], without["seconds"]),
            "tokens": _tokens(without) - _tokens(with_cache),
            "tokens_share": _ratio(_tokens(without) - _tokens(with_cache), _tokens(without)),
        },
        "lookup_ms": {
            "p50": round(float(np.percentile(lookups or [0.0], 50)), 2),
            "p99": round(float(np.percentile(lookups or [0.0], 99)), 2),
        },
    }


def figures(asked: Sequence[Asked]) -> dict[str, Any]:
    """Hits, and what the log's own answers say of them; shares with their 95% intervals."""
    hits = [one for one in asked if one.served]
    said = Counter(one.verdict for one in hits)
    near = [one for one in asked if one.outcome == "near"]
    return {
        "questions": len(asked),
        "bypassed": sum(one.outcome == "bypass" for one in asked),
        "hits": len(hits),
        "hit_share": share(len(hits), len(asked)),
        "by_layer": dict(Counter("gray" if one.outcome == "gray" else one.layer for one in hits)),
        "right": said["agree"],
        "wrong": said["disagree"],
        "unknown": len(hits) - said["agree"] - said["disagree"],
        "wrong_share": share(said["disagree"], said["agree"] + said["disagree"]),
        "near": len(near),
        "learned": sum(one.verdict == "agree" for one in near),
    }


def share(part: int, whole: int) -> list[float] | None:
    """The share and its 95% interval; None of nothing."""
    return [round(value, 4) for value in (part / whole, *interval(part, whole))] if whole else None


def _grouped(asked: Sequence[Asked], name: Callable[[Asked], str]) -> dict[str, Any]:
    groups = defaultdict[str, list[Asked]](list)
    for one in asked:
        groups[name(one)].append(one)
    return {key: figures(groups[key]) for key in sorted(groups)}


@dataclass(frozen=True)
class _Cost:
    """Of answering one question by the model."""

    prompt: int
    completion: int
    seconds: float


def _cost(one: Asked, tokens: Tokens, speed: Speed) -> _Cost:
    prompt = sum(tokens(turn["content"]) + _PER_TURN for turn in one.question.turns)
    completion = tokens(one.question.answer) if one.question.answer else 0
    seconds = one.seconds if one.seconds is not None else completion / speed.tokens_per_second
    return _Cost(prompt, completion, seconds)


def _summed(costs: Any) -> dict[str, Any]:
    every = list(costs)
    return {
        "answers": len(every),
        "prompt_tokens": sum(cost.prompt for cost in every),
        "completion_tokens": sum(cost.completion for cost in every),
        "seconds": round(sum(cost.seconds for cost in every), 3),
    }


def _tokens(summed: dict[str, Any]) -> int:
    return int(summed["prompt_tokens"] + summed["completion_tokens"])


def _ratio(part: float, whole: float) -> float | None:
    return round(part / whole, 4) if whole else None


# --- is it worth it? --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prices:
    """Of 1,000 tokens of prompts and of answers, and of the cache itself in the time in which `questions` are
    asked; all in one currency. `questions` None: the log's own number."""

    prompt: float
    completion: float
    cache: float = 0.0
    questions: float | None = None


def assess(asked: Sequence[Asked], tokens: Tokens, prices: Prices | None = None) -> dict[str, Any]:
    """How many questions had an equivalent earlier in the log, by language and class, what to make of it,
    and, with prices, what it saves against what it costs."""
    found = _equivalents(asked)
    by = {
        kind: {
            key: _equivalents([one for one in asked if name(one) == key])
            for key in sorted({name(one) for one in asked})
        }
        for kind, name in _KINDS.items()
    }
    money = None if prices is None else _money(asked, tokens, prices)
    return {**found, **by, "advice": advice(found["share"]), "money": money}


_KINDS: dict[str, Callable[[Asked], str]] = {
    "by_class": lambda one: one.content_class,
    "by_language": lambda one: one.language,
    "by_language_and_class": lambda one: f"{one.language}/{one.content_class}",
}


def _equivalents(asked: Sequence[Asked]) -> dict[str, Any]:
    equivalent = sum(one.has_equivalent for one in asked)
    return {
        "questions": len(asked),
        "cacheable": sum(one.outcome != "bypass" for one in asked),
        "equivalent": equivalent,
        "share": share(equivalent, len(asked)),
        "served": sum(one.served for one in asked),
        "open": sum(one.outcome == "near" and not one.has_equivalent for one in asked),
    }


_ADVICE = {
    "no": "Few questions come again: the cache saves little. Reuse of prefixes may do more.",
    "perhaps": "A fair part comes again: try it in shadow, and look at what an answer costs.",
    "yes": "Most questions come again: the cache is worth it.",
    "unknown": "There are no questions in this log.",
}


def advice(share_of: list[float] | None) -> dict[str, str]:
    """By the share of questions with an equivalent, and whether the log is long enough to say so."""
    verdict = _advised(share_of[0]) if share_of else "unknown"
    sure = not share_of or all(_advised(end) == verdict for end in share_of[1:])
    more = "" if sure else " A longer log would say it more surely."
    return {"verdict": verdict, "text": _ADVICE[verdict] + more}


def _advised(share_of: float) -> str:
    return "no" if share_of < HARDLY else "yes" if share_of > SURELY else "perhaps"


def _money(asked: Sequence[Asked], tokens: Tokens, prices: Prices) -> dict[str, Any]:
    """By proportion: as the log's questions are to all of the period, so is what they save."""
    saved = sum(_price(one, tokens, prices) for one in asked if one.has_equivalent)
    spent = sum(_price(one, tokens, prices) for one in asked)
    questions = prices.questions if prices.questions is not None else float(len(asked))
    times = questions / len(asked) if asked else 0.0
    each = saved / len(asked) if asked else 0.0
    return {
        "questions": questions,
        "spent_without": round(spent * times, 4),
        "saved": round(saved * times, 4),
        "cache_costs": prices.cache,
        "gain": round(saved * times - prices.cache, 4),
        "worth_it": saved * times > prices.cache,
        "break_even_questions": round(prices.cache / each) if each else None,
    }


def _price(one: Asked, tokens: Tokens, prices: Prices) -> float:
    cost = _cost(one, tokens, Speed(1.0))
    return (cost.prompt * prices.prompt + cost.completion * prices.completion) / 1000
