import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from inference.kv.ledger import CONTEXTS, Ledger
from inference.kv.shape import ITEM_BYTES, Shape


class Command(BaseCommand):
    help = (
        "Says what keys and values weigh for the model in MODEL_DIR: bytes per token, and what a card that "
        "shares nothing between sessions would need at each context length."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--model-dir", type=Path, default=Path(settings.MODEL_DIR))
        parser.add_argument("--dtype", choices=sorted(ITEM_BYTES), default="bfloat16")
        parser.add_argument("--sessions", type=int, default=1, help="at the same time; default: 1")
        parser.add_argument(
            "--context", type=int, nargs="+", default=list(CONTEXTS), help="tokens of each session"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["sessions"] < 1 or min(options["context"]) < 1:
            raise CommandError("--sessions and --context are at least 1.")
        try:
            shape = Shape.of_model(options["model_dir"], options["dtype"])
        except (OSError, ValueError) as problem:
            raise CommandError(f"No model to read in {options['model_dir']}: {problem}") from problem
        found = _figures(shape, options["sessions"], options["context"])
        self.stdout.write(json.dumps(found, indent=2) if options["json"] else "\n".join(_lines(found)))


def _figures(shape: Shape, sessions: int, contexts: list[int]) -> dict[str, Any]:
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


def _lines(found: dict[str, Any]) -> list[str]:
    first = (
        f"2 × {found['layers']} layers × {found['kv_heads']} heads × {found['head_dim']} × "
        f"{found['item_bytes']} bytes = {found['bytes_per_token']:,} bytes per token"
    )
    sessions = found["sessions"]
    whose = "1 session" if sessions == 1 else f"{sessions} sessions that share nothing"
    rows = [
        f"  {need['tokens']:>9,} tokens: {need['bytes'] / 2**20:>12,.1f} MiB for {whose}"
        for need in found["needs"]
    ]
    return [first, *rows]
