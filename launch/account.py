"""The system account a service runs under when we are root, and its right to reach its files."""

import os
import pwd
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launch.problem import Problem

# PostgreSQL refuses to run as root.
SERVICE_USER = "reprise-pg"


@dataclass(frozen=True)
class Account:
    """Whose rights a child process gets: ours, unless we are root and the files are someone else's."""

    uid: int
    gid: int

    def popen_options(self) -> dict[str, Any]:
        """Keyword arguments for `subprocess` functions."""
        if os.geteuid() != 0 or self.uid == 0:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, directory: Path) -> None:
        """Make `directory` (and what leads to it) if missing, private to this account.

        Raises: Problem if it belongs to someone else.
        """
        missing = not directory.exists()
        directory.mkdir(parents=True, exist_ok=True, mode=0o755)
        owner = directory.stat().st_uid
        if missing or owner == os.geteuid() == 0:
            os.chown(directory, self.uid, self.gid)
        elif owner != self.uid:
            raise Problem(
                f"{directory} belongs to user {_name(owner)}: run as that user, or set VAR_DIR elsewhere."
            )
        directory.chmod(0o700)


def owner_of(directory: Path) -> Account:
    """The account that owns `directory`; ours if it does not exist yet."""
    if not directory.exists():
        return Account(os.geteuid(), os.getegid())
    found = directory.stat()
    return Account(found.st_uid, found.st_gid)


def unprivileged(directory: Path) -> Account:
    """An account other than root for a service that keeps its data in `directory`.

    Ours, or as root the folder's owner, or as root and for a new folder SERVICE_USER, which is made.
    Raises: Problem if that account cannot be made.
    """
    account = owner_of(directory)
    if os.geteuid() != 0 or account.uid != 0:
        return account
    entry = _service_user()
    return Account(entry.pw_uid, entry.pw_gid)


def open_path(path: Path) -> None:
    """As root: let other accounts pass through the folders that lead to `path` (not list them)."""
    if os.geteuid() != 0:
        return
    for folder in path.resolve().parents:
        mode = folder.stat().st_mode
        if not mode & stat.S_IXOTH:
            folder.chmod(mode | stat.S_IXOTH)


def open_tree(top: Path) -> None:
    """As root: let other accounts read and run what lies under `top`, whatever umask installed it."""
    if os.geteuid() != 0 or top.stat().st_mode & stat.S_IROTH:
        return
    for path in [*top.rglob("*"), top]:
        mode = path.stat().st_mode
        path.chmod(mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0))


def _service_user() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(SERVICE_USER)
    except KeyError:
        pass
    command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", SERVICE_USER]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
        return pwd.getpwnam(SERVICE_USER)
    except (OSError, subprocess.CalledProcessError, KeyError) as error:
        said = getattr(error, "stderr", "") or str(error)
        raise Problem(
            f"PostgreSQL cannot run as root, and the account {SERVICE_USER} could not be made "
            f"({said.strip()}): run as an ordinary user, or set DATABASE_URL."
        ) from error


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
