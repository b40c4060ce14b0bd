import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import gguf
import numpy
import pytest
from safetensors import safe_open

from inference.engines import weights
from inference.engines.base import EngineUnavailable


@pytest.fixture
def copy(model_dir: Path, tmp_path: Path) -> Path:
    """The same model elsewhere; files may be replaced, not written into."""
    folder = tmp_path / "copy"
    shutil.copytree(model_dir, folder, copy_function=_link_or_copy)
    return folder


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def replace(file: Path, content: bytes) -> None:
    file.unlink()
    file.write_bytes(content)


def start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "inference.engines.weights", "--model-dir", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_killed_half_way_nothing_is_there_and_the_next_two_bring_it_in_once(
    tmp_path: Path, model_dir: Path
) -> None:
    folder = tmp_path / "model"
    killed = start(folder)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".model.partial-*/tokenizer.json")):
        assert killed.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not folder.exists()
    with pytest.raises(EngineUnavailable):
        weights.read_identity(folder, "bfloat16")

    both = [start(folder), start(folder)]
    said = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sorted("already." in text for text in said) == [False, True]
    assert sorted("waiting for it" in text for text in said) == [False, True]
    assert sorted(file.name for file in tmp_path.iterdir()) == [".model.lock", "model"]
    # Converted twice, on this machine and whenever MODEL_DIR was: the same model.
    assert weights.read_identity(folder, "bfloat16") == weights.read_identity(model_dir, "bfloat16")
    shutil.rmtree(folder)  # 270 MB that pytest would keep for three runs


def test_a_second_run_is_instant(model_dir: Path) -> None:
    said: list[str] = []
    began = time.monotonic()
    assert weights.prepare(model_dir, said.append) is False
    assert time.monotonic() - began < 0.1
    assert said == []


def test_weights_are_those_of_the_package_in_bf16(model_dir: Path) -> None:
    source = {tensor.name: tensor for tensor in gguf.GGUFReader(weights._packaged_gguf()).tensors}
    with safe_open(model_dir / weights.WEIGHTS, framework="pt") as saved:
        assert len(saved.keys()) == len(source) == 272
        assert {saved.get_slice(name).get_dtype() for name in saved.keys()} == {"BF16"}  # noqa: SIM118
        for ours, theirs in (
            ("model.layers.7.mlp.down_proj.weight", "blk.7.ffn_down.weight"),
            ("model.layers.29.self_attn.v_proj.weight", "blk.29.attn_v.weight"),
            ("model.norm.weight", "output_norm.weight"),
        ):
            tensor = source[theirs]
            expected = gguf.dequantize(tensor.data, tensor.tensor_type)
            found = saved.get_tensor(ours).float().numpy()
            assert found.shape == expected.shape
            numpy.testing.assert_allclose(found, expected, rtol=2**-8)


@pytest.mark.parametrize(
    ("file", "part"),
    [
        (weights.TEMPLATE, "template"),
        (weights.TOKENIZER, "tokenizer"),
        ("config.json", "model"),
        ("generation_config.json", "model"),
    ],
)
def test_a_changed_file_is_another_identity(copy: Path, file: str, part: str) -> None:
    before = weights.read_identity(copy, "bfloat16").as_dict()
    content = (copy / file).read_bytes()
    replace(copy / file, content + b" ")
    after = weights.read_identity(copy, "bfloat16").as_dict()
    assert {name for name in before if before[name] != after[name]} == {part}
    replace(copy / file, content)
    assert weights.read_identity(copy, "bfloat16").as_dict() == before


def test_identity_follows_content_not_place_or_time(copy: Path, model_dir: Path) -> None:
    expected = weights.read_identity(model_dir, "bfloat16")
    replace(copy / weights.TEMPLATE, (copy / weights.TEMPLATE).read_bytes())
    os.utime(copy / weights.TEMPLATE, (1, 1))
    assert weights.read_identity(copy, "bfloat16") == expected
    assert weights._is_as_seen(copy / weights.TEMPLATE, weights._refresh(copy)["files"][weights.TEMPLATE])


def test_a_missing_file_is_no_model(copy: Path) -> None:
    (copy / weights.TOKENIZER).unlink()
    assert not weights.is_ready(copy)
    with pytest.raises(weights.CannotPrepare, match=r"no complete model \(no tokenizer\.json\)"):
        weights.prepare(copy)


def test_a_model_from_elsewhere_is_taken_as_it_is(copy: Path) -> None:
    (copy / weights.IDENTITY_FILE).unlink()
    said: list[str] = []
    assert weights.prepare(copy, said.append)
    assert said == [f"Taking the model that is in {copy}."]
    assert weights.read_identity(copy, "bfloat16").model.startswith("copy@")


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "SPACE_NEEDED", 10**18)
    with pytest.raises(weights.CannotPrepare, match=r"needs 1000000000000 MB in .*; \d+ MB are free\.$"):
        weights.prepare(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    """A real limit on file size, first met by the tokenizer's 3.5 MB."""
    folder = tmp_path / "model"
    limited = subprocess.run(
        [sys.executable, "-m", "inference.engines.weights", "--model-dir", str(folder)],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000)),
    )
    assert limited.returncode == 1
    assert "Traceback" not in limited.stderr
    assert limited.stderr.splitlines()[-1].startswith(f"The model can't be written to {folder}: ")
    assert [file.name for file in tmp_path.iterdir()] == [".model.lock"]


def test_the_command_says_when_there_is_nothing_to_do(model_dir: Path) -> None:
    process = start(model_dir)
    assert process.communicate(timeout=30)[0] == f"The model is in {model_dir} already.\n"
    assert process.returncode == 0
