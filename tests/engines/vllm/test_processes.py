"""vLLM's processes: one that dies is started anew, and none outlives the worker it belongs to."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest


class Holder:
    """A running tests.engines.vllm.asking."""

    def __init__(self, model_dir: Path) -> None:
        self._others: set[psutil.Process] = set()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.engines.vllm.asking", str(model_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, question: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(question + "\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout
        for line in self.process.stdout:
            if line.startswith("SAID "):
                heard: dict[str, Any] = json.loads(line[5:])
                return heard
        raise AssertionError("it ended")

    def hear_all(self) -> list[dict[str, Any]]:
        """Up to the end of an answer."""
        heard = [self.hear()]
        while "text" in heard[-1]:
            heard.append(self.hear())
        return heard

    def others(self) -> list[psutil.Process]:
        """Its processes, remembered for `stop`."""
        self._others |= set(psutil.Process(self.process.pid).children(recursive=True))
        return [one for one in self._others if one.is_running()]

    def stop(self) -> None:
        if self.process.poll() is None:
            self.others()
        self.process.kill()
        for one in self._others:
            if one.is_running():
                one.kill()
        self.process.communicate()


@pytest.fixture
def holder(model_dir: Path) -> Iterator[Holder]:
    holding = Holder(model_dir)
    yield holding
    holding.stop()


def test_a_dead_vllm_is_started_anew_and_none_outlives_its_worker(holder: Holder) -> None:
    assert holder.hear() == {"ready": True}
    holder.ask("Write the numbers from one to a hundred as words.")
    assert "text" in holder.hear()
    for one in holder.others():
        if "EngineCore" in " ".join(one.cmdline()) or "EngineCore" in one.name():
            one.kill()
    assert "unavailable" in holder.hear_all()[-1]

    holder.ask("What is the capital of France?")
    heard = holder.hear_all()
    assert heard[-1] == {"done": True}
    assert "Paris" in "".join(one.get("text", "") for one in heard)

    others = holder.others()
    assert len(others) >= 2
    holder.process.kill()
    holder.process.wait()
    deadline = time.monotonic() + 20
    while left := [one for one in others if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]:
        assert time.monotonic() < deadline, left
        time.sleep(0.2)
