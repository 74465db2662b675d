"""Settings from the environment, and errors for invalid ones."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from evalsite import command_line, env

ROOT = Path(__file__).parents[2]
GUIDES = ("settings.md", "settings.zh.md")


def test_an_empty_environment_is_local_and_needs_nothing() -> None:
    config = env.read({})
    assert config.local_mode
    assert (config.host, config.port, config.data_dir) == ("127.0.0.1", 8000, ROOT / "var")


def test_a_user_without_a_home_needs_only_the_data_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Such as one of a container or a service, from a wheel."""
    monkeypatch.setattr(command_line, "default_data_dir", lambda: Path("~no-such-user/data").expanduser())
    assert env.read({"DATA_DIR": str(tmp_path)}).data_dir == tmp_path
    with pytest.raises(ImproperlyConfigured, match="Set DATA_DIR"):
        env.read({})


def test_no_secret_is_shown_with_the_configuration() -> None:
    secrets = {
        "SECRET_KEY": "hush-1",
        "ENCRYPTION_KEY": "hush-2",
        "DATABASE_URL": "postgres://me:hush-3@db/evalsite",
        "CELERY_BROKER_URL": "redis://:hush-4@broker/0",
        "S3_ACCESS_KEY": "hush-5",
        "S3_SECRET_KEY": "hush-6",
        "EMAIL_URL": "smtp://me%40mail.example:hush-8@mail.example",
        "OIDC_ISSUER": "https://id.example",
        "OIDC_CLIENT_ID": "evalsite",
        "OIDC_CLIENT_SECRET": "hush-7",
    }
    assert "hush" not in repr(env.read(secrets))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.9.1"])
def test_loopback_addresses_are_local(host: str) -> None:
    assert env.read({"HOST": host}).local_mode


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "evalsite.example", "localhost.example"])
def test_any_other_address_is_not(host: str) -> None:
    assert not env.read({"HOST": host}).local_mode


def test_local_mode_accepts_only_names_of_this_machine() -> None:
    assert "*" not in env.read({}).hosts


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("PORT", "eighty", "from 1 to 65535"),
        ("PORT", "0", "from 1 to 65535"),
        ("DEBUG", "maybe", "DEBUG=1 or DEBUG=0"),
        ("TIME_ZONE", "Mars/Base", "such as Asia/Shanghai"),
        ("TIME_ZONE", "/etc/passwd", "such as Asia/Shanghai"),
        ("DATA_DIR", __file__, "use a folder"),
        ("EMAIL_URL", "mail.example:587", "such as smtp"),
        ("EMAIL_URL", "smtp://mail.example", "needs EMAIL_FROM"),
        ("WEBHOOKS_ALLOWED_NETWORKS", "10.0.0.1/8", "such as 10.1.0.0/16"),
        ("SITE_URL", "evals.example", "such as https://evals.example"),
        ("SITE_URL", "ftp://evals.example", "such as https://evals.example"),
        ("SITE_URL", "https://me@evals.example", "such as https://evals.example"),
        ("SITE_URL", "https://evals.example:port", "such as https://evals.example"),
        ("SITE_URL", "https://evals.example/?a=1", "such as https://evals.example"),
        ("SITE_URL", "https://evals.example/other", "does not end with BASE_PATH"),
        ("SANDBOX_MEMORY_MB", "-1", "at least 64"),
        ("SANDBOX_MINIMUM_LEVEL", "4", "from 1 to 3"),
        ("TASK_ENGINE", "huey", "database or celery"),
        ("TASK_ENGINE", "celery", "needs CELERY_BROKER_URL"),
    ],
)
def test_an_invalid_value_is_reported_with_what_is_expected(name: str, value: str, expected: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=expected):
        env.read({name: value})


def test_the_address_of_the_site_has_the_base_path_and_no_slash_at_its_end() -> None:
    assert env.read({"SITE_URL": "https://evals.example/"}).site_url == "https://evals.example"
    below = {"SITE_URL": "https://tools.example:8443/evals/", "BASE_PATH": "/evals"}
    assert env.read(below).site_url == "https://tools.example:8443/evals"


def test_mail_is_sent_as_the_user_of_its_server_or_by_another_name() -> None:
    url = "smtp+tls://me%40mail.example:secret@mail.example:587"
    assert env.read({"EMAIL_URL": url}).email_from == "me@mail.example"
    assert env.read({"EMAIL_URL": url, "EMAIL_FROM": "site@evals.example"}).email_from == "site@evals.example"
    assert env.email(url)["EMAIL_USE_TLS"]
    assert env.email("smtps://mail.example")["EMAIL_USE_SSL"]
    assert env.email("smtps://mail.example")["EMAIL_PORT"] == 465
    assert env.email("filemail:///var/mails")["EMAIL_FILE_PATH"] == "/var/mails"


def test_an_address_without_the_base_path_is_reported() -> None:
    with pytest.raises(ImproperlyConfigured, match=r"such as https://evals\.example/evals"):
        env.read({"SITE_URL": "https://tools.example", "BASE_PATH": "/evals"})


@pytest.mark.parametrize("url", ["mysql://x@y/z", "sqlite:///x", "nonsense"])
def test_postgresql_is_the_only_other_database(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="must name a PostgreSQL database"):
        env.database(env.read({"DATABASE_URL": url}))


def test_a_url_selects_postgresql() -> None:
    database = env.database(env.read({"DATABASE_URL": "postgres://u:p@db.example:5433/evalsite"}))
    assert (database["HOST"], database["PORT"], database["NAME"]) == ("db.example", 5433, "evalsite")


def test_pages_wait_for_a_locked_database_for_seconds_only_and_cache_little_of_it() -> None:
    database = env.database(env.read({}))
    assert database["OPTIONS"]["timeout"] == env.WORK_WAITS_SECONDS
    env.for_pages(database)
    assert database["OPTIONS"]["timeout"] == env.PAGES_WAIT_FOR_SQLITE_SECONDS
    assert database["OPTIONS"]["init_command"].endswith("PRAGMA cache_size=-4000;")


def test_pages_wait_for_postgresql_for_seconds_only() -> None:
    database = env.database(env.read({"DATABASE_URL": "postgres://u:p@db.example/evalsite"}))
    assert database["OPTIONS"]["connect_timeout"] == env.WORK_WAITS_SECONDS
    env.for_pages(database)
    assert database["OPTIONS"]["connect_timeout"] == env.PAGES_WAIT_SECONDS
    assert database["OPTIONS"]["options"] == f"-c lock_timeout={env.PAGES_WAIT_SECONDS}s"


def test_options_in_the_database_url_are_kept() -> None:
    url = "postgres://u:p@db.example/evalsite?sslmode=require&connect_timeout=3&options=-c%20work_mem%3D8MB"
    database = env.database(env.read({"DATABASE_URL": url}))
    env.for_pages(database)
    options = database["OPTIONS"]
    assert (options["sslmode"], options["connect_timeout"]) == ("require", 3)
    assert options["options"].endswith(" -c work_mem=8MB")


@pytest.mark.parametrize("guide", GUIDES)
def test_the_guide_names_every_setting_and_no_other(guide: str) -> None:
    assert set(defaults_in(guide)) == {field.name.upper() for field in fields(env.Config)}


@pytest.mark.parametrize("guide", GUIDES)
def test_the_guide_gives_the_defaults(guide: str) -> None:
    config = env.read({})
    literal = {
        name: cell.strip("`")
        for name, cell in defaults_in(guide).items()
        if re.fullmatch("yes|no|`[^`]+`", cell)
    }
    assert literal == {name: as_text(getattr(config, name.lower())) for name in literal}


def defaults_in(guide: str) -> dict[str, str]:
    """{setting: default} from the tables of a guide."""
    text = (ROOT / "docs" / guide).read_text()
    return dict(re.findall(r"^\| `([A-Z0-9_]+)` \| ([^|]*?) \|", text, re.MULTILINE))


def as_text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Path):
        return f"{value.relative_to(ROOT)}/"
    return str(int(value)) if isinstance(value, float) else str(value)
