"""What turns a conversation into an answer, token by token. Importing this room loads no model library.

`base` is the agreement every engine keeps; `create_engine` builds one; `identity` says which model would
answer without loading it.
"""

from collections.abc import Callable
from typing import Any

from inference.engines.base import Engine, Identity

__all__ = ["KINDS", "UnknownEngine", "create_engine", "identity"]


class UnknownEngine(ValueError):
    """There is no engine of that name."""


def create_engine(kind: str, **options: Any) -> Engine:
    """The engine `kind` with its own options: see TorchEngine, VllmEngine and OpenAIEngine. May take seconds:
    it loads the model. Raises UnknownEngine, EngineUnavailable when the model or a library isn't in place,
    TypeError for an option the engine doesn't have, ValueError for one it can't use."""
    return _known(_BUILDERS, kind)(**options)


def identity(kind: str, **options: Any) -> Identity:
    """What `create_engine(kind, **options).identity()` would say, without loading a model or asking a server
    (milliseconds); options that don't matter to it are let pass. Raises UnknownEngine, EngineUnavailable."""
    return _known(_IDENTITIES, kind)(**options)


def _torch(**options: Any) -> Engine:
    from inference.engines.torch import TorchEngine

    return TorchEngine(**options)


def _vllm(**options: Any) -> Engine:
    from inference.engines.vllm import VllmEngine

    return VllmEngine(**options)


def _openai(**options: Any) -> Engine:
    from inference.engines.openai import OpenAIEngine

    return OpenAIEngine(**options)


def _of_files(*, model_dir: Any, dtype: str = "bfloat16", **_: Any) -> Identity:
    from inference.engines.weights import read_identity

    return read_identity(model_dir, dtype)


def _of_address(*, base_url: str, model: str, **_: Any) -> Identity:
    from inference.engines.openai import identity as served

    return served(base_url, model)


_BUILDERS: dict[str, Callable[..., Engine]] = {"torch": _torch, "vllm": _vllm, "openai": _openai}
_IDENTITIES: dict[str, Callable[..., Identity]] = {
    "torch": _of_files,
    "vllm": _of_files,
    "openai": _of_address,
}
KINDS = tuple(_BUILDERS)


def _known(table: dict[str, Callable[..., Any]], kind: str) -> Callable[..., Any]:
    if kind not in table:
        raise UnknownEngine(f"There is no engine {kind!r}; there are {', '.join(map(repr, KINDS))}.")
    return table[kind]
