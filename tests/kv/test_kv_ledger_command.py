import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command


def said(*arguments: Any) -> str:
    out = StringIO()
    call_command("kv_ledger", *arguments, stdout=out)
    return out.getvalue()


def test_the_model_that_comes_along(model_dir: Path) -> None:
    text = said("--model-dir", str(model_dir), "--sessions", "40")
    assert "2 × 30 layers × 3 heads × 64 × 2 bytes = 23,040 bytes per token" in text
    assert "32,768 tokens:     28,800.0 MiB for 40 sessions that share nothing" in text


def test_figures_for_programs(model_dir: Path) -> None:
    found = json.loads(
        said("--model-dir", str(model_dir), "--dtype", "float32", "--context", "1000", "--json")
    )
    assert found["bytes_per_token"] == 46_080
    assert found["needs"] == [{"tokens": 1000, "bytes": 46_080_000}]


def test_what_cannot_be_read_or_counted(tmp_path: Path, model_dir: Path) -> None:
    with pytest.raises(CommandError, match="No model to read"):
        said("--model-dir", str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CommandError, match="num_attention_heads"):
        said("--model-dir", str(tmp_path))
    with pytest.raises(CommandError, match="at least 1"):
        said("--model-dir", str(model_dir), "--sessions", "0")
