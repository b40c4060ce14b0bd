import argparse
import json
import time
import uuid
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from cacheadmin.evaluating import show_progress
from cacheadmin.logs import counting, share, talks_of
from cacheadmin.shadow_text import report_lines
from inference.cache import shadow
from inference.engine import engine
from inference.engines.base import EngineFailed, EngineUnavailable, Finished, Request, Sampling
from inference.engines.prompt import compose
from inference.evaluation import replaying, worth
from inference.evaluation.conversations import Question
from inference.models import Policy

# What the model that comes with it does on two cores.
_TOKENS_PER_SECOND = 39.0


class Command(BaseCommand):
    help = (
        "Runs a log of conversations through the cache, in a throw-away scope, and says what it would have "
        "answered, how often rightly as far as the log's own answers tell, and which time and tokens that "
        'saves. The log is JSONL, one conversation a line: {"turns": [{"role", "content"}, ...]}.'
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="JSONL, one conversation a line, oldest first")
        parser.add_argument("--policy", type=int, metavar="ID", help="decide by this one, not the live ones")
        parser.add_argument("--shadow", type=int, metavar="ID", help="try this policy beside the live one")
        parser.add_argument(
            "--engine", action="store_true", help="have the engine answer every question, and take the time"
        )
        parser.add_argument(
            "--tokens-per-second",
            type=_positive,
            default=_TOKENS_PER_SECOND,
            help="of the model, for answers of which the log has no seconds; default: %(default)s",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        talks = talks_of(options["file"])
        live, trial = _policy(options["policy"]), _policy(options["shadow"])
        reports: list[shadow.Report] = []
        try:
            asked = replaying.replay(
                talks,
                engine=_answer if options["engine"] else None,
                live=live,
                trial=trial,
                report=lambda row: reports.append(shadow.report(row)),
                progress=show_progress,
            )
        except (EngineUnavailable, EngineFailed) as problem:
            raise CommandError(f"The engine does not answer: {problem}") from problem
        how, tokens = counting()
        found = {
            "conversations": len(talks),
            "tokens_counted_by": how,
            **worth.report(asked, tokens, worth.Speed(options["tokens_per_second"])),
        }
        if reports:
            found["shadow"] = reports[0].to_json()
        if options["json"]:
            self.stdout.write(json.dumps(found, indent=2, ensure_ascii=False))
            return
        self.stdout.write("\n".join(_lines(found)))
        for report in reports:
            self.stdout.write("\n".join(["", *report_lines(report)]))


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no number.") from error
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text} is not above 0.")
    return value


def _policy(pk: int | None) -> Policy | None:
    if pk is None:
        return None
    row = Policy.objects.filter(pk=pk).first()
    if row is None:
        raise CommandError(f"There is no policy {pk}.")
    return row


def _answer(question: Question) -> tuple[str, float]:
    """What the engine of the settings says, and how long it took."""
    turns = compose(system=settings.SYSTEM_PROMPT, turns=list(question.turns[:-1]), question=question.text)
    sampling = Sampling(temperature=settings.TEMPERATURE, max_tokens=settings.MAX_TOKENS)
    started, text = time.perf_counter(), ""
    for event in engine().stream(Request(id=str(uuid.uuid4()), turns=turns, sampling=sampling)):
        if not isinstance(event, Finished):
            text += event.text
    return text, time.perf_counter() - started


_COLUMNS = ("questions", "bypassed", "hits", "right", "wrong", "unknown", "near", "learned")


def _lines(found: dict[str, Any]) -> list[str]:
    without, with_cache, saved = found["without_cache"], found["with_cache"], found["saved"]
    lines = [f"{'':<20}" + "".join(f"{name:>11}" for name in _COLUMNS)]
    rows = {**found["by_class"], "all": found}
    lines += [f"{name:<20}" + "".join(f"{row[one]:>11}" for one in _COLUMNS) for name, row in rows.items()]
    layers = ", ".join(f"{name} {n}" for name, n in found["by_layer"].items()) or "none"
    lines += [
        "",
        f"answered by the cache  {share(found['hit_share'])}: {layers}",
        f"wrong, of the known    {share(found['wrong_share'])}",
        f"without the cache      {without['answers']} answers, {without['seconds']:.1f} s, "
        f"{without['prompt_tokens']} + {without['completion_tokens']} tokens",
        f"with it                {with_cache['answers']} answers, {with_cache['seconds']:.1f} s, "
        f"{with_cache['prompt_tokens']} + {with_cache['completion_tokens']} tokens",
        f"saved                  {saved['seconds']:.1f} s, {saved['tokens']} tokens "
        f"(counted: {found['tokens_counted_by']})",
        f"lookup                 p50 {found['lookup_ms']['p50']} ms, p99 {found['lookup_ms']['p99']} ms",
    ]
    return lines
