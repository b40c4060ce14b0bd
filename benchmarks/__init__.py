"""Measurements against the running product. Each is `python -m benchmarks.NAME --json`."""
