"""These tests need vLLM itself: `make test-vllm` has it, `make test` passes them by."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("vllm") else ["test_*.py"]
