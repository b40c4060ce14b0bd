"""Many sessions ask the same things in other words, over the same knowledge text: what each way of answering
costs until the first token, and in bytes of keys and values.

Three arms, each in a process of its own with its own database, Valkey and workers, asked through the door
that the chat uses: the engine by itself, with prefix reuse, and Reprise (stored answers, canonical history
and prefix reuse). Questions come one after the other: every session asks its first, then every session its
second, and so on. The engine by itself is asked by fewer sessions, since none helps another there.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from benchmarks.island import KNOWLEDGE, QUESTIONS, WORDINGS, asked
from benchmarks.report import percentile, report, show, target
from launch.embedded import Embedded
from launch.options import REPOSITORY

if TYPE_CHECKING:
    from inference.models import Generation
    from inference.understanding.turns import Turn

ARMS = {
    "plain": {"CACHE_ENABLED": "0", "KV_BUDGET_MIB": "0"},
    # More than is ever needed: what is measured is how much it takes, not what fits.
    "prefix": {"CACHE_ENABLED": "0", "KV_BUDGET_MIB": "16384"},
    "reprise": {"CACHE_ENABLED": "1", "KV_BUDGET_MIB": "16384"},
}
SETTINGS = {
    "DJANGO_SETTINGS_MODULE": "config.settings.local",
    "SYSTEM_PROMPT": "Answer from the text below in one short sentence.",
    "MAX_TOKENS": "64",
    # Conversations this short are shown whole.
    "CONTEXT_TURNS": "10",
    "SUMMARY_STEP": "20",
    "LOG_LEVEL": "WARNING",
}
TTFT_GOAL, KV_GOAL = 0.78, 0.59
PATIENCE_SECONDS = 300.0


# --- one arm, in its own process ----------------------------------------------------------------------


@dataclass
class Session:
    """One conversation."""

    id: uuid.UUID = field(default_factory=uuid.uuid4)
    turns: "list[Turn]" = field(default_factory=list)
    generations: list[uuid.UUID | None] = field(default_factory=list)


@contextmanager
def workers() -> Iterator[None]:
    """Both kinds of worker, in this process, where their engine can be asked what it holds."""
    from celery.contrib.testing.worker import start_worker
    from celery.signals import worker_ready

    from config.celery import app

    with start_worker(
        app,
        pool="threads",
        concurrency=4,
        queues="answer,generate",
        loglevel="WARNING",
        perform_ping_check=False,
        shutdown_timeout=30.0,
    ) as worker:
        # Which this kind of worker leaves out.
        worker_ready.send(sender=worker.consumer)  # type: ignore[attr-defined]
        yield


def warm_up() -> None:
    """The first forward pass sets the engine up; nothing of it is kept."""
    from inference.engine import engine
    from inference.engines.base import Request, Sampling

    list(engine().stream(Request("warm-up", [{"role": "user", "content": "Hello"}], Sampling(max_tokens=4))))
    engine().reset()


def ask(session: Session, text: str) -> "Generation":
    """Ask and wait for the whole answer. Raises RuntimeError for one that failed or never came."""
    from django.db import transaction

    from inference import service
    from inference.models import OPEN, Generation, Status

    turns: list[Turn] = [*session.turns, {"role": "user", "content": text}]
    with transaction.atomic():
        generation = service.ask(session.id, turns, generations=[*session.generations, None])
    deadline = time.monotonic() + PATIENCE_SECONDS
    while generation.status in OPEN and time.monotonic() < deadline:
        time.sleep(0.01)
        generation = Generation.objects.defer("question").get(pk=generation.pk)
    if generation.status != Status.COMPLETE:
        raise RuntimeError(f"{text!r} was not answered: {generation.status} {generation.error_code}")
    session.turns = [*turns, {"role": "assistant", "content": generation.text}]
    session.generations = [*session.generations, None, generation.pk]
    return generation


def run_arm(sessions: int, questions: int, wordings: int) -> dict[str, Any]:
    from inference.engine import engine

    warm_up()
    talks = [Session() for _ in range(sessions)]
    answers: list[Generation] = []
    for place in range(questions):
        for number, talk in enumerate(talks):
            answers.append(ask(talk, asked(number, place, wordings)))
            _progress(len(answers), sessions * questions)
    kv = engine().kv_report()
    return _figures(answers, _wrong(answers, sessions)) | {
        "sessions": sessions,
        "kv_bytes": kv.get("stored_bytes", 0),
        "kv_evicted": kv.get("stored_evicted", 0),
        "tokens_of_a_conversation": round(mean(engine().count_tokens(talk.turns) for talk in talks)),
        "knowledge_tokens": engine().count_tokens([{"role": "system", "content": KNOWLEDGE}]),
    }


def _wrong(answers: "list[Generation]", sessions: int) -> int:
    """How many were answered with, or paired with, an entry that is the answer to another question."""
    from inference.models import Generation

    stored = Generation.objects.filter(pk__in=[answer.pk for answer in answers], entry__isnull=False)
    entries = dict(stored.values_list("pk", "entry_id"))
    born: dict[uuid.UUID, int] = {}
    return sum(
        born.setdefault(entries[answer.pk], at // sessions) != at // sessions
        for at, answer in enumerate(answers)
        if answer.pk in entries
    )


def _figures(answers: "list[Generation]", wrong: int) -> dict[str, Any]:
    waited = [float(answer.first_token_ms or 0) for answer in answers]
    computed = [answer for answer in answers if answer.served_by == "model"]
    read = sum(answer.prompt_tokens for answer in computed)
    return {
        "answers": len(answers),
        "first_token_ms": {
            "mean": round(mean(waited), 1),
            "p50": round(percentile(waited, 0.5), 1),
            "p99": round(percentile(waited, 0.99), 1),
        },
        "done_ms_mean": round(mean(float(answer.total_ms or 0) for answer in answers), 1),
        "served_by": dict(Counter(answer.served_by for answer in answers)),
        "wrong_hits": wrong,
        "cut_short": sum(answer.finish_reason == "length" for answer in answers),
        "prompt_tokens_from_kv": round(sum(answer.cached_tokens for answer in computed) / read, 4)
        if read
        else 0,
    }


def _progress(done: int, of: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done}/{of}", end="" if done < of else "\n", file=sys.stderr, flush=True)


def arm_main(sessions: int, questions: int, wordings: int) -> None:
    """What the process of one arm does; prints its figures as JSON."""
    from launch.embedded import on_demand

    with on_demand():
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        with workers():
            found = run_arm(sessions, questions, wordings)
    print(json.dumps(found))


# --- all arms ---------------------------------------------------------------------------------------


def measure(sessions: int, plain_sessions: int, questions: int, wordings: int) -> dict[str, Any]:
    from inference.kv.shape import Shape

    arms = {
        name: _arm(name, plain_sessions if name == "plain" else sessions, questions, wordings)
        for name in ARMS
    }
    per_token = Shape.of_model(_model_dir(), "bfloat16").bytes_per_token
    plain = arms["plain"]
    # What the sessions would hold if each kept its own keys and values.
    whole = plain["knowledge_tokens"] + plain["tokens_of_a_conversation"]
    plain["kv_bytes"] = whole * sessions * per_token
    prefix, reprise = arms["prefix"], arms["reprise"]
    return {
        "sessions": sessions,
        "questions": questions,
        "wordings": wordings or "all unique",
        "bytes_per_token": per_token,
        "arms": arms,
        "first_token_saved": _saved(prefix["first_token_ms"]["mean"], reprise["first_token_ms"]["mean"]),
        "kv_saved": _saved(prefix["kv_bytes"], reprise["kv_bytes"]),
        "first_token_saved_against_plain": _saved(
            plain["first_token_ms"]["mean"], reprise["first_token_ms"]["mean"]
        ),
        "kv_saved_against_plain": _saved(plain["kv_bytes"], reprise["kv_bytes"]),
    }


def _saved(before: float, after: float) -> float:
    return round(1 - after / before, 4) if before else 0.0


def _model_dir() -> Path:
    var = Path(os.environ.get("VAR_DIR") or REPOSITORY / "var")
    return Path(os.environ.get("MODEL_DIR") or var / "models" / "smollm2-135m-instruct").resolve()


def _arm(name: str, sessions: int, questions: int, wordings: int) -> dict[str, Any]:
    """Raises RuntimeError, with the end of what it wrote, when the arm's process fails."""
    var_dir = Path(tempfile.mkdtemp(prefix="reprise-benchmark-"))
    knowledge = var_dir / "knowledge.txt"
    knowledge.write_text(KNOWLEDGE, encoding="utf-8")
    # Services of its own, whatever the caller's environment points to.
    clean = {key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "REDIS_URL")}
    own = {"VAR_DIR": str(var_dir), "MODEL_DIR": str(_model_dir()), "KNOWLEDGE_FILE": str(knowledge)}
    size = map(str, (sessions, questions, wordings))
    command = [sys.executable, "-m", "benchmarks.shared_sessions", "--arm", *size]
    try:
        ended = subprocess.run(
            command,
            cwd=REPOSITORY,
            env=clean | SETTINGS | ARMS[name] | own,
            stdout=subprocess.PIPE,
            stderr=None if sys.stderr.isatty() else subprocess.PIPE,
            text=True,
        )
        if ended.returncode:
            raise RuntimeError(f"The arm {name} failed:\n{(ended.stderr or '')[-3000:]}")
        return dict(json.loads(ended.stdout.splitlines()[-1]))
    finally:
        Embedded(var_dir).discard()  # should the process have ended without
        shutil.rmtree(var_dir, ignore_errors=True)


def targets(found: dict[str, Any]) -> list[dict[str, Any]]:
    first, kv = found["first_token_saved"], found["kv_saved"]
    wrong = found["arms"]["reprise"]["wrong_hits"]
    return [
        target(
            "mean time to first token, less than prefix reuse alone", first, ">= 0.78", first >= TTFT_GOAL
        ),
        target("bytes of keys and values, less than prefix reuse alone", kv, ">= 0.59", kv >= KV_GOAL),
        target("answers of another question", wrong, "0", wrong == 0),
    ]


def lines(found: dict[str, Any]) -> list[str]:
    rows = [
        f"{found['sessions']} sessions, {found['questions']} questions each, wordings: {found['wordings']}"
    ]
    for name, arm in found["arms"].items():
        served = ", ".join(f"{count} {by}" for by, count in sorted(arm["served_by"].items()))
        first = arm["first_token_ms"]
        rows.append(
            f"{name:8} first token mean {first['mean']} ms (p50 {first['p50']}, p99 {first['p99']}), "
            f"keys and values {arm['kv_bytes'] / 2**20:.1f} MiB; {served}"
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shared_sessions", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="about a minute: 4 sessions, 4 questions each")
    parser.add_argument("--sessions", type=int, default=40)
    parser.add_argument(
        "--wordings",
        type=int,
        default=WORDINGS,
        choices=range(WORDINGS + 1),
        help="in how many ways a question is asked, the likeliest most often (default: %(default)s); "
        "0: no two sessions spell it alike",
    )
    parser.add_argument("--arm", type=int, nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.arm:
        arm_main(*chosen.arm)
        return
    sessions, plain, questions = (4, 1, 4) if chosen.quick else (chosen.sessions, 2, len(QUESTIONS))
    found = measure(sessions, plain, questions, chosen.wordings)
    show(report("shared_sessions", found, targets(found), quick=chosen.quick), chosen.json, lines)


if __name__ == "__main__":
    main()
