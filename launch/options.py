"""What the environment says about this machine: where things lie, which address to listen on."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launch.problem import Problem

REPOSITORY = Path(__file__).resolve().parent.parent


def var_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """VAR_DIR as an absolute path; `var/` beside the code when unset."""
    return Path(environ.get("VAR_DIR") or REPOSITORY / "var").expanduser().resolve()


@dataclass(frozen=True)
class Options:
    """Everything `make run` can be told, checked once.

    Raises (from `read`): Problem, naming the variable, for a number that is none or out of range.
    """

    var_dir: Path
    model_dir: Path
    host: str
    port: int
    web_processes: int
    answer_concurrency: int
    generate_concurrency: int
    generate_workers: int
    settings_module: str

    @classmethod
    def read(cls, environ: Mapping[str, str] = os.environ) -> "Options":
        var = var_dir(environ)
        model = environ.get("MODEL_DIR") or var / "models" / "smollm2-135m-instruct"
        return cls(
            var_dir=var,
            model_dir=Path(model).expanduser().resolve(),
            host=_host(environ),
            port=_number(environ, "PORT", 8000, 1, 65535),
            web_processes=_number(environ, "WEB_PROCESSES", 1, 1, 64),
            answer_concurrency=_number(environ, "ANSWER_CONCURRENCY", 4, 1, 256),
            generate_concurrency=_number(environ, "GENERATE_CONCURRENCY", 8, 1, 256),
            generate_workers=_number(environ, "GENERATE_WORKERS", 1, 1, 64),
            settings_module=environ.get("DJANGO_SETTINGS_MODULE") or "config.settings.local",
        )

    @property
    def address(self) -> str:
        """What a person on this machine types into a browser, without a trailing slash."""
        name = "localhost" if self.host in {"127.0.0.1", "0.0.0.0"} else self.host
        return f"http://{name}:{self.port}"

    @property
    def reach(self) -> str:
        """The address under which this machine reaches its own server."""
        return "127.0.0.1" if self.host == "0.0.0.0" else self.host


def _host(environ: Mapping[str, str]) -> str:
    host = environ.get("HOST") or "127.0.0.1"
    if ":" in host:
        raise Problem(f"HOST is {host!r}, but only IPv4 addresses and names are supported.")
    return host


def _number(environ: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    text = environ.get(name) or str(default)
    if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
        raise Problem(f"{name} is {text!r}; it must be a whole number from {low} to {high}.")
    return int(text)
