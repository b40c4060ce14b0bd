"""A conversation as a file: the branch being shown as Markdown, the whole tree as JSON."""

import re
from typing import Any, TypeVar

from django.http import HttpResponse, JsonResponse
from django.utils import timezone
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _

from .models import Conversation, Message
from .presentation import Article, articles, title_of
from .services import feedback_of, transcript

FORMAT = "reprise.conversation"
VERSION = 1
MAX_NAME_CHARS = 80
ResponseT = TypeVar("ResponseT", bound=HttpResponse)


def markdown(conversation: Conversation) -> HttpResponse:
    """The branch being shown, as a Markdown file."""
    parts = [f"# {_one_line(title_of(conversation))}"]
    parts += [_markdown_of(article) for article in articles(transcript(conversation))]
    response = HttpResponse("\n\n".join(parts) + "\n", content_type="text/markdown; charset=utf-8")
    return _attached(response, conversation, "md")


def json(conversation: Conversation) -> JsonResponse:
    """The whole tree, every branch of it; `shown` lists the ids of the branch being shown."""
    messages = list(conversation.messages.select_related("generation").order_by("created_at", "id"))
    verdicts = feedback_of(messages)
    data = {
        "format": FORMAT,
        "version": VERSION,
        "id": conversation.id,
        "title": conversation.title,
        "created_at": conversation.created_at,
        "updated_at": conversation.updated_at,
        "shown": [row.message.id for row in transcript(conversation)],
        "messages": [_json_of(message, verdicts.get(message.id)) for message in messages],
    }
    response = JsonResponse(data, json_dumps_params={"ensure_ascii": False, "indent": 2})
    return _attached(response, conversation, "json")


def _markdown_of(article: Article) -> str:
    when = article.message.created_at.strftime("%Y-%m-%d %H:%M UTC")
    heading = _("Question") if article.is_question else _("Answer")
    notes = " · ".join([when, *_notes(article)])
    return f"## {heading}\n\n*{notes}*\n\n{article.text}".rstrip()


def _notes(article: Article) -> list[str]:
    if article.is_question:
        return []
    if article.is_open:
        return [_("still being written")]
    if article.status != "complete":
        return [_("incomplete")]
    return [_("from the cache")] if article.from_cache else []


def _json_of(message: Message, verdict: str | None) -> dict[str, Any]:
    data: dict[str, Any] = {
        "id": message.id,
        "parent": message.parent_id,
        "role": message.role,
        "created_at": message.created_at,
    }
    if (generation := message.generation) is None:
        return data | {"text": message.text}
    return data | {
        "text": generation.text,
        "status": generation.status,
        "served_by": generation.served_by,
        "finish_reason": generation.finish_reason,
        "total_ms": generation.total_ms,
        "prompt_tokens": generation.prompt_tokens,
        "completion_tokens": generation.completion_tokens,
        "feedback": verdict,
    }


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _attached(response: ResponseT, conversation: Conversation, kind: str) -> ResponseT:
    response["Content-Disposition"] = content_disposition_header(
        as_attachment=True, filename=f"{_file_name(conversation)}.{kind}"
    )
    response["Cache-Control"] = "private, no-store"
    return response


def _file_name(conversation: Conversation) -> str:
    """The title without what a file system or a shell might read as something else."""
    name = re.sub(r"[^\w\s.()+-]", " ", conversation.title)
    name = _one_line(name).strip(" .-")[:MAX_NAME_CHARS].strip()
    return name or f"conversation {timezone.localdate(conversation.created_at)}"
