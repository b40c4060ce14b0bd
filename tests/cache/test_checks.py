"""`manage.py check` on the settings of prompts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.checks import run_checks

from launch.options import REPOSITORY


def ids() -> list[str]:
    return [message.id for message in run_checks() if str(message.id).startswith("reprise.")]


def test_the_defaults_are_fine() -> None:
    assert ids() == []


def test_a_system_prompt_with_a_clock_in_it(settings) -> None:
    settings.SYSTEM_PROMPT = "You help. The current time is {now}."
    assert set(ids()) == {"reprise.W001"}


def test_a_template_with_a_clock_in_it(settings, tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text('{{ strftime_now("%d %b %Y") }}')
    settings.MODEL_DIR = tmp_path
    assert ids() == ["reprise.W002"]


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("CONTEXT_TURNS", 2, "reprise.E001"),
        ("CONTEXT_TURNS", 11, "reprise.E001"),
        ("REUSE_GRADES", {"fact": "always"}, "reprise.E002"),
        ("KNOWLEDGE_FILE", "/nowhere/at/all", "reprise.E003"),
    ],
)
def test_settings_that_cannot_be_used(settings, name: str, value: object, found: str) -> None:
    setattr(settings, name, value)
    assert ids() == [found]


@pytest.mark.parametrize("value", ["2", "11", "five", ""])
def test_the_environment_is_refused_with_a_clear_error(value: str) -> None:
    environ = os.environ | {"CONTEXT_TURNS": value, "DJANGO_SETTINGS_MODULE": "config.settings.test"}
    code = "from django.conf import settings; settings.CONTEXT_TURNS"
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, env=environ, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode
    assert f"CONTEXT_TURNS is {value!r}; it must be a whole number from 3 to 10." in ended.stderr
