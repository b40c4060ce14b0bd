"""What the commands that read logs of conversations have in common."""

from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.core.management.base import CommandError

from inference.evaluation import conversations, worth
from inference.evaluation.conversations import Talk
from inference.evaluation.jsonl import BadCase


def talks_of(path: Path) -> list[Talk]:
    """The conversations of a log. Raises CommandError, with the line's number where one can't be read."""
    try:
        talks = conversations.read(path)
    except (OSError, UnicodeDecodeError, BadCase) as problem:
        raise CommandError(str(problem)) from problem
    if not talks:
        raise CommandError(f"{path} has no conversations.")
    return talks


def counting() -> tuple[str, Callable[[str], int]]:
    """How tokens are counted, and what counts them: the model's tokenizer where its folder is here, else a
    rule of thumb."""
    folder = Path(settings.MODEL_DIR)
    if settings.ENGINE == "openai" or not (folder / "tokenizer.json").exists():
        return "estimated", worth.estimated_tokens
    from inference.engines.tokenizer import ChatTokenizer

    tokenizer = ChatTokenizer(folder)
    return folder.name, lambda text: len(tokenizer.encode_plain(text))


def share(figure: list[float] | None) -> str:
    """ "31.4% (27.0% to 36.1%)"; a dash for None."""
    return "–" if figure is None else f"{figure[0]:.1%} ({figure[1]:.1%} to {figure[2]:.1%})"
