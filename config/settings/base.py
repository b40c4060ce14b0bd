"""Settings shared by every environment. Secrets and addresses come from the environment only."""

from pathlib import Path

import environ
from django.utils.translation import gettext_lazy as _

BASE_DIR = Path(__file__).resolve().parent.parent.parent
env = environ.Env()

VAR_DIR = Path(env.str("VAR_DIR", default=str(BASE_DIR / "var"))).resolve()
MODEL_DIR = Path(env.str("MODEL_DIR", default=str(VAR_DIR / "models" / "smollm2-135m-instruct"))).resolve()

SECRET_KEY = env.str("SECRET_KEY")
DEBUG = False
ALLOWED_HOSTS: list[str] = env.list("ALLOWED_HOSTS", default=[])
CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "channels",
    "django_htmx",
    "template_partials",
    "allauth",
    "allauth.account",
    "csp",
    "inference",
    "chat",
    "cacheadmin",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "chat.context_processors.chat",
            ],
        },
    }
]

# A placeholder of the right kind when no address is given: nothing listens there, and a command that
# needs the database says so. manage.py and `make run` start embedded services and set the real address.
DATABASES = {
    "default": env.db_url(
        "DATABASE_URL", default=f"postgresql://postgres@/reprise?host={VAR_DIR / 'postgres'}"
    )
}
# ASGI threads come and go, so a connection kept by one of them is a connection leaked; the pool is
# shared by all threads of a process, and checks a connection before it hands it out.
DATABASES["default"]["CONN_MAX_AGE"] = 0
DATABASES["default"].setdefault("OPTIONS", {})["pool"] = {
    "min_size": 1,
    "max_size": env.int("DATABASE_POOL", default=16),
    "timeout": 10,
    # Whoever asks later starts afresh, instead of waiting for attempts that an outage has spread out.
    "reconnect_timeout": 5,
}
DATABASES["default"]["ENGINE"] = "config.database"
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
# Prepared statements: planning took Postgres 1.4 of the 3.6 ms that one question cost it.
DATABASES["default"]["OPTIONS"] |= {"server_side_binding": True, "prepare_threshold": 3}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.str("REDIS_URL", default=f"unix://{VAR_DIR / 'valkey' / 'valkey.sock'}?db=0")

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "chat.channel_layer.PatientLayer",
        # Only small announcements travel here; tokens go by Redis stream, since this layer drops
        # messages silently when a channel is full.
        # It waits for 5 s at a time: with redis-py's own time limit of 5 s every idle socket would end.
        "CONFIG": {
            "hosts": [{"address": REDIS_URL, "socket_timeout": 10, "socket_connect_timeout": 5}],
            "capacity": 500,
            "expiry": 60,
        },
    }
}

CELERY_BROKER_URL = (
    "redis+socket://" + REDIS_URL.removeprefix("unix://").replace("?db=", "?virtual_host=")
    if REDIS_URL.startswith("unix://")
    else REDIS_URL
)

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_LOGOUT_ON_GET = False
ACCOUNT_SESSION_REMEMBER = True
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/"
ACCOUNT_LOGOUT_REDIRECT_URL = "/"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = VAR_DIR / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 60 * 60 * 24 * 90  # a guest's conversations hang on this cookie
CSRF_COOKIE_SAMESITE = "Lax"

# --- Reprise ------------------------------------------------------------------------------------
GUEST_CHAT = env.bool("GUEST_CHAT", default=False)

# Limits of one person; each is answered with an error frame.
MAX_TEXT_CHARS = env.int("MAX_TEXT_CHARS", default=8_000)
MAX_MESSAGES_PER_MINUTE = env.int("MAX_MESSAGES_PER_MINUTE", default=20)
MAX_OPEN_GENERATIONS = env.int("MAX_OPEN_GENERATIONS", default=5)
MAX_FRAME_BYTES = 64 * 1024
MAX_FRAMES_PER_10_SECONDS = env.int("MAX_FRAMES_PER_10_SECONDS", default=120)

ENGINE = env.str("ENGINE", default="torch")
ENGINE_THREADS = env.int("ENGINE_THREADS", default=0)  # 0: what torch chooses
SYSTEM_PROMPT = env.str("SYSTEM_PROMPT", default="You are a helpful assistant. Answer clearly and briefly.")
KNOWLEDGE_VERSION = env.str("KNOWLEDGE_VERSION", default="1")
APP_NAME = env.str("APP_NAME", default="reprise")
TEMPERATURE = env.float("TEMPERATURE", default=0.0)
MAX_TOKENS = env.int("MAX_TOKENS", default=512)

CONTEXT_TURNS = env.int("CONTEXT_TURNS", default=5)
CACHE_ENABLED = env.bool("CACHE_ENABLED", default=True)
QUEUE_LIMIT = env.int("QUEUE_LIMIT", default=200)  # waiting for the engine before `busy` is answered
HEARTBEAT_SECONDS = 2
SILENT_SECONDS = env.int("SILENT_SECONDS", default=90)  # then the reaper calls a generation interrupted
REAP_EVERY_SECONDS = 8  # with SILENT_SECONDS: shown to the person within 100 s
# A pending generation whose task was lost is sent again after this long.
REDISPATCH_SECONDS = env.int("REDISPATCH_SECONDS", default=30)
COALESCE_PATIENCE_SECONDS = 5
STREAM_TTL_SECONDS = 3600

LOGGING_CONFIG = None  # config.logging sets up structlog and the standard library together
LOG_LEVEL = env.str("LOG_LEVEL", default="INFO")
LOG_JSON = env.bool("LOG_JSON", default=False)

CELERY_TASK_DEFAULT_QUEUE = "answer"
CELERY_TASK_ROUTES = {"inference.tasks.generate": {"queue": "generate"}}
CELERY_TASK_IGNORE_RESULT = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # A generation is claimed by a conditional UPDATE, so a task that runs twice does nothing the second
    # time, and one that is lost is sent again by the reaper; Redis need not redeliver within minutes.
    "visibility_timeout": 6 * 3600,
    "socket_timeout": 30,
    "socket_connect_timeout": 5,
    "socket_keepalive": True,
}
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_DISABLE_RATE_LIMITS = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULE = {
    "reap-silent-generations": {
        "task": "inference.tasks.reap",
        "schedule": REAP_EVERY_SECONDS,
        "options": {"expires": REAP_EVERY_SECONDS},
    },
}
