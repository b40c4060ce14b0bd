"""One person's machine: guests may chat, services are embedded, the secret key lies under VAR_DIR."""

import os
import pathlib
import secrets


def _secret_key() -> str:
    """The key in VAR_DIR/secret_key, made on first use so that logins survive a restart."""
    beside_the_code = pathlib.Path(__file__).resolve().parents[2] / "var"
    var = pathlib.Path(os.environ.get("VAR_DIR") or beside_the_code)
    path = var / "secret_key"
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        var.mkdir(parents=True, exist_ok=True)
        key = secrets.token_urlsafe(50)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(key)
        return key


if "SECRET_KEY" not in os.environ:
    os.environ["SECRET_KEY"] = _secret_key()

from .base import *  # noqa: E402, F403
from .base import env  # noqa: E402

DEBUG = env.bool("DEBUG", default=False)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
GUEST_CHAT = env.bool("GUEST_CHAT", default=True)
# Straight from the source folders, so that nothing has to be collected before the first run.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True
EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
