"""All settings from environment variables, read and validated once at startup."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import environ
from django.core.exceptions import ImproperlyConfigured

from evalsite import command_line

BASE_DIR = command_line.ROOT
TASK_ENGINES = ("database", "celery")
LOG_FORMATS = ("line", "json")
FILES = ("folder", "s3")
WORK_WAITS_SECONDS = 20  # for a locked database or a connection to it, in workers and commands
PAGES_WAIT_SECONDS = 4
PAGES_WAIT_FOR_SQLITE_SECONDS = 10  # its lock is not fair: on a busy machine a request may lose several times
# libpq: detect a lost server within half a minute instead of TCP's default of two hours.
LOST_CONNECTIONS = {
    "tcp_user_timeout": 20_000,  # milliseconds
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
SCALE_ADVICE = (
    "Install the wheel with its extra, as evalsite-….whl[scale]."
    if command_line.IS_INSTALLED
    else "In the folder of evalsite: .venv/bin/pip install --require-hashes -r requirements-scale.txt"
)
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The configuration. docs/settings.md describes each setting; a test compares both."""

    data_dir: Path
    host: str
    port: int
    debug: bool
    secret_key: str = field(repr=False)
    allowed_hosts: tuple[str, ...]
    site_url: str
    email_url: str = field(repr=False)
    email_from: str
    database_url: str = field(repr=False)
    task_engine: str
    celery_broker_url: str = field(repr=False)
    encryption_key: str = field(repr=False)
    files: str
    s3_endpoint_url: str
    s3_bucket: str
    s3_access_key: str = field(repr=False)
    s3_secret_key: str = field(repr=False)
    s3_region: str
    log_format: str
    time_zone: str
    https: bool
    require_sign_in: bool
    data_group: bool
    start_incomplete: bool
    base_path: str
    demo_judge: bool
    upload_max_mb: int
    unpacked_max_mb: int
    row_max_kb: int
    row_values_max: int
    rows_max: int
    api_requests_per_minute: int
    evidence_key_file: str
    webhooks_plain_http: bool
    webhooks_allowed_networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]
    sandbox_seconds: float
    judge_concurrency: int
    sandbox_memory_mb: int
    sandbox_output_kb: int
    sandbox_minimum_level: int
    sandbox_allow_unsafe: bool
    oidc_issuer: str
    oidc_client_id: str
    oidc_client_secret: str = field(repr=False)
    oidc_name: str

    @property
    def local_mode(self) -> bool:
        """Whether visitors are signed in without a password.

        Only on a loopback address; not behind a proxy, indicated by HTTPS or another name in ALLOWED_HOSTS, and not
        with REQUIRE_SIGN_IN.
        """
        return (
            is_loopback(self.host)
            and not self.https
            and not self.require_sign_in
            and all(map(is_loopback, self.allowed_hosts))
        )

    @property
    def hosts(self) -> list[str]:
        """Allowed host names of requests."""
        if self.allowed_hosts:
            return list(self.allowed_hosts)
        if is_loopback(self.host):
            return list(LOCAL_NAMES)
        return ["*"] if self.host in ("0.0.0.0", "::") else [self.host]  # noqa: S104


def is_loopback(host: str) -> bool:
    """Whether the host is localhost or a loopback address; False for other names and addresses."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def read(source: Mapping[str, str] | None = None) -> Config:
    """Read the configuration from `source` (default: os.environ).

    Raises ImproperlyConfigured with the name of the variable, its value and what is expected.
    """
    values = os.environ if source is None else source
    task_engine = _one_of(values, "TASK_ENGINE", TASK_ENGINES)
    return Config(
        data_dir=_data_dir(values),
        host=values.get("HOST", "").strip() or "127.0.0.1",
        port=_whole(values, "PORT", 8000, lowest=1, highest=65535),
        debug=_flag(values, "DEBUG", False),
        secret_key=values.get("SECRET_KEY", ""),
        allowed_hosts=tuple(
            name.strip() for name in values.get("ALLOWED_HOSTS", "").split(",") if name.strip()
        ),
        site_url=_site_url(values),
        **_mail(values),
        database_url=values.get("DATABASE_URL", ""),
        task_engine=task_engine,
        celery_broker_url=_broker(values) if task_engine == "celery" else "",
        encryption_key=values.get("ENCRYPTION_KEY", ""),
        **_files(values),
        log_format=_one_of(values, "LOG_FORMAT", LOG_FORMATS),
        time_zone=_time_zone(values),
        https=_flag(values, "HTTPS", False),
        require_sign_in=_flag(values, "REQUIRE_SIGN_IN", False),
        data_group=_flag(values, "DATA_GROUP", False),
        base_path=_base_path(values),
        start_incomplete=_flag(values, "START_INCOMPLETE", False),
        demo_judge=_flag(values, "DEMO_JUDGE", True),
        upload_max_mb=_whole(values, "UPLOAD_MAX_MB", 4096, lowest=1),
        unpacked_max_mb=_whole(values, "UNPACKED_MAX_MB", 4096, lowest=1),
        row_max_kb=_whole(values, "ROW_MAX_KB", 16384, lowest=1),
        row_values_max=_whole(values, "ROW_VALUES_MAX", 1_000_000, lowest=1_000),
        rows_max=_whole(values, "ROWS_MAX", 5_000_000, lowest=1),
        judge_concurrency=_whole(values, "JUDGE_CONCURRENCY", 64, lowest=1, highest=4096),
        api_requests_per_minute=_whole(values, "API_REQUESTS_PER_MINUTE", 600, lowest=1),
        evidence_key_file=values.get("EVIDENCE_KEY_FILE", "").strip(),
        webhooks_plain_http=_flag(values, "WEBHOOKS_PLAIN_HTTP", False),
        webhooks_allowed_networks=_networks(values, "WEBHOOKS_ALLOWED_NETWORKS"),
        sandbox_seconds=float(_whole(values, "SANDBOX_SECONDS", 5, lowest=1, highest=600)),
        sandbox_memory_mb=_whole(values, "SANDBOX_MEMORY_MB", 512, lowest=64),
        sandbox_output_kb=_whole(values, "SANDBOX_OUTPUT_KB", 256, lowest=1, highest=16384),
        sandbox_minimum_level=_whole(values, "SANDBOX_MINIMUM_LEVEL", 1, lowest=1, highest=3),
        sandbox_allow_unsafe=_flag(values, "SANDBOX_ALLOW_UNSAFE", False),
        **_oidc(values),
    )


def database(config: Config) -> dict[str, Any]:
    """Django's DATABASES["default"]: PostgreSQL if DATABASE_URL is set, else an SQLite file in DATA_DIR."""
    if config.database_url:
        if not config.database_url.startswith(("postgres://", "postgresql://")):
            raise ImproperlyConfigured(
                "DATABASE_URL must name a PostgreSQL database, as postgres://user:password@host/name; "
                "remove it to use SQLite in DATA_DIR."
            )
        url = environ.Env.db_url_config(config.database_url)
        options = {**LOST_CONNECTIONS, "connect_timeout": WORK_WAITS_SECONDS, **url.pop("OPTIONS", {})}
        return {**url, "CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True, "OPTIONS": options}
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": config.data_dir / "evalsite.sqlite3",
        "CONN_MAX_AGE": None,
        # A file, as in production: threads would share an in-memory database differently.
        "TEST": {"NAME": config.data_dir / "test.sqlite3"},
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": WORK_WAITS_SECONDS,
            # Larger pages for new files: rows of a kilobyte and more are written with half the system calls.
            "init_command": "PRAGMA page_size=8192; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; "
            "PRAGMA cache_size=-16000;",
        },
    }


def for_pages(database: dict[str, Any]) -> None:
    """Change a database's settings for a web process.

    It waits only a few seconds for a lock or a connection, as few threads serve all users.
    """
    options = database["OPTIONS"]
    if database["ENGINE"] == "django.db.backends.sqlite3":
        options["timeout"] = PAGES_WAIT_FOR_SQLITE_SECONDS
        # Each thread has its own cache; a larger one does not speed up pages, as the system caches the file.
        options["init_command"] += " PRAGMA cache_size=-4000;"
    else:
        options["connect_timeout"] = min(int(options["connect_timeout"]), PAGES_WAIT_SECONDS)
        options["options"] = f"-c lock_timeout={PAGES_WAIT_SECONDS}s {options.get('options', '')}".strip()


def storages(config: Config) -> dict[str, dict[str, object]]:
    """Django's STORAGES entry for stored files: the bucket if FILES=s3, else empty."""
    if config.files != "s3":
        return {}
    from boto3.s3.transfer import TransferConfig  # imported here: only needed for a bucket
    from botocore.config import Config as ClientConfig

    client = ClientConfig(
        s3={"addressing_style": "path"},  # bucket names as host names would need DNS entries
        signature_version="s3v4",
        connect_timeout=5,
        read_timeout=60,
        retries={"mode": "standard", "total_max_attempts": 5},
        # Not every compatible store supports these checksums; evalsite/storage/bucket.py compares sizes.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    options = {
        "bucket_name": config.s3_bucket,
        "endpoint_url": config.s3_endpoint_url or None,
        "region_name": config.s3_region,
        "access_key": config.s3_access_key,
        "secret_key": config.s3_secret_key,
        "default_acl": None,
        "file_overwrite": True,
        "client_config": client,
        # In the caller's thread: progress callbacks use the caller's database connection.
        "transfer_config": TransferConfig(use_threads=False),
    }
    return {"kept": {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": options}}


def _files(values: Mapping[str, str]) -> dict[str, str]:
    """FILES=s3 needs a bucket and keys; S3_ENDPOINT_URL is needed only if the store is not Amazon's."""
    files = _one_of(values, "FILES", FILES)
    names = ("S3_ENDPOINT_URL", "S3_BUCKET", "S3_ACCESS_KEY", "S3_SECRET_KEY", "S3_REGION")
    settings = {name: values.get(name, "").strip() for name in names}
    missing = [name for name in names[1:4] if not settings[name]]
    if files == "s3" and missing:
        raise ImproperlyConfigured(f"FILES=s3 needs {' and '.join(missing)} too; see docs/settings.md.")
    if files == "s3":
        _needs("storages", "FILES=s3")
        _needs("boto3", "FILES=s3")
    url = urlsplit(settings["S3_ENDPOINT_URL"])
    if settings["S3_ENDPOINT_URL"] and not (
        url.scheme in ("http", "https") and url.hostname and not url.username
    ):
        raise ImproperlyConfigured(
            "S3_ENDPOINT_URL is invalid; use an address such as https://s3.example, without user and password."
        )
    settings["S3_REGION"] = settings["S3_REGION"] or "us-east-1"
    return {"files": files, **{name.lower(): value for name, value in settings.items()}}


def _oidc(values: Mapping[str, str]) -> dict[str, str]:
    """Single sign-on: issuer, client and secret must be set together."""
    names = ("OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET")
    settings = {name: values.get(name, "").strip() for name in names}
    missing = [name for name, value in settings.items() if not value]
    if missing and len(missing) < len(names):
        raise ImproperlyConfigured(
            f"{' and '.join(missing)} missing; single sign-on needs {', '.join(names)}."
        )
    url = urlsplit(settings["OIDC_ISSUER"])
    if not missing and not (
        url.scheme == "https" or (url.scheme == "http" and is_loopback(url.hostname or ""))
    ):
        raise ImproperlyConfigured(
            f"OIDC_ISSUER={settings['OIDC_ISSUER']!r} is invalid; use the provider's https:// address."
        )
    name = values.get("OIDC_NAME", "").strip() or url.hostname or ""
    return {**{key.lower(): value for key, value in settings.items()}, "oidc_name": name}


def _data_dir(values: Mapping[str, str]) -> Path:
    try:
        path = Path(values.get("DATA_DIR", "").strip() or command_line.default_data_dir())
        path = path.expanduser().resolve()
    except RuntimeError:
        raise ImproperlyConfigured(
            "This user has no home folder. Set DATA_DIR to the folder for the data."
        ) from None
    if path.exists() and not path.is_dir():
        raise ImproperlyConfigured(f"DATA_DIR={str(path)!r} is a file; use a folder.")
    return path


def _base_path(values: Mapping[str, str]) -> str:
    """The path below which a proxy shows the site, such as `/evals`; '' if the site has a host name of its own."""
    path = values.get("BASE_PATH", "").strip().rstrip("/")
    if path and not re.fullmatch(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+", path):
        raise ImproperlyConfigured(f"BASE_PATH={path!r} is invalid; use a path such as /evals.")
    return path


def _site_url(values: Mapping[str, str]) -> str:
    """The site's own address, with BASE_PATH and without a slash at the end; '' if it is not set."""
    text = values.get("SITE_URL", "").strip().rstrip("/")
    if not text:
        return ""
    base_path = _base_path(values)
    example = f"https://evals.example{base_path}"
    if not _is_site_url(text):
        raise ImproperlyConfigured(
            f"SITE_URL={text!r} is invalid; use the address at which people open the site, such as {example}."
        )
    if urlsplit(text).path != base_path:
        raise ImproperlyConfigured(
            f"SITE_URL={text!r} does not end with BASE_PATH; use one such as {example}."
        )
    return text


def _is_site_url(text: str) -> bool:
    """Whether it is an http(s) address without user, query and fragment, in which nothing needs escaping."""
    try:
        url = urlsplit(text)
        url.port  # noqa: B018 - raises ValueError for an invalid one
    except ValueError:
        return False
    plain = re.fullmatch(r"https?://[A-Za-z0-9.\[\]:-]+(/[A-Za-z0-9._~/-]*)?", text)
    return bool(plain and url.hostname)


def _mail(values: Mapping[str, str]) -> dict[str, str]:
    """EMAIL_URL needs a sender: EMAIL_FROM, else the user of the mail server if it is an address."""
    url, sender = values.get("EMAIL_URL", "").strip(), values.get("EMAIL_FROM", "").strip()
    if url:
        try:
            user = str(email(url).get("EMAIL_HOST_USER", ""))
        except ValueError:
            raise ImproperlyConfigured(
                "EMAIL_URL is invalid; use an address such as smtp+tls://user:password@mail.example:587."
            ) from None
        sender = sender or (user if "@" in user else "")
        if not re.fullmatch(r"[^@\r\n]+@[^@\s]+", sender):
            raise ImproperlyConfigured("EMAIL_URL needs EMAIL_FROM too, such as evalsite@evals.example.")
    return {"email_url": url, "email_from": sender}


def email(url: str) -> dict[str, Any]:
    """Django's EMAIL_… settings. `smtp+tls` begins in plain text and upgrades, `smtps` is TLS from the start."""
    scheme = urlsplit(url).scheme
    if scheme not in environ.Env.EMAIL_SCHEMES:
        raise ValueError(scheme)
    if scheme == "smtps":
        url = url.replace("smtps:", "smtp+ssl:", 1)
    known = {name: value for name, value in environ.Env.email_url_config(url).items() if value is not None}
    port = {"smtp+tls": 587, "smtp+ssl": 465}.get(urlsplit(url).scheme, 25)
    return {"EMAIL_PORT": port, **known, "EMAIL_FILE_PATH": urlsplit(url).path}


def _time_zone(values: Mapping[str, str]) -> str:
    name = values.get("TIME_ZONE", "").strip() or "UTC"
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, outside of the zone database, or one of its folders
        raise ImproperlyConfigured(
            f"TIME_ZONE={name!r} is not a time zone; use one such as Asia/Shanghai."
        ) from None
    return name


def _networks(
    values: Mapping[str, str], name: str
) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    try:
        texts = [text.strip() for text in values.get(name, "").split(",")]
        return tuple(ipaddress.ip_network(text) for text in texts if text)
    except ValueError as error:
        raise ImproperlyConfigured(
            f"{name} is invalid: {error}. Use networks such as 10.1.0.0/16, separated by commas."
        ) from None


def _one_of(values: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    """The value of a variable with fixed choices, the first of which is the default."""
    text = values.get(name, "").strip().lower() or choices[0]
    if text not in choices:
        raise ImproperlyConfigured(f"{name}={text!r} is invalid; use {' or '.join(choices)}.")
    return text


def _broker(values: Mapping[str, str]) -> str:
    url = values.get("CELERY_BROKER_URL", "").strip()
    if not url.startswith(("redis://", "rediss://", "amqp://", "amqps://")):
        raise ImproperlyConfigured(
            "TASK_ENGINE=celery needs CELERY_BROKER_URL: redis://host:6379/0 or amqp://user:password@host:5672//"
        )
    _needs("celery", "TASK_ENGINE=celery")
    if url.startswith("redis"):
        _needs("redis", "CELERY_BROKER_URL=redis://…")
    return url


def _needs(package: str, setting: str) -> None:
    if find_spec(package) is None:
        raise ImproperlyConfigured(
            f"{setting} needs the package {package}, which is not installed. {SCALE_ADVICE}"
        )


def _flag(values: Mapping[str, str], name: str, default: bool) -> bool:
    text = values.get(name, "").strip().lower()
    if not text:
        return default
    if text in ("1", "true", "yes", "on"):
        return True
    if text in ("0", "false", "no", "off"):
        return False
    raise ImproperlyConfigured(f"{name}={text!r} is invalid; use {name}=1 or {name}=0.")


def _whole(
    values: Mapping[str, str], name: str, default: int, *, lowest: int, highest: int | None = None
) -> int:
    text = values.get(name, "").strip()
    if not text:
        return default
    if not text.isdecimal() or int(text) < lowest or (highest is not None and int(text) > highest):
        wanted = f"from {lowest} to {highest}" if highest is not None else f"of at least {lowest}"
        raise ImproperlyConfigured(f"{name}={text!r} is invalid; use a whole number {wanted}.")
    return int(text)
