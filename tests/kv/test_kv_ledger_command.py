import json
import os
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from launch.options import REPOSITORY


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


def test_by_itself_it_starts_no_services(model_dir: Path) -> None:
    environ = {name: text for name, text in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    with tempfile.TemporaryDirectory(prefix="reprise-ledger-") as folder:
        environ |= {"VAR_DIR": folder, "DJANGO_SETTINGS_MODULE": "config.settings.local"}
        command = [sys.executable, "manage.py", "kv_ledger", "--model-dir", str(model_dir)]
        card, live = (
            subprocess.run([*command, *more], cwd=REPOSITORY, env=environ, capture_output=True, text=True)
            for more in ([], ["--live"])
        )
        made = {path.name for path in Path(folder).iterdir()}
    assert card.returncode == 0 and "23,040 bytes per token" in card.stdout, card.stderr
    assert live.returncode != 0 and "No live worker: Valkey can't be asked" in live.stderr
    assert "Traceback" not in live.stderr
    assert not made & {"postgres", "valkey", "sockets"}
