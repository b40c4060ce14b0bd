"""vLLM's part of benchmarks.prefix_reuse: the same conversations, with its prefix caching on and off.

Two servers, one after the other, asked through our vllm engine. The answers of the first are what the second
one's prompts hold too.
"""

from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import vllm_server
from benchmarks.prefix_reuse import MEASURED, TURNS, conversation, first_token
from benchmarks.report import target, unmeasured
from inference.engines.base import Finished
from inference.engines.vllm import VllmEngine
from inference.understanding.turns import Turn

WINDOW = 8192
# The smallest blocks that its CPU attention knows; only whole ones are reused, and its default is 128. Eager
# starts minutes sooner on a busy machine, and reading a prompt gains nothing from compiling.
OPTIONS = {"block_size": 32, "max_num_seqs": 8, "enforce_eager": True}


def measure(model_dir: Path, conversations: int, tokens: int) -> dict[str, Any] | None:
    """None where vLLM is not installed."""
    if not vllm_server.installed():
        return None
    on, prompts, finishes = _with_caching(model_dir, conversations, tokens)
    off = _without_caching(model_dir, prompts)
    prompt = sum(one.prompt_tokens for one in finishes)
    return {
        "first_token_ms": {
            "vllm_caching_on": {str(turn): round(median(on[turn]), 1) for turn in MEASURED},
            "vllm_caching_off": {str(turn): round(median(off[turn]), 1) for turn in MEASURED},
        },
        "prompt_tokens_at_the_end": finishes[-1].prompt_tokens,
        "prompt_tokens_from_kv": round(sum(one.cached_tokens for one in finishes) / prompt, 4),
        "ratio_at_the_end": round(median(off[TURNS]) / median(on[TURNS]), 2),
        "growth_from_5_to_20": round(_around(on, TURNS) / _around(on, 5), 2),
    }


def _with_caching(
    model_dir: Path, conversations: int, tokens: int
) -> tuple[dict[int, list[float]], list[tuple[int, list[Turn]]], list[Finished]]:
    """Milliseconds by turn; the prompts to ask again, with their turn; how each turn finished."""
    waits: dict[int, list[float]] = {turn: [] for turn in range(1, TURNS + 1)}
    prompts, finishes = [], []
    with vllm_server.serving(model_dir, WINDOW, enable_prefix_caching=True, **OPTIONS) as url:
        engine = _warm(model_dir, url)
        for number in range(conversations):
            for turn, (turns, waited, finished) in enumerate(conversation(engine, number, tokens), 1):
                waits[turn].append(waited)
                finishes.append(finished)
                if turn in MEASURED:
                    prompts.append((turn, turns))
        engine.close()
    return waits, prompts, finishes


def _without_caching(model_dir: Path, prompts: list[tuple[int, list[Turn]]]) -> dict[int, list[float]]:
    waits: dict[int, list[float]] = {turn: [] for turn in MEASURED}
    with vllm_server.serving(model_dir, WINDOW, enable_prefix_caching=False, **OPTIONS) as url:
        engine = _warm(model_dir, url)
        for turn, turns in prompts:
            waits[turn].append(first_token(engine, turns, 1, "without")[0])
        engine.close()
    return waits


def _warm(model_dir: Path, url: str) -> VllmEngine:
    engine = VllmEngine(model_dir, url=url)
    first_token(engine, [{"role": "user", "content": "Hello"}], 2, "warm-up")
    return engine


def _around(found: dict[int, list[float]], turn: int) -> float:
    """As in benchmarks.prefix_reuse: the median of the turn and the two beside it."""
    near = range(turn - 2, turn + 1) if turn == TURNS else range(turn - 1, turn + 2)
    return median(value for one in near for value in found[one])


def targets(found: dict[str, Any] | None, why: str = vllm_server.NOT_INSTALLED) -> list[dict[str, Any]]:
    """`why` is said where nothing was measured."""
    names = (
        ("vLLM: time to first token at turn 20, caching off / on", ">= 10x"),
        ("vLLM: time to first token with caching, turn 20 / turn 5", "< 1.5x"),
        ("vLLM: prompt tokens served from KV", ">= 0.9"),
    )
    if found is None:
        return [unmeasured(name, goal, why) for name, goal in names]
    ratio, growth = found["ratio_at_the_end"], found["growth_from_5_to_20"]
    share = found["prompt_tokens_from_kv"]
    values = ((ratio, ratio >= 10), (growth, growth < 1.5), (share, share >= 0.9))
    return [
        target(name, value, goal, holds) for (name, goal), (value, holds) in zip(names, values, strict=True)
    ]
