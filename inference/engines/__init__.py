"""What turns a conversation into an answer, token by token. Importing this room loads no model library.

`base` is the agreement every engine keeps; `create_engine` builds one; `identity` says which model would
answer without loading it.
"""

from pathlib import Path
from typing import Any

from inference.engines.base import Engine, Identity

__all__ = ["UnknownEngine", "create_engine", "identity"]

_NOT_BUILT = ("vllm", "openai")


class UnknownEngine(ValueError):
    """No engine of that name can be built here."""


def create_engine(kind: str, **options: Any) -> Engine:
    """The engine `kind` with its own options (for "torch": see TorchEngine). Takes seconds: it loads the
    model. Raises UnknownEngine, EngineUnavailable when the model isn't in place, TypeError for an option
    the engine doesn't have."""
    _check(kind)
    from inference.engines.torch import TorchEngine

    return TorchEngine(**options)


def identity(kind: str, *, model_dir: Path | str, dtype: str = "bfloat16") -> Identity:
    """What `create_engine(kind, ...).identity()` would say, from the files alone (milliseconds, no torch).
    Raises UnknownEngine, EngineUnavailable."""
    _check(kind)
    from inference.engines.weights import read_identity

    return read_identity(model_dir, dtype)


def _check(kind: str) -> None:
    if kind in _NOT_BUILT:
        raise UnknownEngine(f"The engine {kind!r} isn't built yet; use 'torch'.")
    if kind != "torch":
        raise UnknownEngine(f"There is no engine {kind!r}; the one there is: 'torch'.")
