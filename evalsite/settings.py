"""Django's settings. Whatever differs between machines comes from the environment, through env.py."""

from pathlib import Path

from csp.constants import NONE, SELF

from evalsite import env, secrets

CONFIG = env.read()
BASE_DIR: Path = env.BASE_DIR
DATA_DIR: Path = CONFIG.data_dir
LOCAL_MODE = CONFIG.local_mode

SECRET_KEY = CONFIG.secret_key or secrets.stored_key(DATA_DIR, "django") or secrets.new_key()
DEBUG = CONFIG.debug
ALLOWED_HOSTS = CONFIG.hosts
USE_X_FORWARDED_HOST = False
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if CONFIG.https else None

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django_htmx",
    "csp",
    "django_tasks",
    "django_tasks_db",
    "evalsite.apps.EvalsiteConfig",
    "evalsite.accounts.apps.AccountsConfig",
    "datasets.apps.DatasetsConfig",
    "judging.apps.JudgingConfig",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "evalsite.accounts.middleware.LocalVisitorMiddleware",
    "evalsite.accounts.middleware.UserLanguageMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "evalsite.urls"
WSGI_APPLICATION = "evalsite.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": False,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.template.context_processors.tz",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "evalsite.context.site",
            ],
            "libraries": {
                "i18n": "django.templatetags.i18n",
                "static": "django.templatetags.static",
                "show": "evalsite.templatetags.show",
            },
            "builtins": [
                "django.templatetags.i18n",
                "django.templatetags.static",
                "evalsite.templatetags.show",
            ],
        },
    },
]

DATABASES = {"default": env.database(CONFIG)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "accounts.User"
LOGIN_URL = "accounts:sign_in"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "accounts:sign_in"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

TASKS = {
    "default": {
        "BACKEND": "django_tasks_db.DatabaseBackend",
        "QUEUES": ["data", "runs"],
    }
}

# What a worker calls at its start and every 15 seconds, so that work of a dead one is taken up again.
RECONCILERS = [
    "datasets.importing.reconcile",
    "datasets.differences.reconcile",
    "datasets.attaching.reconcile",
    "datasets.searching.reconcile",
    "judging.runs.reconcile.reconcile",
    "judging.metrics.linting.reconcile",
]

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "evalsite" / "locale"]
TIME_ZONE = CONFIG.time_zone
USE_I18N = True
USE_TZ = True

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder"
]  # ours only: no app ships what we use
STATIC_ROOT = DATA_DIR / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "evalsite.static.Storage"},
}
WHITENOISE_USE_FINDERS = DEBUG or not (STATIC_ROOT / "staticfiles.json").exists()

FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.TemporaryFileUploadHandler"]
FILE_UPLOAD_TEMP_DIR = DATA_DIR / "incoming" if (DATA_DIR / "incoming").exists() else None
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024
FILE_UPLOAD_PERMISSIONS = 0o600

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    },
}
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_NAME = "evalsite_session"
SESSION_COOKIE_HTTPONLY = True
CSRF_COOKIE_NAME = "evalsite_csrf"
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = CONFIG.https
SECURE_SSL_REDIRECT = CONFIG.https
SECURE_HSTS_SECONDS = 31536000 if CONFIG.https else 0

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {"evalsite": {"level": "INFO"}, "judging": {"level": "INFO"}, "datasets": {"level": "INFO"}},
}
