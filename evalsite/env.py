"""Every setting that the environment may give, read and checked once, at start."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

import environ
from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the environment says. docs/settings.md explains each name; a test holds the two together."""

    data_dir: Path
    host: str
    port: int
    debug: bool
    secret_key: str
    allowed_hosts: tuple[str, ...]
    database_url: str
    time_zone: str
    https: bool
    demo_judge: bool
    upload_max_mb: int
    row_max_kb: int
    rows_max: int
    sandbox_seconds: float
    sandbox_memory_mb: int
    sandbox_output_kb: int
    sandbox_minimum_level: int
    sandbox_allow_unsafe: bool

    @property
    def local_mode(self) -> bool:
        """On a loopback address only: the visitor is let in without a form."""
        return is_loopback(self.host)

    @property
    def hosts(self) -> list[str]:
        """The host names that requests may carry."""
        if self.allowed_hosts:
            return list(self.allowed_hosts)
        if self.local_mode:
            return list(LOCAL_NAMES)
        return ["*"] if self.host in ("0.0.0.0", "::") else [self.host]  # noqa: S104


def is_loopback(host: str) -> bool:
    """True for localhost and loopback addresses; False for names and for any other address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def read(source: Mapping[str, str] | None = None) -> Config:
    """Read the configuration from `source` (default: the process's environment).

    Raises ImproperlyConfigured with the name of the variable, what was met and what is wanted.
    """
    values = os.environ if source is None else source
    return Config(
        data_dir=_folder(values, "DATA_DIR", BASE_DIR / "var"),
        host=values.get("HOST", "").strip() or "127.0.0.1",
        port=_whole(values, "PORT", 8000, lowest=1, highest=65535),
        debug=_flag(values, "DEBUG", False),
        secret_key=values.get("SECRET_KEY", ""),
        allowed_hosts=tuple(
            name.strip() for name in values.get("ALLOWED_HOSTS", "").split(",") if name.strip()
        ),
        database_url=values.get("DATABASE_URL", ""),
        time_zone=_time_zone(values),
        https=_flag(values, "HTTPS", False),
        demo_judge=_flag(values, "DEMO_JUDGE", True),
        upload_max_mb=_whole(values, "UPLOAD_MAX_MB", 4096, lowest=1),
        row_max_kb=_whole(values, "ROW_MAX_KB", 16384, lowest=1),
        rows_max=_whole(values, "ROWS_MAX", 5_000_000, lowest=1),
        sandbox_seconds=float(_whole(values, "SANDBOX_SECONDS", 5, lowest=1, highest=600)),
        sandbox_memory_mb=_whole(values, "SANDBOX_MEMORY_MB", 512, lowest=64),
        sandbox_output_kb=_whole(values, "SANDBOX_OUTPUT_KB", 256, lowest=1, highest=16384),
        sandbox_minimum_level=_whole(values, "SANDBOX_MINIMUM_LEVEL", 1, lowest=1, highest=3),
        sandbox_allow_unsafe=_flag(values, "SANDBOX_ALLOW_UNSAFE", False),
    )


def database(config: Config) -> dict[str, object]:
    """Django's DATABASES["default"]: PostgreSQL by DATABASE_URL, else one SQLite file in DATA_DIR."""
    if config.database_url:
        if not config.database_url.startswith(("postgres://", "postgresql://")):
            raise ImproperlyConfigured(
                "DATABASE_URL must name a PostgreSQL database, as postgres://user:password@host/name; "
                "leave it out for SQLite in DATA_DIR."
            )
        url = environ.Env.db_url_config(config.database_url)
        return {**url, "CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True}
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": config.data_dir / "evalsite.sqlite3",
        "CONN_MAX_AGE": None,
        # A file, as in earnest: a database in memory would be shared by threads in another way.
        "TEST": {"NAME": config.data_dir / "test.sqlite3"},
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-16000;",
        },
    }


def _folder(values: Mapping[str, str], name: str, default: Path) -> Path:
    path = Path(values.get(name, "").strip() or default).expanduser().resolve()
    if path.exists() and not path.is_dir():
        raise ImproperlyConfigured(f"{name}={str(path)!r} is a file; name a folder.")
    return path


def _time_zone(values: Mapping[str, str]) -> str:
    name = values.get("TIME_ZONE", "").strip() or "UTC"
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown; outside the database of zones; one of its folders
        raise ImproperlyConfigured(
            f"TIME_ZONE={name!r} is no time zone; write one such as Asia/Shanghai."
        ) from None
    return name


def _flag(values: Mapping[str, str], name: str, default: bool) -> bool:
    text = values.get(name, "").strip().lower()
    if not text:
        return default
    if text in ("1", "true", "yes", "on"):
        return True
    if text in ("0", "false", "no", "off"):
        return False
    raise ImproperlyConfigured(f"{name}={text!r} is neither yes nor no; write {name}=1 or {name}=0.")


def _whole(
    values: Mapping[str, str], name: str, default: int, *, lowest: int, highest: int | None = None
) -> int:
    text = values.get(name, "").strip()
    if not text:
        return default
    if not text.isdecimal() or int(text) < lowest or (highest is not None and int(text) > highest):
        wanted = f"from {lowest} to {highest}" if highest is not None else f"of at least {lowest}"
        raise ImproperlyConfigured(f"{name}={text!r} is not right; write a whole number {wanted}.")
    return int(text)
