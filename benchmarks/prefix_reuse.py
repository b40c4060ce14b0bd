"""How long a long conversation waits for its first token, when what was read before is not read again.

Conversations of 20 turns, about 4,000 tokens at the end, with the embedded engine in bf16. The answers are
the model's own, and each question is asked with all that was said before it. At turns 5, 10, 15 and 20 the
same prompt is also given to the same engine without a store, and to transformers' `generate`. Where there is
a .venv-vllm, vLLM has the same conversations with its prefix caching on and off.
"""

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.report import report, show, target
from inference.engines.base import Delta, Engine, Finished, Request, Sampling
from inference.engines.torch import TorchEngine
from inference.understanding.turns import Turn

TURNS = 20
MEASURED = (5, 10, 15, 20)
SYSTEM = "You are the assistant of a small workshop that repairs bicycles. Answer clearly and briefly."
PLACES = ("harbour", "station", "market", "school", "library", "mill", "park", "bridge", "museum", "tower")
PARTS = ("chain", "brake", "saddle", "pedal", "wheel", "handlebar", "light", "bell", "gear", "tyre")
# As in a chat: some 15 tokens are asked, and up to 175 answered, so that 20 turns come to about 4,000.
QUESTION = "Explain in detail how to repair the {part} of bicycle {n} after {km} kilometres near the {place}."


def question(conversation: int, turn: int) -> str:
    n = conversation * TURNS + turn
    return QUESTION.format(n=n, part=PARTS[(n * 7) % 10], km=900 + 37 * n, place=PLACES[(n * 3) % 10])


def first_token(engine: Engine, turns: list[Turn], tokens: int, name: str) -> tuple[float, str, Finished]:
    """Milliseconds to the first text, the whole text, and how it finished."""
    request = Request(name, turns, Sampling(max_tokens=tokens), cache_salt="benchmark", session=name)
    began, first, text = time.perf_counter(), None, ""
    for event in engine.stream(request):
        if isinstance(event, Delta):
            first = first or time.perf_counter()
            text += event.text
        else:
            finished = event
    return ((first or time.perf_counter()) - began) * 1000, text, finished


class Plain:
    """transformers by itself."""

    def __init__(self, model_dir: Path) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._torch = torch
        self._tokenizer: Any = AutoTokenizer.from_pretrained(model_dir)
        self._model: Any = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.bfloat16)

    def first_token(self, turns: list[Turn]) -> float:
        began = time.perf_counter()
        prompt = self._tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_tensors="pt")
        self._model.generate(
            **prompt, max_new_tokens=1, do_sample=False, pad_token_id=self._tokenizer.eos_token_id
        )
        return (time.perf_counter() - began) * 1000


def conversation(engine: Engine, number: int, tokens: int) -> Iterator[tuple[list[Turn], float, Finished]]:
    """Turn by turn: the prompt, milliseconds to its first token, and how it finished."""
    turns: list[Turn] = [{"role": "system", "content": SYSTEM}]
    for turn in range(1, TURNS + 1):
        turns = [*turns, {"role": "user", "content": question(number, turn)}]
        waited, text, finished = first_token(engine, turns, tokens, f"conversation {number}")
        yield turns, waited, finished
        turns = [*turns, {"role": "assistant", "content": text}]


def measure(model_dir: Path, conversations: int, tokens: int) -> dict[str, Any]:
    reusing, reading, plain = TorchEngine(model_dir), TorchEngine(model_dir, kv_budget=0), Plain(model_dir)
    for engine in (reusing, reading):
        first_token(engine, [{"role": "user", "content": "Hello"}], 2, "warm-up")
    reuse: dict[int, list[float]] = {turn: [] for turn in range(1, TURNS + 1)}
    without: dict[int, list[float]] = {turn: [] for turn in MEASURED}
    generate: dict[int, list[float]] = {turn: [] for turn in MEASURED}
    prompt = cached = last = 0
    for number in range(conversations):
        for turn, (turns, waited, finished) in enumerate(conversation(reusing, number, tokens), 1):
            reuse[turn].append(waited)
            prompt += finished.prompt_tokens
            cached += finished.cached_tokens
            last = finished.prompt_tokens
            if turn in MEASURED:
                without[turn].append(first_token(reading, turns, 1, "without")[0])
                generate[turn].append(plain.first_token(turns))
    return {
        "conversations": conversations,
        "turns": TURNS,
        "prompt_tokens_at_the_end": last,
        "prompt_tokens_from_kv": round(cached / prompt, 4),
        "first_token_ms": {
            "with_reuse": _medians(reuse, MEASURED),
            "without_reuse": _medians(without, MEASURED),
            "transformers_generate": _medians(generate, MEASURED),
        },
        "ratio_at_the_end": round(median(without[TURNS]) / median(reuse[TURNS]), 2),
        "growth_from_5_to_20": round(_around(reuse, TURNS) / _around(reuse, 5), 2),
        "stored_bytes": reusing.kv_report()["stored_bytes"],
    }


def _medians(found: dict[int, list[float]], turns: tuple[int, ...]) -> dict[str, float]:
    return {str(turn): round(median(found[turn]), 1) for turn in turns}


def _around(found: dict[int, list[float]], turn: int) -> float:
    """The median of the turn and the two beside it, or before it at the end: one prompt is a little longer
    than the next."""
    near = range(turn - 2, turn + 1) if turn == TURNS else range(turn - 1, turn + 2)
    return median(value for one in near for value in found[one])


def targets(found: dict[str, Any]) -> list[dict[str, Any]]:
    ratio, growth, share = (
        found["ratio_at_the_end"],
        found["growth_from_5_to_20"],
        found["prompt_tokens_from_kv"],
    )
    return [
        target("time to first token at turn 20, without reuse / with", ratio, ">= 10x", ratio >= 10),
        target("time to first token with reuse, turn 20 / turn 5", growth, "< 1.5x", growth < 1.5),
        target("prompt tokens served from KV", share, ">= 0.9", share >= 0.9),
    ]


def lines(found: dict[str, Any]) -> list[str]:
    rows = [
        f"{found['conversations']} conversations of {found['turns']} turns, "
        f"{found['prompt_tokens_at_the_end']} tokens at the end; first token, ms:",
        f"{'turn':>24}" + "".join(f"{turn:>9}" for turn in MEASURED),
    ]
    vllm = (found["vllm"] or {}).get("first_token_ms", {})
    for name, by_turn in {**found["first_token_ms"], **vllm}.items():
        rows.append(f"{name.replace('_', ' '):>24}" + "".join(f"{value:>9}" for value in by_turn.values()))
    return rows


def default_model_dir() -> Path:
    var = Path(os.environ.get("VAR_DIR") or "var")
    return Path(os.environ.get("MODEL_DIR") or var / "models" / "smollm2-135m-instruct")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prefix_reuse", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="under a minute: 1 conversation instead of 3")
    parser.add_argument("--conversations", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--without-vllm", action="store_true", help="only the embedded engine")
    parser.add_argument("--model-dir", type=Path, default=default_model_dir(), help="default: %(default)s")
    chosen = parser.parse_args()
    from benchmarks import vllm_prefix_reuse as vllm  # which asks as this module does

    size = (1, 16) if chosen.quick else (chosen.conversations, 175)
    found = measure(chosen.model_dir, *size)
    left_out = chosen.quick or chosen.without_vllm
    found["vllm"] = None if left_out else vllm.measure(chosen.model_dir, *size)
    why = {"why": "not part of this run"} if left_out else {}
    stated = [*targets(found), *vllm.targets(found["vllm"], **why)]
    show(report("prefix_reuse", found, stated, quick=chosen.quick), chosen.json, lines)


if __name__ == "__main__":
    main()
