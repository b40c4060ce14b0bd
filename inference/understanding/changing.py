"""What in the standing part of a prompt would change from one request to the next, so that nothing behind it
could ever be used again."""

import re

# An unfilled place: {now}, {user.name}, {date:%Y}, {{ anything }}, {% anything %}, ${NAME}, $(date).
_PLACEHOLDER = re.compile(
    r"\{\{.*?\}\}|\{%.*?%\}|\$\{\w+\}|\$\(\w[^)]*\)|<%.*?%>"
    r"|\{[A-Za-z_][\w.]*(?:\([^)]*\))?(?:\[\w+\])?(?:![rsa])?(?::[^{}\"']*)?\}",
    re.DOTALL,
)
_TIME_CODE = re.compile(r"(?<![\w%])%[-_^0#]?[YymdHIMSpjBbAaZzcxXFTsf](?![A-Za-z])|strftime|utcnow|isoformat")
_PHRASE = re.compile(
    r"\b(?:current|present|today's) (?:date|time|day|hour)"
    r"|\b(?:today|now|date|time) (?:is|it is)\b(?: now)?[: ]"
    r"|\b(?:session|request|conversation|trace|correlation|message|user)[ _-]?(?:id|uuid|guid|token)s?\b"
    r"|\bas of (?:now|today)\b|\btimestamp\b"
    r"|(?:当前|现在|此刻|今天|今日)的?(?:日期|时间|时刻|是)|会话(?:ID|编号|标识)|请求(?:ID|编号|标识)",
    re.IGNORECASE,
)
_LITERAL = re.compile(
    r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
    r"|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\b\d{1,2}:\d\d:\d\d\b"
)
_TEMPLATE = re.compile(
    r"strftime\w*|date_string|\bnow\s*\(|utcnow|datetime|timestamp|\buuid\w*|\brandom\b|current_(?:date|time)"
    r"|(?:session|request|conversation|trace)_?id"
)


def changing_in_text(text: str) -> list[str]:
    """The pieces of a system prompt that look as if they changed per request, in the order of the text."""
    found = [
        (match.start(), match.group())
        for pattern in (_PLACEHOLDER, _TIME_CODE, _PHRASE, _LITERAL)
        for match in pattern.finditer(text)
    ]
    return list(dict.fromkeys(piece.strip() for _, piece in sorted(found)))


def changing_in_template(template: str) -> list[str]:
    """The same for a chat template, whose own {{ }} are how it is written."""
    return list(dict.fromkeys(match.group() for match in _TEMPLATE.finditer(template)))
