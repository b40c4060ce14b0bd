"""One engine at a time, each built once, in the order in which CONTRACT_ENGINES names them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .contenders import VLLM_OPTIONS, WINDOW, Contender, contender, names
from .served import Server, serve


@pytest.fixture(scope="session")
def server(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Server]]:
    """A running `vllm serve`, started by the first who calls for it."""
    started: list[Server] = []

    def running() -> Server:
        if not started:
            started.append(serve(model_dir, WINDOW, VLLM_OPTIONS, tmp_path_factory.mktemp("vllm") / "log"))
            started[0].wait()
        return started[0]

    yield running
    for one in started:
        one.stop()


@pytest.fixture(scope="session", params=names())
def it(request: pytest.FixtureRequest, model_dir: Path, server: Callable[[], Server]) -> Iterator[Contender]:
    with contender(request.param, model_dir, server) as built:
        yield built
