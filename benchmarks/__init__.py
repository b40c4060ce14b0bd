"""Measurements against the running product. Each is `python -m benchmarks.NAME --json`."""

import os

# As the embedded engine has it, which must be said before torch is loaded, and here torch may come first.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
