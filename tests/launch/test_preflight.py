import errno
import os
import shutil
import socket
from collections import namedtuple
from pathlib import Path

import pytest

from launch import preflight
from launch.options import Options
from launch.problem import Problem
from launch.python_version import check_python


def line_of(raised: pytest.ExceptionInfo[Problem]) -> str:
    text = str(raised.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 12, 4), (3, 13, 9)])
def test_supported_pythons_pass(version: tuple[int, ...]) -> None:
    check_python(version)


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 9, 2), (3, 10, 13), (3, 14, 0), (4, 0, 0)])
def test_other_pythons_are_named(version: tuple[int, ...]) -> None:
    with pytest.raises(Problem) as raised:
        check_python(version)
    assert ".".join(map(str, version)) in line_of(raised)
    assert "3.11" in line_of(raised)


def test_a_free_port_passes_and_a_taken_one_is_named_with_the_next() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Problem) as raised:
            preflight.check_port("127.0.0.1", port)
        assert f"Port {port} is taken" in line_of(raised)
        assert f"PORT={port + 1}" in line_of(raised)
    preflight.check_port("127.0.0.1", port)


def test_an_address_of_another_machine_is_named() -> None:
    with pytest.raises(Problem) as raised:
        preflight.check_port("192.0.2.1", 8000)
    assert "192.0.2.1" in line_of(raised)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Problem) as raised:
        preflight.check_writable(tmp_path / "file" / "var")
    assert str(tmp_path / "file" / "var") in line_of(raised)
    assert "VAR_DIR" in line_of(raised)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(Problem, match=os.strerror(errno.EACCES)):
        preflight.check_writable(tmp_path)


def test_a_full_disk_is_named_with_what_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    preflight.check_disk(tmp_path, 1)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9 - 5_000_000, 5_000_000))
    with pytest.raises(Problem) as raised:
        preflight.check_disk(tmp_path, 200)
    assert "Only 5 MB" in line_of(raised)
    assert "200 MB" in line_of(raised)


def test_addresses_that_lead_nowhere_are_named() -> None:
    with pytest.raises(Problem) as database:
        preflight.check_database("postgresql://nobody@/none?host=/nonexistent")
    assert line_of(database).startswith("DATABASE_URL")
    for url in ("unix:///nonexistent/valkey.sock", "nonsense"):
        with pytest.raises(Problem) as valkey:
            preflight.check_redis(url)
        assert line_of(valkey).startswith("REDIS_URL")


@pytest.mark.parametrize("text", ["abc", "0", "65536", "-1", "80.5", "٨"])
def test_a_port_that_is_none_is_named(text: str) -> None:
    with pytest.raises(Problem) as raised:
        Options.read({"PORT": text})
    assert "PORT" in line_of(raised)
    assert repr(text) in line_of(raised)


def test_nothing_set_gives_the_documented_defaults() -> None:
    options = Options.read({})
    assert (options.address, options.reach) == ("http://localhost:8000", "127.0.0.1")
    assert options.var_dir.name == "var"
    assert options.model_dir == options.var_dir / "models" / "smollm2-135m-instruct"
    assert options.settings_module == "config.settings.local"


def test_what_is_set_counts(tmp_path: Path) -> None:
    options = Options.read(
        {"PORT": "8100", "HOST": "0.0.0.0", "VAR_DIR": str(tmp_path), "WEB_PROCESSES": "3"}
    )
    assert (options.address, options.reach) == ("http://localhost:8100", "127.0.0.1")
    assert options.model_dir.is_relative_to(tmp_path)
    assert options.web_processes == 3
