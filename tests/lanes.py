"""How `make test` shares the suite among processes (pytest-xdist), each with services of its own.

Half of the suite waits for something: a worker that is missed, a socket that is idle. So beside the tests
that wait others compute.
"""

from pathlib import PurePosixPath

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# One stack for all files of these folders, started for the first and broken by each of them.
_ONE_STACK = {"tests/affinity", "tests/faults"}


class _ByFile(LoadScopeScheduling):
    """A file's tests stay together, as do those of a folder that share a stack; in the suite's order, since
    browser tests have to be the last in each process."""

    def _split_scope(self, nodeid: str) -> str:
        file = PurePosixPath(nodeid.partition("::")[0])
        return str(file.parent) if str(file.parent) in _ONE_STACK else str(file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _ByFile:
    config.option.loadscopereorder = False
    return _ByFile(config, log)
