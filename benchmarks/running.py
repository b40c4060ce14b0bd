"""The product as it runs: started by `python -m launch` on a port and a VAR_DIR of its own."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from launch.health import missing
from launch.options import REPOSITORY
from launch.process import wait_until

_READY_SECONDS = 300  # the first run converts the model


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def running(**environ: str) -> Iterator[str]:
    """The address of a stack started for this benchmark and deleted afterwards.

    Raises RuntimeError, with the end of its log, when it isn't ready in time.
    """
    var_dir = Path(tempfile.mkdtemp(prefix="reprise-benchmark-"))
    port = _free_port()
    address = f"http://127.0.0.1:{port}"
    model = os.environ.get("MODEL_DIR", str(REPOSITORY / "var" / "models" / "smollm2-135m-instruct"))
    settings = {"VAR_DIR": str(var_dir), "PORT": str(port), "MODEL_DIR": model}
    # Embedded services of its own, whatever the caller's environment points to.
    clean = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "REDIS_URL")}
    log = (var_dir / "launch.log").open("w+")
    process = subprocess.Popen(
        [sys.executable, "-m", "launch"],
        cwd=REPOSITORY,
        env=clean | settings | environ,
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    try:
        if not wait_until(lambda: missing(address) is None, _READY_SECONDS, pause=0.5):
            log.seek(0)
            raise RuntimeError(f"The stack did not start:\n{log.read()[-2000:]}")
        yield address
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
        log.close()
        shutil.rmtree(var_dir, ignore_errors=True)
