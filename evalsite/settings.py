"""Django settings. Machine-specific values come from environment variables (env.py)."""

from datetime import timedelta
from pathlib import Path

from csp.constants import NONE, SELF

from evalsite import env, secrets
from evalsite.command_line import IS_INSTALLED

CONFIG = env.read()
BASE_DIR: Path = env.BASE_DIR
DATA_DIR: Path = CONFIG.data_dir
LOCAL_MODE = CONFIG.local_mode
# Permissions below DATA_DIR: for the owner only, or with DATA_GROUP also for the group.
DATA_FOLDER_MODE, DATA_FILE_MODE = (0o770, 0o660) if CONFIG.data_group else (0o700, 0o600)

# The site below a path behind a proxy: addresses begin with it, and cookies are sent to it only (web/base_path.py).
FORCE_SCRIPT_NAME = CONFIG.base_path or None
SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = LANGUAGE_COOKIE_PATH = CONFIG.base_path or "/"

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
    "django_htmx",
    "csp",
    "django_tasks",
    "django_tasks_db",
    "axes",
    "evalsite",
    "evalsite.accounts",
    "evalsite.webhooks",
    "evalsite.mail",
    "datasets.apps.DatasetsConfig",
    "judging.apps.JudgingConfig",
]

MIDDLEWARE = [
    "evalsite.health.HealthMiddleware",
    "csp.middleware.CSPMiddleware",  # before all that may reject a request, so that their pages have the policy too
    "django.middleware.security.SecurityMiddleware",
    "evalsite.web.headers.SameOriginMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "evalsite.web.headers.NoStoreMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "evalsite.api.middleware.JsonErrorsMiddleware",  # all that it answers gets the headers of those before it
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "evalsite.accounts.middleware.LocalOnlyMiddleware",
    "django.middleware.common.CommonMiddleware",
    "evalsite.web.request_limits.RequestLimitsMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "evalsite.accounts.middleware.TokenMiddleware",
    "evalsite.accounts.middleware.LocalVisitorMiddleware",
    "evalsite.accounts.middleware.UserLanguageMiddleware",
    "evalsite.accounts.middleware.OneTimePasswordMiddleware",
    "evalsite.accounts.middleware.AskedByMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "evalsite.web.refusals.UnavailableMiddleware",
    "evalsite.web.numbers.NumbersMiddleware",
    "evalsite.api.middleware.ApiRequestsMiddleware",
    "axes.middleware.AxesMiddleware",  # last: it replaces the responses of rejected logins
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
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
# Failed logins count even for unknown names. accounts/login_throttle.py has a limit for each combination:
AXES_ENABLED = not LOCAL_MODE
AXES_HANDLER = "evalsite.accounts.login_throttle.Handler"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"], ["ip_address"], ["username"]]
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=10)
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_CALLABLE = "evalsite.accounts.login_throttle.locked_page"
AXES_CLIENT_IP_CALLABLE = "evalsite.accounts.login_throttle.client_address"
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "evalsite.accounts.forms.NameAndDigitsValidator"},
]

TASKS = {
    "default": {
        "BACKEND": "django_tasks_db.DatabaseBackend",
        "QUEUES": ["data", "runs"],
    }
}

# Only sent with EMAIL_URL (mail/outgoing.py).
globals().update(env.email(CONFIG.email_url) if CONFIG.email_url else {})
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = CONFIG.email_from

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "evalsite" / "locale"]
TIME_ZONE = CONFIG.time_zone
USE_I18N = True
USE_TZ = True

STATIC_URL = "static/"
STATICFILES_DIRS: list[Path | tuple[str, Path]] = [BASE_DIR / "static"]
if not IS_INSTALLED:
    STATICFILES_DIRS.append(("guide", BASE_DIR / "docs" / "images"))
# only ours: no installed app has static files that we use
STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
STATIC_ROOT = BASE_DIR / "staticfiles" if IS_INSTALLED else DATA_DIR / "static"  # built by tools/wheel.py
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "evalsite.static.Storage"},
    **env.storages(CONFIG),
}
WHITENOISE_ALLOW_ALL_ORIGINS = False
WHITENOISE_USE_FINDERS = DEBUG or not (STATIC_ROOT / "staticfiles.json").exists()

# Files in ordinary forms stay in memory; upload pages write them to FILE_UPLOAD_TEMP_DIR (request_limits.py).
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]
FILE_UPLOAD_TEMP_DIR = DATA_DIR / "incoming" if (DATA_DIR / "incoming").exists() else None
DATA_UPLOAD_MAX_MEMORY_SIZE = FILE_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024  # a form
FILE_UPLOAD_PERMISSIONS = DATA_FILE_MODE

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],  # images contained in data sets; no external images are loaded
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
SESSION_COOKIE_AGE = 14 * 86400  # counted from signing in
CSRF_COOKIE_HTTPONLY = True  # scripts read the token from the page
CSRF_COOKIE_NAME = "evalsite_csrf"
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = CONFIG.https
SECURE_SSL_REDIRECT = CONFIG.https
SECURE_HSTS_SECONDS = 31536000 if CONFIG.https else 0

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "evalsite.logs.PlainLine"}, "json": {"()": "evalsite.logs.JsonLine"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": CONFIG.log_format}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "filters": {"no_traceback": {"()": "evalsite.logs.WithoutTraceback"}},
    "loggers": {
        **{
            name: {"filters": ["no_traceback"]}
            for name in (
                "django.request",
                "django.security.DisallowedHost",
                "django.security.SuspiciousOperation",
            )
        },
        "evalsite": {"level": "INFO"},
        "judging": {"level": "INFO"},
        "datasets": {"level": "INFO"},
    },
}
