"""Behind TLS, with Postgres and Valkey elsewhere. SECRET_KEY, ALLOWED_HOSTS, DATABASE_URL and REDIS_URL
must be given; a missing one is an error at start, not a default."""

from django.core.exceptions import ImproperlyConfigured

from .base import *  # noqa: F403
from .base import ALLOWED_HOSTS, env

for _name in ("DATABASE_URL", "REDIS_URL"):
    if not env.str(_name, default=""):
        raise ImproperlyConfigured(f"Set {_name}: production starts nothing embedded.")
if not ALLOWED_HOSTS:
    raise ImproperlyConfigured("Set ALLOWED_HOSTS, a comma-separated list of the names this site answers to.")

SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_SSL_REDIRECT = env.bool("SECURE_SSL_REDIRECT", default=True)
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^metrics$"]
SECURE_HSTS_SECONDS = env.int("SECURE_HSTS_SECONDS", default=31_536_000)
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
LOG_JSON = env.bool("LOG_JSON", default=True)
