"""The figures of vetoes: what is read from a file, and how it is counted."""

import json
from pathlib import Path

import pytest

from inference.evaluation.fingerprints import measure, read_pairs

GROUP = {
    "lang": "en",
    "same": ["How do I wash wool?", "how to wash wool", "Is there a way of getting a pullover clean?"],
    "different": [
        {"text": "How do I dry wool?", "why": "antonym"},
        {"text": "Why wash wool?", "why": "intent"},
    ],
}
CASE = {
    "lang": "zh",
    "class": "related",
    "expect": "reject",
    "seed": [{"role": "user", "content": "怎么洗羊毛衫"}, {"role": "assistant", "content": "冷水。"}],
    "probe": [{"role": "user", "content": "怎么洗羽绒服"}],
}


def lines(path: Path, *rows: object) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


def test_groups_and_cases_become_pairs(tmp_path: Path) -> None:
    pairs = list(read_pairs(lines(tmp_path / "a", GROUP, CASE)))
    assert [pair.label for pair in pairs] == ["same", "same", "same", "antonym", "intent", "related"]
    assert pairs[-1][2:] == ("怎么洗羊毛衫", "怎么洗羽绒服")


def test_a_part_takes_every_other_line(tmp_path: Path) -> None:
    path = lines(tmp_path / "a", GROUP, CASE)
    assert {pair.language for pair in read_pairs(path, 0)} == {"en"}
    assert {pair.language for pair in read_pairs(path, 1)} == {"zh"}


def test_vetoes_are_counted_by_language_and_label(tmp_path: Path) -> None:
    figures = measure(list(read_pairs(lines(tmp_path / "a", GROUP, CASE))))["by_language"]
    assert figures["en"]["same"]["n"] == 3 and figures["en"]["same"]["conflict"] == 0
    assert figures["en"]["(all different)"] == {"n": 2, "conflict": 1.0, "agree": 0.0}
    assert figures["zh"]["related"]["conflict"] == 1.0


def test_another_kind_of_file_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="line 1"):
        list(read_pairs(lines(tmp_path / "a", {"question": "?"})))
