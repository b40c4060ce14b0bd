"""`python -m launch.install EXTRA...`: have .venv, with the locked dependencies, those extras among them.

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
# Wheels while they are unpacked, and what they unpack to: torch alone is 0.2 + 0.7 GB in its CPU build.
MEGABYTES = 3_000


def install(extras: list[str]) -> None:
    """Raises: Problem, with one line on what to do, if the environment cannot be made."""
    check_python()
    _make_venv(VENV)
    extras = sorted({*extras, *_installed_extras()})
    stamp = {"fingerprint": _fingerprint(), "extras": extras}
    if not STAMP.exists() or json.loads(STAMP.read_text()) != stamp:
        _check_disk()
        _install_into(VENV, extras, ["-c", str(LOCK)])
        _name_the_checkout()
        STAMP.write_text(json.dumps(stamp))
    subprocess.run([str(_python(VENV)), "-m", "launch.messages"], cwd=REPOSITORY, check=True)


def write_lock() -> None:
    """Write requirements.lock anew: the newest versions that pyproject.toml allows."""
    check_python()
    with tempfile.TemporaryDirectory() as folder:
        venv = Path(folder) / "venv"
        _make_venv(venv)
        _install_into(venv, EVERY_EXTRA, [])
        freeze = [str(_python(venv)), "-m", "pip", "freeze"]
        frozen = subprocess.run(freeze, check=True, capture_output=True, text=True).stdout
    # torch's builds for CPU and for CUDA share a version, and CUDA's own packages are pinned by torch.
    lines = [line.partition("+")[0] for line in frozen.splitlines() if not line.startswith("nvidia-")]
    header = [line for line in LOCK.read_text().splitlines() if line.startswith("#")]
    LOCK.write_text("\n".join([*header, *lines, ""]))


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
        raise Problem(f".venv was made with another Python; remove it (rm -r .venv). {problem}") from None
    return True


def _install_into(venv: Path, extras: list[str], constraints: list[str]) -> None:
    """Only ready-made wheels: there is one for everything on the supported systems, so nothing is
    compiled, and what lacks one says so instead of looking for a compiler."""
    pip = [
        str(_python(venv)),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--only-binary",
        ":all:",
    ]
    project = _project()
    wanted = [*project["project"]["dependencies"]]
    for extra in extras:
        wanted += project["project"]["optional-dependencies"][extra]
    print("Installing dependencies (the first time takes minutes) ...", flush=True)
    failure = (
        "the dependencies could not be installed: see pip's words above. It needs a network or a package "
        "mirror, free disk space, and x86-64 or ARM with glibc 2.28 or later, or macOS 14 or later"
    )
    _run([*pip, *constraints, *wanted], failure)
    alone = project["tool"]["reprise"]["without-dependencies"]
    _run([*pip, *constraints, "--no-deps", *alone], failure)


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


def _check_disk() -> None:
    free = shutil.disk_usage(REPOSITORY).free // 1_000_000
    if free < MEGABYTES:
        raise Problem(f"Only {free} MB are free at {REPOSITORY}, and installing takes {MEGABYTES} MB.")


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
