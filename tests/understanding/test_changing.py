"""What changes from request to request is found; what only speaks of it is let be."""

import pytest

from inference.understanding.changing import changing_in_template, changing_in_text


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("You help. It is {now}.", "{now}"),
        ("Hello {{ user.name }}, you help.", "{{ user.name }}"),
        ("Written on {date:%d %B}.", "{date:%d %B}"),
        ("Written on %Y-%m-%d.", "%Y"),
        ("The current date matters: Monday.", "current date"),
        ("Today is Monday.", "Today is"),
        ("Session ID: 12.", "Session ID"),
        ("Trace 0b9fa1c2-6a33-4f3c-9c4a-1f2e3d4c5b6a.", "0b9fa1c2-6a33-4f3c-9c4a-1f2e3d4c5b6a"),
        ("Started 2026-11-29 18:58.", "2026-11-29 18:58"),
        ("You run on ${HOST}.", "${HOST}"),
        ("今天是星期一。", "今天是"),
        ("当前时间：八点。", "当前时间"),
    ],
)
def test_found(text: str, piece: str) -> None:
    assert piece in changing_in_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "You are a helpful assistant. Answer clearly and briefly.",
        'Answer as JSON, like {"name": "value", "n": 1}.',
        "Give 100% of your attention. A discount of 5% is the most. 20% off.",
        "We are open from 9 to 5. Founded in 1998, on 2 May.",
        "Never make up a date. If you don't know the time of day, say so.",
        "你是一个有用的助手。今天也请简短回答。",
        "Use set notation: {1, 2}.",
    ],
)
def test_let_be(text: str) -> None:
    assert changing_in_text(text) == []


def test_templates() -> None:
    plain = "{% for message in messages %}{{ '<|im_start|>' + message['role'] }}{% endfor %}"
    assert changing_in_template(plain) == []
    dated = '{%- set date_string = strftime_now("%d %b %Y") %}'
    assert changing_in_template(dated) == ["date_string", "strftime_now"]
