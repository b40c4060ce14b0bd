"""vLLM's part of benchmarks.decode: a server of the same model, on all cores, asked over HTTP."""

import json
import secrets
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import vllm_server
from benchmarks.report import target, unmeasured
from inference.understanding.turns import Turn

WINDOW = 2048
# Compiling its graph takes vLLM minutes on two cores; --vllm compares with a server that was given them.
OPTIONS = {"max_num_seqs": 8, "enforce_eager": True}


class Vllm:
    """Writes the answers to `turns(number)`, `tokens` each, in blocks that no earlier answer has filled."""

    def __init__(self, url: str, tokens: int, turns: Callable[[int], list[Turn]]) -> None:
        self._url, self._tokens, self._turns = url.rstrip("/"), tokens, turns
        with urllib.request.urlopen(f"{self._url}/v1/models", timeout=10) as answer:
            self._model = json.load(answer)["data"][0]["id"]

    def read(self, number: int) -> int:
        """How many tokens this answer had. Raises RuntimeError if the server says that part of its prompt was
        not read anew."""
        body = {
            "model": self._model,
            "messages": self._turns(number),
            "max_tokens": self._tokens,
            "temperature": 0,
            "cache_salt": f"decode-{secrets.token_hex(8)}",
        }
        request = urllib.request.Request(
            f"{self._url}/v1/chat/completions",
            json.dumps(body).encode(),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=600) as answer:
            usage = json.load(answer)["usage"]
        if (usage.get("prompt_tokens_details") or {}).get("cached_tokens"):
            raise RuntimeError(f"vLLM has not read the whole prompt: {usage}")
        return int(usage["completion_tokens"])


@contextmanager
def server(model_dir: Path, url: str | None, quick: bool) -> Iterator[str | None]:
    """The address to ask: the one given, or that of a server started for this run; None where vLLM is not
    installed, or the run is to be quick (it takes half a minute to start)."""
    if url or quick or not vllm_server.installed():
        yield url
        return
    with vllm_server.serving(model_dir, WINDOW, **OPTIONS) as started:
        yield started


def targets(ours: dict[str, float], vllm: dict[str, float] | None, quick: bool) -> list[dict[str, Any]]:
    """Tokens per second by number of sessions, of the torch engine and of vLLM."""
    goals = (
        ("1 session, torch engine / vLLM on CPU", "1", 1.0),
        ("8 sessions, torch engine / vLLM on CPU", "8", 0.8),
    )
    if vllm is None:
        why = "not part of a quick run" if quick else vllm_server.NOT_INSTALLED
        return [unmeasured(name, f">= {least}x", why) for name, _, least in goals]
    ratios = [(name, ours[n] / vllm[n], least) for name, n, least in goals]
    return [target(name, ratio, f">= {least}x", ratio >= least) for name, ratio, least in ratios]
