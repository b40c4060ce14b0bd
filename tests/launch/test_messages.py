import gettext
import os
from pathlib import Path

from launch.messages import compile_messages

PO = """
msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

msgid "Send"
msgstr "发送"
"""


def test_only_what_changed_is_compiled(tmp_path: Path) -> None:
    source = tmp_path / "zh_Hans" / "LC_MESSAGES" / "django.po"
    source.parent.mkdir(parents=True)
    source.write_text(PO)
    target = source.with_suffix(".mo")
    assert compile_messages(tmp_path) == [target]
    with target.open("rb") as file:
        assert gettext.GNUTranslations(file).gettext("Send") == "发送"

    assert compile_messages(tmp_path) == []
    later = target.stat().st_mtime + 10
    os.utime(source, (later, later))
    assert compile_messages(tmp_path) == [target]


def test_no_translations_yet_is_no_error(tmp_path: Path) -> None:
    assert compile_messages(tmp_path / "locale") == []
