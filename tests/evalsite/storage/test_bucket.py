"""Files in a bucket, over HTTP to an S3-compatible server (tests/s3.py)."""

from __future__ import annotations

import gc
import hashlib
import os
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import storages
from django.core.management import call_command

from evalsite import env
from evalsite.storage import files
from evalsite.storage.errors import StorageUnreachable
from tests import s3

NAME = "uploads/0f3c"
LARGE = os.urandom(1 << 20) * 20  # more than one part of a multipart upload


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with s3.server() as found:
        yield found


@pytest.fixture
def machines(settings: LazySettings, address: str, tmp_path: Path) -> list[Path]:
    """Folders of two machines that share a bucket; this process acts as the first one."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    s3.use(settings, s3.environment(address), folders[0])
    s3.make_bucket()
    return folders


def made(content: bytes, folder: Path) -> Path:
    path = folder / "made"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("content", [b"", b"small", LARGE], ids=["empty", "small", "in pieces"])
def test_a_file_stored_by_one_machine_is_read_by_another(
    settings: LazySettings, machines: list[Path], content: bytes
) -> None:
    files.put(made(content, machines[0]), NAME)
    settings.DATA_DIR = machines[1]
    found = files.local(NAME)
    assert found.is_relative_to(machines[1])
    assert hashlib.sha256(found.read_bytes()).digest() == hashlib.sha256(content).digest()


def test_a_file_is_not_downloaded_where_it_was_created(machines: list[Path]) -> None:
    files.put(made(b"abc", machines[0]), NAME)
    storages["kept"].delete(NAME)
    assert files.local(NAME).read_bytes() == b"abc"


def test_a_file_is_streamed_without_a_copy(settings: LazySettings, machines: list[Path]) -> None:
    files.put(made(b"abc", machines[0]), NAME)
    settings.DATA_DIR = machines[1]
    file, size = files.stream(NAME)
    assert (file.read(), size) == (b"abc", 3)
    assert list(machines[1].rglob("*")) == []


def test_a_deleted_file_is_gone(settings: LazySettings, machines: list[Path]) -> None:
    files.put(made(b"abc", machines[0]), NAME)
    files.delete(NAME, "uploads/never")
    assert not files.exists(NAME)
    for read in (files.local, files.stream):
        with pytest.raises(FileNotFoundError):
            read(NAME)


class Stopped(Exception):
    pass


def stop() -> None:
    raise Stopped


def test_the_progress_callback_can_stop_an_upload(machines: list[Path]) -> None:
    with pytest.raises(Stopped):
        files.put(made(LARGE, machines[0]), NAME, stop)
    assert s3.names() == []


def test_the_progress_callback_can_stop_a_download(settings: LazySettings, machines: list[Path]) -> None:
    files.put(made(LARGE, machines[0]), NAME)
    settings.DATA_DIR = machines[1]
    with pytest.raises(Stopped):
        files.local(NAME, stop)
    gc.collect()  # so that a connection left open fails this test, not a later one
    assert [path for path in machines[1].rglob("*") if path.is_file()] == []


def test_an_unreachable_store_is_reported_without_its_keys(
    settings: LazySettings, machines: list[Path]
) -> None:
    given = {**s3.environment("http://the-user:the-secret@127.0.0.1:9"), "S3_BUCKET": "bucket"}
    s3.use(settings, given, machines[0])
    with pytest.raises(StorageUnreachable) as result:
        files.exists(NAME)
    assert "the-secret" not in f"{result.value}{settings.CONFIG!r}{files.description()}"


def test_a_missing_bucket_is_reported_at_the_start(settings: LazySettings, machines: list[Path]) -> None:
    files.check()
    address = f"http://a:b@{settings.CONFIG.s3_endpoint_url.removeprefix('http://')}"
    s3.use(settings, s3.environment(address), machines[0])
    with pytest.raises(StorageUnreachable, match="404"):
        files.check()


@pytest.mark.django_db(transaction=True)
def test_a_backup_says_that_uploads_are_elsewhere(machines: list[Path], tmp_path: Path) -> None:
    (machines[0] / "uploads").mkdir()
    (machines[0] / "keys").mkdir()
    result = StringIO()
    call_command("backup", tmp_path / "backup", stdout=result)
    assert not (tmp_path / "backup" / "uploads").exists()
    assert "Back up that bucket separately" in result.getvalue()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"FILES": "ftp"}, "folder or s3"),
        ({"FILES": "s3", "S3_BUCKET": "b"}, "S3_ACCESS_KEY and S3_SECRET_KEY"),
        ({"S3_ENDPOINT_URL": "s3.example"}, "https://s3.example"),
        ({"S3_ENDPOINT_URL": "https://me:mine@s3.example"}, "without user and password"),
    ],
)
def test_invalid_settings_are_reported(given: dict[str, str], expected: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=expected) as result:
        env.read(given)
    assert "mine" not in str(result.value)
