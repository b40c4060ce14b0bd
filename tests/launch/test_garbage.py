"""What the web process loads is not looked through again by each full collection."""

import subprocess
import sys

from launch.options import REPOSITORY


def test_what_is_loaded_stays_out_of_collections() -> None:
    code = "import gc, config.asgi; print(gc.get_freeze_count(), len(gc.get_objects()))"
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    frozen, others = map(int, ended.stdout.split()[-2:])
    assert frozen > 100_000 > 5_000 > others
