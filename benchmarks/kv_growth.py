"""Whether memory stays where it is: 2,000 generations of 236 conversations, 256 MiB of keys and values.

All conversations share a long system prompt; eight are answered at any time. They begin one after the other
and end after ten turns, so that conversations of every length are open once the first has ended: were all to
grow together, memory would grow with them and show nothing. Each is told a word of its own in its first
question, which no other may ever read.
"""

import argparse
import itertools
import random
import string
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import torch

from benchmarks.prefix_reuse import default_model_dir
from benchmarks.report import report, show, target
from inference.engines.base import Delta, Request, Sampling
from inference.engines.batching import CHUNK
from inference.engines.torch import MIB, TorchEngine
from inference.kv.buffers import BLOCK
from inference.understanding.turns import Turn

AT_ONCE = 8
ANSWER_TOKENS = 8
SYSTEM = "You keep one word for each person who writes, and tell it to nobody else. " * 12
FIRST = "My word is {word}. Remember it, please, and say it back to me now."
LATER = "This is question {turn}: say my word again, and something kind about the number {turn}."


def word(session: int) -> str:
    """Eight letters that no garbled word of somebody else's comes to by chance."""
    return "".join(random.Random(session).choices(string.ascii_lowercase, k=8))


def schedule(turns: int) -> Iterator[tuple[int, int]]:
    """Which conversation is asked next, and which of its turns that is, without end. Before one is asked
    again, AT_ONCE others begin; so no AT_ONCE in a row have one twice."""
    for newest in itertools.count():
        for turn in range(turns):
            if (session := newest - AT_ONCE * turn) >= 0:
                yield session, turn


def touched_bytes(kv: torch.Tensor) -> int:
    """What has been written of buffers (layers, …, positions, head_dim), in whole blocks, by what lies in
    them: memory that was never written, or went back to the system, is zeros."""
    blocks = kv.view(*kv.shape[:-2], -1, BLOCK, kv.shape[-1])
    written = sum(int((layer != 0).flatten(-2).any(-1).sum()) for layer in blocks)
    return written * BLOCK * kv.shape[-1] * kv.itemsize


class Growth:
    def __init__(self, engine: TorchEngine, asked: list[tuple[int, int]]) -> None:
        """`asked`: the conversations in the order in which they are asked, and their turns."""
        self._engine = engine
        self._asked = asked
        self.sessions = len({session for session, _ in asked})
        self._turns: dict[int, list[Turn]] = {}
        self._words = {word(session) for session, _ in asked}
        self.told_to_others = 0
        self.resident: list[int] = []
        self.resident_when_full: list[int] = []
        self.ledger_off = 0
        self.evicted_in_use = 0
        self._watch_evictions()
        self.prompt = self.cached = 0

    def _watch_evictions(self) -> None:
        store = self._engine._store
        assert store is not None
        remove = store._remove

        def watched(scope: str, leaf: Any) -> int:
            self.evicted_in_use += leaf.locks > 0
            return remove(scope, leaf)

        store._remove = watched  # type: ignore[method-assign]

    def answer(self, session: int, turn: int) -> None:
        text = LATER.format(turn=turn) if turn else FIRST.format(word=word(session))
        told: list[Turn] = [{"role": "system", "content": SYSTEM}]
        turns: list[Turn] = [*self._turns.get(session, told), {"role": "user", "content": text}]
        request = Request(
            f"{session}.{turn}", turns, Sampling(max_tokens=ANSWER_TOKENS), session=f"session {session}"
        )
        said = ""
        for event in self._engine.stream(request):
            if isinstance(event, Delta):
                said += event.text
            else:
                self.prompt += event.prompt_tokens
                self.cached += event.cached_tokens
        self._turns[session] = [*turns, {"role": "assistant", "content": said}]
        self.told_to_others += any(one in said for one in self._words - {word(session)})

    def warm(self) -> None:
        """Passes of every size, behind ever more keys, until all the code is there that oneDNN keeps."""
        model = self._engine._model
        buffer = model.new_buffer(2048)
        for tokens in range(1, CHUNK + 1):
            if model._rows(tokens) == tokens:
                model.step([(buffer, [1] * tokens)])

    def look(self) -> None:
        """When nothing is computed."""
        store = self._engine._store
        assert store is not None
        self.resident.append(psutil.Process().memory_info().rss)
        if store.evicted:
            self.resident_when_full.append(self.resident[-1])
        idle = sum(touched_bytes(one.buffer.kv) for one in self._engine._buffers._idle)
        real = store.real_bytes() + idle
        self.ledger_off = max(self.ledger_off, abs(real - self._engine.ledger.total))

    def run(self) -> None:
        whole = len(self._asked)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for start in range(0, whole, AT_ONCE):
                batch = self._asked[start : start + AT_ONCE]
                list(pool.map(lambda one: self.answer(*one), batch))
                self.look()
                if start % (10 * AT_ONCE) == 0:
                    resident = self.resident[-1] / MIB
                    done = f"{start + len(batch)} of {whole}"
                    print(f"{done}: {resident:.1f} MiB resident", file=sys.stderr, flush=True)


def measure(model_dir: Path, generations: int, turns: int, budget: int) -> dict[str, Any]:
    """`generations` answers, of conversations of `turns` turns each."""
    engine = TorchEngine(model_dir, kv_budget=budget)
    growth = Growth(engine, list(itertools.islice(schedule(turns), generations)))
    growth.warm()
    growth.run()
    # Warm is what has been full once: before the first eviction the store is meant to grow.
    full = growth.resident_when_full or growth.resident[-1:]
    tenth = max(1, len(full) // 10)
    return {
        "generations": generations,
        "sessions": growth.sessions,
        "budget_bytes": budget,
        "resident_mib_when_first_full": round(median(full[:tenth]) / MIB, 1),
        "resident_mib_at_the_end": round(median(full[-tenth:]) / MIB, 1),
        "resident_mib_by_tenths": [
            round(growth.resident[at * (len(growth.resident) - 1) // 10] / MIB, 1) for at in range(11)
        ],
        "resident_mib_at_most": round(max(growth.resident) / MIB, 1),
        "ledger_off_by_bytes": growth.ledger_off,
        "evicted_while_in_use": growth.evicted_in_use,
        "words_told_to_others": growth.told_to_others,
        "prompt_tokens_from_kv": round(growth.cached / growth.prompt, 4),
        "kv": engine.kv_report(),
    }


def targets(found: dict[str, Any]) -> list[dict[str, Any]]:
    grown = found["resident_mib_at_the_end"] / found["resident_mib_when_first_full"]
    kept = found["kv"]["stored_bytes"] / found["budget_bytes"]
    return [
        target("resident memory, end / when first full", grown, "<= 1.05", grown <= 1.05),
        target("ledger off by, bytes", found["ledger_off_by_bytes"], "0", found["ledger_off_by_bytes"] == 0),
        target("evicted while in use", found["evicted_while_in_use"], "0", not found["evicted_while_in_use"]),
        target("words told to others", found["words_told_to_others"], "0", not found["words_told_to_others"]),
        target("stored / budget", kept, "<= 1", kept <= 1),
    ]


def lines(found: dict[str, Any]) -> list[str]:
    return [
        f"{found['generations']} generations over {found['sessions']} sessions; resident MiB: "
        f"{found['resident_mib_when_first_full']} when first full, "
        f"{found['resident_mib_at_the_end']} at the end, {found['resident_mib_at_most']} at most",
        f"{found['kv']['stored_evicted']} evictions; {found['prompt_tokens_from_kv']:.1%} of prompts from KV",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kv_growth", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="under a minute: 96 generations of 36 conversations of 4 turns, in 24 MiB",
    )
    parser.add_argument("--model-dir", type=Path, default=default_model_dir(), help="default: %(default)s")
    chosen = parser.parse_args()
    found = measure(chosen.model_dir, *((96, 4, 24 * MIB) if chosen.quick else (2000, 10, 256 * MIB)))
    show(report("kv_growth", found, targets(found), quick=chosen.quick), chosen.json, lines)


if __name__ == "__main__":
    main()
