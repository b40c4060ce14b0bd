"""Tokens per second, written for 1, 4 and 8 conversations at once.

The embedded engine in bf16 against transformers' `generate` (greedy, with its cache; several conversations as
one left-padded batch), in alternation, and against a vLLM server of the same model, where .venv-vllm is
installed or --vllm names one. Prompts are short, and everybody reads them anew in every round: what was kept
of the round before would be a start that only some of them have. That time counts, and of the tokens only
those written. Of several short rounds the best counts, since what else the machine does can only slow one
down; the medians are told too.
"""

import argparse
import itertools
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.prefix_reuse import default_model_dir
from benchmarks.report import report, show, target
from benchmarks.vllm_decode import Vllm, server
from benchmarks.vllm_decode import targets as vllm_targets
from inference.engines.base import Finished, Request, Sampling
from inference.engines.torch import TorchEngine
from inference.understanding.turns import Turn

SESSIONS = (1, 4, 8)
SUBJECTS = ("a lighthouse", "a bakery", "a train", "a garden", "a river", "a library", "a clock", "a ship")


def turns(number: int) -> list[Turn]:
    subject = SUBJECTS[number % len(SUBJECTS)]
    return [{"role": "user", "content": f"Write a very long story about {subject}, with many details."}]


class Embedded:
    def __init__(self, model_dir: Path, tokens: int) -> None:
        self._engine = TorchEngine(model_dir)
        self._tokens = tokens
        self._salts = itertools.count()

    def write(self, sessions: int) -> tuple[int, float]:
        """Tokens written and seconds taken. Raises RuntimeError if part of a prompt was not read anew."""
        salts = [f"decode-{next(self._salts)}" for _ in range(sessions)]
        finished: list[int] = []

        def read(number: int) -> None:
            sampling = Sampling(max_tokens=self._tokens)
            request = Request(f"{number}", turns(number), sampling, cache_salt=salts[number])
            *_, last = self._engine.stream(request)
            assert isinstance(last, Finished)
            if last.cached_tokens == 0:
                finished.append(last.completion_tokens)

        return _timed(read, sessions, finished)


class Generate:
    """transformers by itself."""

    def __init__(self, model_dir: Path, tokens: int) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._tokenizer: Any = AutoTokenizer.from_pretrained(model_dir, padding_side="left")
        self._model: Any = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.bfloat16)
        self._tokens = tokens

    def write(self, sessions: int) -> tuple[int, float]:
        began = time.perf_counter()
        texts = [
            self._tokenizer.apply_chat_template(turns(number), tokenize=False, add_generation_prompt=True)
            for number in range(sessions)
        ]
        prompt = self._tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)
        whole = self._model.generate(
            **prompt,
            max_new_tokens=self._tokens,
            do_sample=False,
            eos_token_id=[2, 0],
            pad_token_id=2,
        )
        fresh = whole[:, prompt["input_ids"].shape[1] :].tolist()
        count = sum(row.index(2) + 1 if 2 in row else len(row) for row in fresh)
        return count, time.perf_counter() - began


class Served:
    """A vLLM server."""

    def __init__(self, vllm: Vllm) -> None:
        self._vllm = vllm

    def write(self, sessions: int) -> tuple[int, float]:
        finished: list[int] = []
        return _timed(lambda number: finished.append(self._vllm.read(number)), sessions, finished)


def _timed(read: Callable[[int], None], sessions: int, finished: list[int]) -> tuple[int, float]:
    """`read` in a thread each; the tokens of all that finished, and the seconds until the last had."""
    threads = [threading.Thread(target=read, args=(number,)) for number in range(sessions)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(finished) != sessions:
        raise RuntimeError(f"only {len(finished)} of {sessions} answers came behind a prompt read anew")
    return sum(finished), time.perf_counter() - began


# What the precision is tried on, word by word: the model's own subject matter, and some that isn't.
TEXT = (
    "The lighthouse stood on the last rock before the open sea. Every evening the keeper climbed 214 steps, "
    "lit the lamp, and wrote the hour into a book. 灯塔建于一八八七年。 One night, in 1931, a ship answered. "
    "The capital of France is Paris. def light(hours): return [hour for hour in hours if hour > 18]. He "
    "wrote it down."
)


def precision(model_dir: Path) -> dict[str, Any]:
    """How far logits in bf16 are from transformers' in fp32, after every token of TEXT: ours, and
    transformers' own."""
    import torch
    from transformers import AutoModelForCausalLM

    from inference.engines.forward import Model
    from inference.engines.tokenizer import ChatTokenizer

    ids = ChatTokenizer(model_dir).encode_plain(TEXT)

    def of_transformers(dtype: torch.dtype) -> torch.Tensor:
        model: Any = AutoModelForCausalLM.from_pretrained(model_dir, dtype=dtype)
        with torch.inference_mode():
            return model(torch.tensor([ids])).logits[0].float()

    ours = Model(model_dir, "bfloat16", None)
    buffer = ours.new_buffer(len(ids))
    exact = of_transformers(torch.float32)
    bf16 = {
        "torch_engine": torch.cat([ours.step([(buffer, [token])]) for token in ids]).float(),
        "transformers": of_transformers(torch.bfloat16),
    }
    return {
        name: {
            "mean_off": round((logits - exact).abs().mean().item(), 3),
            "most_off": round((logits - exact).abs().max().item(), 3),
            "same_likeliest_token": round((logits.argmax(-1) == exact.argmax(-1)).float().mean().item(), 3),
        }
        for name, logits in bf16.items()
    }


def bandwidth() -> float:
    """Bytes a second that this machine reads from memory: 512 MiB added up, the best of several goes."""
    import torch

    numbers = torch.ones(2**27)
    best = 0.0
    for _ in range(12):
        began = time.perf_counter()
        numbers.sum()
        best = max(best, numbers.nbytes / (time.perf_counter() - began))
    return best


def limit(model_dir: Path) -> dict[str, float]:
    """What a step by itself takes at least: it reads every weight once."""
    read = sum(file.stat().st_size for file in model_dir.glob("*.safetensors"))
    return {"gigabytes_per_second": round(bandwidth() / 1e9, 2), "weights_gigabytes": round(read / 1e9, 3)}


def measure(model_dir: Path, vllm: str | None, tokens: int, rounds: int) -> dict[str, Any]:
    writers: dict[str, Embedded | Generate | Served] = {
        "torch_engine": Embedded(model_dir, tokens),
        "transformers_generate": Generate(model_dir, tokens),
    }
    if vllm:
        writers["vllm_cpu"] = Served(Vllm(vllm, tokens, turns))
    for writer in writers.values():
        writer.write(max(SESSIONS))  # warm
    speeds: dict[str, dict[int, list[float]]] = {name: {n: [] for n in SESSIONS} for name in writers}
    for _ in range(rounds):
        for sessions in SESSIONS:
            for name, writer in writers.items():
                count, seconds = writer.write(sessions)
                speeds[name][sessions].append(count / seconds)
    return {
        "tokens_each": tokens,
        "rounds": rounds,
        "tokens_per_second": {
            name: {str(n): round(max(found), 1) for n, found in by_count.items()}
            for name, by_count in speeds.items()
        },
        "median_tokens_per_second": {
            name: {str(n): round(median(found), 1) for n, found in by_count.items()}
            for name, by_count in speeds.items()
        },
        "memory": limit(model_dir),
        "bf16_logits_against_fp32": precision(model_dir),
    }


def targets(found: dict[str, Any], quick: bool) -> list[dict[str, Any]]:
    speeds = found["tokens_per_second"]
    ours, plain, vllm = speeds["torch_engine"], speeds["transformers_generate"], speeds.get("vllm_cpu")
    over_plain, together = ours["1"] / plain["1"], ours["8"] / ours["1"]
    return [
        target("1 session, torch engine / generate", over_plain, ">= 1.5x", over_plain >= 1.5),
        target("torch engine, 8 sessions together / 1", together, ">= 4x", together >= 4),
        *vllm_targets(ours, vllm, quick),
    ]


def lines(found: dict[str, Any]) -> list[str]:
    rows = [
        f"tokens per second, {found['tokens_each']} tokens each:",
        f"{'sessions':>24}" + "".join(f"{n:>9}" for n in SESSIONS),
    ]
    for name, by_count in found["tokens_per_second"].items():
        rows.append(f"{name.replace('_', ' '):>24}" + "".join(f"{speed:>9}" for speed in by_count.values()))
    memory, one = found["memory"], found["tokens_per_second"]["torch_engine"]["1"]
    most = memory["gigabytes_per_second"] / memory["weights_gigabytes"]
    rows.append(
        f"memory gives {memory['gigabytes_per_second']} GB/s: the weights {most:.0f} times a second at most; "
        f"one session of the torch engine comes to {one / most:.0%} of that"
    )
    for name, off in found["bf16_logits_against_fp32"].items():
        rows.append(
            f"{name.replace('_', ' '):>24} in bf16 against fp32: logits off by {off['mean_off']} in the "
            f"mean, {off['most_off']} at most; the same likeliest token in {off['same_likeliest_token']:.1%}"
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decode", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="under a minute: one round of 24 tokens each")
    parser.add_argument("--vllm", metavar="URL", help="a server of the same model to compare with")
    parser.add_argument("--model-dir", type=Path, default=default_model_dir(), help="default: %(default)s")
    chosen = parser.parse_args()
    tokens, rounds = (24, 1) if chosen.quick else (64, 6)
    with server(chosen.model_dir, chosen.vllm, chosen.quick) as vllm:
        found = measure(chosen.model_dir, vllm, tokens, rounds)
    show(report("decode", found, targets(found, chosen.quick), quick=chosen.quick), chosen.json, lines)


if __name__ == "__main__":
    main()
