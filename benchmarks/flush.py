"""What a flush of a large scope costs those who are served from another: how long their exact hits take
before and while it runs, and how much memory the flushing process takes.

`python -m benchmarks.flush --json [--quick] [--entries N]`. It fills the database of DATABASE_URL (or an
embedded one in a folder of its own, which is deleted) and empties it again. Hits are asked by threads, as
answer workers would; the flush is a process of its own, `manage.py flush_cache --yes` with its defaults.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Event, Thread
from typing import Any

from benchmarks.database import migrated
from benchmarks.lookup_questions import question
from benchmarks.report import percentile, report, show, spread, target

_KEPT_ENTRIES = 1_000
_THREADS = 2
# One person at each thread, who asks again as soon as they have read; without a pause two threads would keep
# both cores of a small machine busy, and every other process would be measured along with the flush.
_THINKING_SECONDS = 0.01


def main() -> None:
    options = _options()
    with migrated("flush"):
        found = measure(options)
    show(report("flush", found, _targets(found)), options.json, _lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="few entries, under a minute")
    parser.add_argument("--entries", type=int, default=200_000, help="entries to flush")
    parser.add_argument("--seconds", type=float, default=20, help="of traffic before the flush")
    parser.add_argument("--pause", type=float, default=None, help="of the flush; default: its own")
    parser.add_argument("--batch", type=int, default=None, help="of the flush; default: its own")
    options = parser.parse_args()
    if options.quick:
        options.entries, options.seconds = 4_000, 5
    return options


def measure(options: argparse.Namespace) -> dict[str, Any]:
    from benchmarks.flush_rows import Flushed

    entries, seconds = options.entries, options.seconds
    filled = Flushed(entries, _KEPT_ENTRIES)
    try:
        with _Traffic(filled) as traffic:
            traffic.run_for(2)  # connections, plans, pages
            before = traffic.run_for(seconds)
            flush = _Flush(filled.doomed.hash, pause=options.pause, batch=options.batch)
            during = traffic.run_until(flush.has_ended)
            after = traffic.run_for(min(seconds, 5))
        flush.check()
        left = filled.count()
    finally:
        filled.empty()
    return {
        "entries": entries,
        "left": left,
        "hits_ms": {"before": spread(before), "during": spread(during), "after": spread(after)},
        "ratio": round(percentile(during, 0.99) / percentile(before, 0.99), 2),
        "flush_seconds": round(flush.seconds, 1),
        "flushed_per_second": round(entries / flush.seconds, 1),
        "memory_mib": flush.memory,
    }


def _targets(found: dict[str, Any]) -> list[dict[str, Any]]:
    ratio, memory, left = found["ratio"], found["memory_mib"], found["left"]
    grown = memory["end"] - memory["early"]
    return [
        target("p99 of exact hits in another scope, during against before", ratio, "<= 2x", ratio <= 2),
        target("memory of the flush from its first tenth to its end, MiB", grown, "<= 16", grown <= 16),
        target("entries left in the flushed scope", left["doomed"], "0", left["doomed"] == 0),
        target("entries kept in the other", left["kept"], f"{_KEPT_ENTRIES}", left["kept"] == _KEPT_ENTRIES),
    ]


class _Traffic:
    """Threads that ask exact questions in the scope that is kept, each answered from its entry."""

    def __init__(self, filled: Any) -> None:
        self._filled = filled
        self._times: list[float] = []
        self._over = Event()
        self._failed: list[BaseException] = []
        self._threads = [Thread(target=self._ask, args=(at,), daemon=True) for at in range(_THREADS)]

    def __enter__(self) -> "_Traffic":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def run_for(self, seconds: float) -> list[float]:
        """Milliseconds of the hits of the next `seconds`."""
        until = time.monotonic() + seconds
        return self.run_until(lambda: time.monotonic() > until)

    def run_until(self, ended: Any) -> list[float]:
        first = len(self._times)
        while not ended():
            time.sleep(0.05)
            if self._failed:
                raise self._failed[0]
        return self._times[first:]

    def _ask(self, seed: int) -> None:
        from django.db import connection

        pick = random.Random(seed)
        try:
            while not self._over.is_set():
                text = question(pick.randrange(_KEPT_ENTRIES))
                started = time.perf_counter()
                self._filled.hit(text)
                self._times.append((time.perf_counter() - started) * 1000)
                time.sleep(_THINKING_SECONDS)
        except BaseException as error:
            self._failed.append(error)
        finally:
            connection.close()


class _Flush:
    """`manage.py flush_cache` as a process of its own, whose memory is looked at while it runs."""

    def __init__(self, scope: str, **how: float | None) -> None:
        more = [
            word for name, value in how.items() if value is not None for word in (f"--{name}", str(value))
        ]
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process that writes it
        self._started = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "manage.py", "flush_cache", "--scope", scope[:64], "--yes", *more],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            cwd=Path(__file__).parent.parent,
        )
        self._samples: list[tuple[float, float]] = []
        self.seconds = 0.0

    def has_ended(self) -> bool:
        if self._process.poll() is not None:
            self.seconds = self.seconds or time.monotonic() - self._started
            return True
        self._samples.append((time.monotonic() - self._started, _resident_mib(self._process.pid)))
        return False

    def check(self) -> None:
        """Raises RuntimeError, with what it said, where it failed."""
        if self._process.returncode:
            self._log.seek(0)
            said = self._log.read()[-2000:]
            raise RuntimeError(f"flush_cache ended with {self._process.returncode}: {said}")

    @property
    def memory(self) -> dict[str, float]:
        """MiB: after its first tenth, when everything is loaded; at the end; and the most there was."""
        early = [mib for at, mib in self._samples if at <= max(5.0, self.seconds / 10)]
        last = [mib for _, mib in self._samples[-20:]]
        most = max(mib for _, mib in self._samples)
        return {"early": round(max(early), 1), "end": round(max(last), 1), "most": round(most, 1)}


def _resident_mib(pid: int) -> float:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


def _lines(found: dict[str, Any]) -> list[str]:
    return [f"{name}: {json.dumps(value)}" for name, value in found.items()]


if __name__ == "__main__":
    main()
