import json
from pathlib import Path
from typing import Any

import redis
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from cacheadmin.ledger_text import card_lines, worker_lines
from inference import dispatch, live_ledger
from inference.kv.ledger import CONTEXTS, Ledger
from inference.kv.shape import ITEM_BYTES, Shape


class Command(BaseCommand):
    help = (
        "Says what keys and values weigh for the model in MODEL_DIR: bytes per token, and what a card that "
        "shares nothing between sessions would need at each context length. Where workers with an engine "
        "run, says who holds how much in each of them, as of a few seconds ago: totals, and the largest "
        "scopes, sessions (by id) and requests. Starts no services."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--model-dir", type=Path, default=Path(settings.MODEL_DIR))
        parser.add_argument("--dtype", choices=sorted(ITEM_BYTES), default="bfloat16")
        parser.add_argument("--sessions", type=int, default=1, help="at the same time; default: 1")
        parser.add_argument(
            "--context", type=int, nargs="+", default=list(CONTEXTS), help="tokens of each session"
        )
        parser.add_argument("--live", action="store_true", help="fail when no worker tells what it holds")
        parser.add_argument(
            "--json", action="store_true", help='print one JSON object, with the running ones under "workers"'
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["sessions"] < 1 or min(options["context"]) < 1:
            raise CommandError("--sessions and --context are at least 1.")
        try:
            shape = Shape.of_model(options["model_dir"], options["dtype"])
        except (OSError, ValueError) as problem:
            raise CommandError(f"No model to read in {options['model_dir']}: {problem}") from problem
        card = _card(shape, options["sessions"], options["context"])
        workers = _workers(options["live"])
        if options["json"]:
            self.stdout.write(json.dumps(card | {"workers": workers}, indent=2))
            return
        self.stdout.write("\n".join(card_lines(card)))
        for worker in workers:
            self.stdout.write("\n" + "\n".join(worker_lines(worker)))


def _card(shape: Shape, sessions: int, contexts: list[int]) -> dict[str, Any]:
    needs = Ledger(shape).needs(sessions, contexts)
    return {
        "layers": shape.layers,
        "kv_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "item_bytes": shape.item_bytes,
        "bytes_per_token": shape.bytes_per_token,
        "sessions": sessions,
        "needs": [{"tokens": need.tokens, "bytes": need.bytes} for need in needs],
    }


def _workers(required: bool) -> list[dict[str, Any]]:
    """What each live worker told last. Raises CommandError when one is `required` and none has."""
    try:
        told = live_ledger.found(dispatch.SHARED)
    except redis.RedisError as problem:
        if required:
            raise CommandError(f"No live worker: Valkey can't be asked for one ({problem}).") from problem
        return []
    workers = [
        {"seat": one.seat, "age_seconds": round(one.age, 1), **one.figures} for one in told if one.figures
    ]
    if required and not workers:
        silent = f"{len(told)} worker(s) run, and none has told what it holds yet" if told else "none runs"
        raise CommandError(f"No live worker: {silent}.")
    return workers
