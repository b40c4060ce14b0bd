"""A pytest plugin: throw-away Postgres and Valkey for the suite, there before Django reads its settings.

TEST_DATABASE_URL and TEST_REDIS_URL, where given, are used instead. The model is the one of `make run`,
so that it is converted once and not for each run of the suite.
"""

import argparse
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from launch.embedded import Embedded
from launch.lock import FileLock
from launch.options import Options

_PREFIX = "reprise-test-"
_key = pytest.StashKey["Services"]()


class Services:
    """The suite's own VAR_DIR, and what runs in it."""

    def __init__(self) -> None:
        _sweep()
        model_dir = Options.read().model_dir
        self.var_dir = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = FileLock(self.var_dir / "suite.lock")
        self._lock.seize()
        given = {
            "DATABASE_URL": os.environ.get("TEST_DATABASE_URL", ""),
            "REDIS_URL": os.environ.get("TEST_REDIS_URL", ""),
        }
        self.embedded = Embedded(
            self.var_dir, durable=False, postgres=not given["DATABASE_URL"], valkey=not given["REDIS_URL"]
        )
        self.embedded.start()
        os.environ |= given | self.embedded.environment()
        os.environ["VAR_DIR"] = str(self.var_dir)
        os.environ["MODEL_DIR"] = str(model_dir)
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings.test"

    def stop(self) -> None:
        self.embedded.discard()
        self._lock.release()


def _sweep() -> None:
    """Stop and delete what a killed run of the suite left behind: nobody holds its lock."""
    for var_dir in Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        if var_dir.stat().st_uid != os.geteuid():
            continue
        lock = FileLock(var_dir / "suite.lock")
        if lock.seize():
            Embedded(var_dir).discard()
            shutil.rmtree(var_dir, ignore_errors=True)
        lock.release()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """pytest-django reads the settings in this hook, so the services start around it."""
    options = early_config.known_args_namespace
    if not (options.help or options.version or _only_hands_out(options)):
        early_config.stash[_key] = Services()
    yield


def _only_hands_out(options: argparse.Namespace) -> bool:
    """Whether other processes run the tests, and this one shares them out (see tests.lanes)."""
    return bool(options.numprocesses) and "PYTEST_XDIST_WORKER" not in os.environ


def pytest_unconfigure(config: pytest.Config) -> None:
    services = config.stash.get(_key, None)
    if services is not None:
        services.stop()


def services_of(config: pytest.Config) -> Services:
    return config.stash[_key]
