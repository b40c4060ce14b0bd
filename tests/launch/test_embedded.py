"""The embedded services, real ones, each test with its own VAR_DIR."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from launch.embedded import Embedded, needed, on_demand, where_running
from launch.options import REPOSITORY
from launch.problem import Problem
from launch.process import wait_until
from launch.sockets import socket_dir

# Not pytest's tmp_path: as root, the database's own account has to reach it.
HOLDER = """
import sys, time
from pathlib import Path
from launch.embedded import Embedded
Embedded(Path(sys.argv[1]), durable=False).start()
print("started", flush=True)
time.sleep(600)
"""


@pytest.fixture
def var_dir() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="reprise-embedded-", ignore_cleanup_errors=True) as folder:
        var_dir = Path(folder) / "var"
        yield var_dir
        Embedded(var_dir).discard()


def value(embedded: Embedded) -> object:
    assert embedded.postgres
    with psycopg.connect(embedded.postgres.url()) as connection:
        row = connection.execute("SELECT '[1,2]'::vector <-> '[1,5]'").fetchone()
        return row and row[0]


def valkey(embedded: Embedded) -> redis.Redis:
    assert embedded.valkey
    return redis.Redis.from_url(embedded.valkey.url())


def running(embedded: Embedded) -> list[bool]:
    return [service.is_running() for service in embedded.services]


def test_a_fresh_start_has_a_database_with_vectors_and_a_valkey(var_dir: Path) -> None:
    embedded = Embedded(var_dir, durable=False)
    embedded.start()
    assert value(embedded) == 3
    assert valkey(embedded).ping()
    assert embedded.stop() == ["Valkey", "Postgres"]
    assert running(embedded) == [False, False]


def test_data_survives_a_restart(var_dir: Path) -> None:
    embedded = Embedded(var_dir)
    assert embedded.postgres
    embedded.start()
    with psycopg.connect(embedded.postgres.url()) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
    valkey(embedded).set("kept", "7")
    embedded.stop()

    embedded.start()
    with psycopg.connect(embedded.postgres.url()) as connection:
        assert connection.execute("SELECT number FROM kept").fetchone() == (7,)
    assert valkey(embedded).get("kept") == b"7"


def test_the_last_one_out_stops_them(var_dir: Path) -> None:
    first, second = Embedded(var_dir, durable=False), Embedded(var_dir, durable=False)
    first.start()
    second.start()
    assert first.stop() == []
    assert running(second) == [True, True]
    assert second.stop() == ["Valkey", "Postgres"]
    assert running(second) == [False, False]


def test_each_service_is_counted_by_itself(var_dir: Path) -> None:
    both = Embedded(var_dir, durable=False)
    only_valkey = Embedded(var_dir, durable=False, postgres=False)
    both.start()
    only_valkey.start()
    assert both.stop() == ["Postgres"]
    assert running(only_valkey) == [True]
    assert only_valkey.stop() == ["Valkey"]


def test_a_killed_process_counts_as_gone(var_dir: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(var_dir)], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout and holder.stdout.readline() == "started\n"
    embedded = Embedded(var_dir, durable=False)
    embedded.start()
    assert embedded.stop() == [], "the other process still uses them"

    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    assert running(embedded) == [True, True]
    embedded.start()
    assert embedded.stop() == ["Valkey", "Postgres"]


@pytest.mark.parametrize("name", ["Postgres", "Valkey"])
def test_what_died_is_started_again(var_dir: Path, name: str) -> None:
    embedded = Embedded(var_dir, durable=False)
    embedded.start()
    valkey(embedded).set("kept", "7")
    next(service for service in embedded.services if service.name == name).kill()
    assert running(embedded) == [name != "Postgres", name != "Valkey"]

    assert embedded.ensure_running() == [name]
    assert embedded.ensure_running() == []
    assert value(embedded) == 3
    assert valkey(embedded).get("kept") == b"7"


def test_a_pid_file_that_names_another_process_is_no_obstacle(var_dir: Path) -> None:
    embedded = Embedded(var_dir, durable=False)
    assert embedded.postgres and embedded.valkey
    embedded.start()
    embedded.postgres.kill()
    embedded.valkey.kill()
    pid_file = embedded.postgres.data_dir / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:], ""]))
    (embedded.valkey.data_dir / "valkey.pid").write_text(f"{os.getpid()}\n")

    assert embedded.ensure_running() == ["Postgres", "Valkey"]
    assert value(embedded) == 3


def test_a_path_too_long_or_too_odd_for_a_socket_has_its_sockets_elsewhere(var_dir: Path) -> None:
    odd = var_dir.parent / "a folder 100% called ?" / ("x" * 100)
    embedded = Embedded(odd, durable=False)
    try:
        embedded.start()
        assert socket_dir(odd.resolve()).parent == Path("/tmp")
        assert value(embedded) == 3
        assert valkey(embedded).ping()
        assert embedded.stop() == ["Valkey", "Postgres"]
    finally:
        embedded.discard()
    assert not socket_dir(odd.resolve()).exists()


def test_given_addresses_are_left_alone(var_dir: Path) -> None:
    both = {"VAR_DIR": str(var_dir), "DATABASE_URL": "postgresql://db/x", "REDIS_URL": "redis://kv"}
    assert needed(both) is None
    with on_demand(dict(both)):
        assert not var_dir.exists()

    database_given = {"VAR_DIR": str(var_dir), "DATABASE_URL": "postgresql://db/x"}
    with on_demand(database_given):
        assert database_given["DATABASE_URL"] == "postgresql://db/x"
        assert redis.Redis.from_url(database_given["REDIS_URL"]).ping()
        assert not (var_dir / "postgres").exists()
    assert "REDIS_URL" not in database_given


def test_who_only_looks_starts_nothing_and_stops_nothing(var_dir: Path) -> None:
    environ = {"VAR_DIR": str(var_dir)}
    with where_running(environ):
        assert environ == {"VAR_DIR": str(var_dir)} and not var_dir.exists()
    embedded = Embedded(var_dir, durable=False, postgres=False)
    embedded.start()
    with where_running(environ):
        assert set(environ) == {"VAR_DIR", "REDIS_URL"}
        assert redis.Redis.from_url(environ["REDIS_URL"]).ping()
    assert environ == {"VAR_DIR": str(var_dir)} and running(embedded) == [True]
    given = environ | {"REDIS_URL": "redis://kv"}
    with where_running(given):
        assert given["REDIS_URL"] == "redis://kv"
    assert given["REDIS_URL"] == "redis://kv"


def test_a_failure_is_one_line_and_leaves_nothing_running(var_dir: Path) -> None:
    embedded = Embedded(var_dir, durable=False)
    embedded.start()
    embedded.stop()
    (var_dir / "postgres" / "postgresql.conf").write_text("no_such_setting = on\n")
    with pytest.raises(Problem) as raised:
        embedded.start()
    assert "no_such_setting" in str(raised.value) or "configuration file" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert running(embedded) == [False, False]


def test_a_command_that_is_told_to_end_stops_what_it_started(var_dir: Path) -> None:
    environ = {name: text for name, text in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    environ |= {"VAR_DIR": str(var_dir), "DJANGO_SETTINGS_MODULE": "config.settings.test"}
    command = [
        sys.executable,
        "manage.py",
        "shell",
        "-c",
        "import time; print('in', flush=True); time.sleep(600)",
    ]
    process = subprocess.Popen(command, cwd=REPOSITORY, env=environ, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert any(line.strip() == "in" for line in process.stdout)
    embedded = Embedded(var_dir)
    assert running(embedded) == [True, True]

    process.terminate()
    assert process.wait(20) == 128 + signal.SIGTERM
    process.stdout.close()
    assert wait_until(lambda: running(embedded) == [False, False], 5)


def test_what_a_command_logs_is_no_part_of_what_it_prints(var_dir: Path, tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Which way?"}, {"role": "assistant", "content": "Down the stairs."}]
    case = {"id": "1", "lang": "en", "class": "a", "expect": "hit", "seed": turns, "probe": turns[:1]}
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps(case))
    environ = {name: text for name, text in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    environ |= {"VAR_DIR": str(var_dir), "DJANGO_SETTINGS_MODULE": "config.settings.local"}
    environ |= {"EMBEDDER": "openai", "EMBEDDING_URL": "http://127.0.0.1:9/v1"}
    command = [sys.executable, "manage.py", "evaluate_cache", "--cases", str(path), "--json"]
    run = subprocess.run(command, cwd=REPOSITORY, env=environ, capture_output=True, text=True)
    assert "embedder_unavailable" in run.stderr, run.stderr
    assert json.loads(run.stdout)["overall"]["n"] == 1


@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="only root can make a small disk")
def test_a_full_disk_is_named(var_dir: Path) -> None:
    var_dir.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(var_dir)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("may not mount here")
    try:
        with pytest.raises(Problem, match="No space left on device"):
            Embedded(var_dir, durable=False).start()
    finally:
        subprocess.run(["umount", "--lazy", str(var_dir)], check=True)
