"""Every text that the pages show exists in Chinese, with the same placeholders."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.utils.translation.template import templatize

ROOT = Path(settings.BASE_DIR)
CATALOGUE = ROOT / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"
_FUNCTIONS = {"_", "gettext", "gettext_lazy", "ngettext"}
_IN_TEMPLATE = re.compile(r"\b(?:_|n?gettext)\(u?('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")
_PLACEHOLDER = re.compile(r"%\(\w+\)[\d.]*[a-z]|\{\w+\}|</?\w+")


def _catalogue() -> dict[str, str]:
    entries = {}
    for block in CATALOGUE.read_text().split("\n\n"):
        parts = dict(re.findall(r'^(msgid|msgstr(?:\[0\])?) (".*")$', block, re.MULTILINE))
        translated = parts.get("msgstr", parts.get("msgstr[0]"))
        assert translated is not None and "#, fuzzy" not in block, block
        entries[ast.literal_eval(parts["msgid"])] = ast.literal_eval(translated)
    return entries


def _in_templates() -> Iterator[tuple[str, str]]:
    for path in (ROOT / "templates").rglob("*.html"):
        for literal in _IN_TEMPLATE.findall(templatize(path.read_text(), origin=str(path))):
            yield path.name, ast.literal_eval(literal)


def _in_python() -> Iterator[tuple[str, str]]:
    console = (ROOT / "cacheadmin").rglob("*.py")
    for path in [*(ROOT / "chat").glob("*.py"), *console, ROOT / "config" / "settings" / "base.py"]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
                yield path.name, ast.literal_eval(node.args[0])


TEXTS = sorted({*_in_templates(), *_in_python()})


def test_there_are_texts() -> None:
    assert len(TEXTS) > 120
    assert ("page.html", "What would you like to know?") in TEXTS
    assert ("strings.py", "Connecting…") in TEXTS


@pytest.mark.parametrize(("place", "text"), TEXTS)
def test_every_text_is_translated(place: str, text: str) -> None:
    assert _catalogue().get(text), f"{place}: add {text!r} to {CATALOGUE}"


def test_placeholders_are_kept() -> None:
    for text, translated in _catalogue().items():
        if text:
            assert sorted(_PLACEHOLDER.findall(text)) == sorted(_PLACEHOLDER.findall(translated)), text


def test_nothing_is_left_over() -> None:
    assert set(_catalogue()) - {""} == {text for _place, text in TEXTS}
