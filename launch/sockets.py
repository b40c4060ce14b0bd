"""Where the embedded services' Unix sockets lie."""

import hashlib
import re
import socket
from pathlib import Path

# sun_path holds 108 bytes on Linux and 104 on macOS, the last one NUL.
_LONGEST = 103
_LONGEST_NAME = len("/.s.PGSQL.5432.lock")
# Such a path stands in a URL and on a command line as it is, without quoting rules to disagree about.
_PLAIN = re.compile(r"[A-Za-z0-9/._-]+")


def socket_dir(var_dir: Path) -> Path:
    """VAR_DIR/sockets, or a short folder in /tmp named after VAR_DIR where that is too long or unusual.

    The same answer for every process, whatever its TMPDIR: they must find each other.
    """
    inside = var_dir / "sockets"
    if len(str(inside)) + _LONGEST_NAME <= _LONGEST and _PLAIN.fullmatch(str(inside)):
        return inside
    digest = hashlib.sha256(str(var_dir).encode()).hexdigest()[:16]
    return Path("/tmp") / f"reprise-{digest}"


def listens(path: Path, send: bytes = b"", expect: bytes = b"") -> bool:
    """Whether a server accepts a connection on `path` and, where given, answers `send` with `expect`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(2)
        try:
            connection.connect(str(path))
            if send:
                connection.sendall(send)
                return connection.recv(256).startswith(expect)
        except OSError:
            return False
    return True
