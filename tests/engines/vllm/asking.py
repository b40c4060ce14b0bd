"""A process that holds vLLM: a question on each line of stdin, its answer or error on stdout."""

import json
import sys
from pathlib import Path

from inference.engines.base import Delta, EngineUnavailable, Request, Sampling
from inference.engines.vllm import VllmEngine


def main() -> None:
    engine = VllmEngine(Path(sys.argv[1]), window=512, options={"enforce_eager": True, "block_size": 32})
    say({"ready": True})
    for line in sys.stdin:
        try:
            turns = [{"role": "user", "content": line.strip()}]
            for event in engine.stream(Request("r", turns, Sampling(max_tokens=200))):
                if isinstance(event, Delta):
                    say({"text": event.text})
            say({"done": True})
        except EngineUnavailable as problem:
            say({"unavailable": str(problem)})


def say(what: dict[str, object]) -> None:
    print("SAID", json.dumps(what), flush=True)


if __name__ == "__main__":  # vLLM's own processes import this file again
    main()
