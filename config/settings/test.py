"""The test suite: throw-away services (tests.services sets their addresses), short answers, fast hashing."""

import os

os.environ.setdefault("SECRET_KEY", "only-for-tests")

from .base import *  # noqa: F403
from .base import env

ALLOWED_HOSTS = ["*"]
GUEST_CHAT = True
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True
MAX_TOKENS = env.int("MAX_TOKENS", default=48)
# One browser types faster than a person; the limit has a test of its own, with its own setting.
MAX_MESSAGES_PER_MINUTE = env.int("MAX_MESSAGES_PER_MINUTE", default=1_000)
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
