"""`manage.py check` on the settings of prompts, and of what may be served."""

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
        ("REUSE_GRADES", {"facts": "answer"}, "reprise.E002"),
        ("REUSE_GRADES", {"": "answer"}, "reprise.E002"),
        ("REUSE_GRADES", {"fact": ["answer"]}, "reprise.E002"),
        ("REUSE_GRADES", ["fact"], "reprise.E002"),
        ("SUSPECTS", {"fact": "hide"}, "reprise.E004"),
        ("SUSPECTS", {"trivia": "serve"}, "reprise.E004"),
        ("AGREEMENT_TARGETS", {"fact": 60}, "reprise.E005"),
        ("AGREEMENT_TARGETS", {"": "0.6"}, "reprise.E005"),
        ("AGREEMENT_TARGETS", {"fact": True}, "reprise.E005"),
        ("AGREEMENT_TARGETS", {"trivia": 0.5}, "reprise.E005"),
        ("OBSERVATIONS_LEAST", 0, "reprise.E006"),
        ("OBSERVE_SHARE", 1.5, "reprise.E006"),
        ("CALIBRATION_TARGET", 2, "reprise.E006"),
        ("CALIBRATION_TARGET", 0.0, "reprise.E006"),
        ("CALIBRATION_CONFIDENCE", 95, "reprise.E006"),
        ("CALIBRATION_CONFIDENCE", float("nan"), "reprise.E006"),
        ("CALIBRATE_EVERY_SECONDS", 0, "reprise.E006"),
        ("JUDGE_SURE", 0.5, "reprise.E006"),
        ("JUDGE", "yes", "reprise.E007"),
        ("KNOWLEDGE_FILE", "/nowhere/at/all", "reprise.E003"),
    ],
)
def test_settings_that_cannot_be_used(settings, name: str, value: object, found: str) -> None:
    setattr(settings, name, value)
    assert ids() == [found]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REUSE_GRADES", {"fact": "rewrite", "chitchat": "prefix"}),
        ("SUSPECTS", {"": "withhold", "advice": "serve"}),
        ("AGREEMENT_TARGETS", {"": 0.7, "business": 0.9}),
        ("OBSERVE_SHARE", 0.0),
        ("OBSERVE_PER_MINUTE", 0),
    ],
)
def test_settings_that_can(settings, name: str, value: object) -> None:
    setattr(settings, name, value)
    assert ids() == []


def test_what_is_wrong_is_said_with_what_would_be_right(settings) -> None:
    settings.SUSPECTS = {"trivia": "hide"}
    said = [f"{one.msg} {one.hint or ''}" for one in run_checks() if one.id == "reprise.E004"]
    assert "'trivia', which is no content class" in said[0] and "fact, advice, " in said[0]
    assert "it must be one of serve, withhold, rewrite" in said[1]


@pytest.mark.parametrize("value", ["2", "11", "five", ""])
def test_the_environment_is_refused_with_a_clear_error(value: str) -> None:
    environ = os.environ | {"CONTEXT_TURNS": value, "DJANGO_SETTINGS_MODULE": "config.settings.test"}
    code = "from django.conf import settings; settings.CONTEXT_TURNS"
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, env=environ, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode
    assert f"CONTEXT_TURNS is {value!r}; it must be a whole number from 3 to 10." in ended.stderr
