"""Stores files in an S3-compatible bucket, using django-storages; every machine caches what it reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings
from django.core.files.base import File
from django.core.files.storage import storages

from evalsite.storage.errors import StorageUnreachable
from evalsite.storage.local_cache import LocalCache, OnPiece

FOLDER = "copies"
PIECE = 1 << 20
ABSENT = ("404", "NoSuchKey", "NotFound")


class Bucket:
    """A bucket with a local cache below DATA_DIR."""

    def __init__(self, data_dir: Path) -> None:
        self.cache = LocalCache(data_dir / FOLDER)

    @property
    def _storage(self) -> Any:
        return storages["kept"]

    def _object(self, name: str) -> Any:
        return self._storage.bucket.Object(name)

    def send(self, source: Path, name: str, on_piece: OnPiece) -> None:
        size = source.stat().st_size
        with _errors_of(name), source.open("rb") as file:
            self._storage.save(name, _WatchedFile(file, on_piece))
            if (met := self._object(name).content_length) != size:
                raise StorageUnreachable(f"The bucket kept {met} bytes of {name} in place of {size}.")

    def place(self, source: Path, name: str) -> None:
        self.cache.add(source, name)

    def local(self, name: str, on_piece: OnPiece) -> Path:
        if cached := self.cache.get(name):
            return cached
        with _errors_of(name):
            there = self._object(name)
            size = there.content_length

            def fetch(part: BinaryIO) -> None:
                # Not boto's own download, which leaks its connection if `on_piece` raises.
                with closing(there.get()["Body"]) as body:
                    for piece in body.iter_chunks(PIECE):
                        on_piece()
                        part.write(piece)

            return self.cache.get_or_fetch(name, size, fetch)

    def stream(self, name: str) -> tuple[BinaryIO, int]:
        if cached := self.cache.get(name):
            return cached.open("rb"), cached.stat().st_size
        with _errors_of(name):
            answer = self._object(name).get()
            return cast(BinaryIO, answer["Body"]), int(answer["ContentLength"])

    def exists(self, name: str) -> bool:
        if self.cache.get(name):
            return True
        with _errors_of(name):
            return bool(self._storage.exists(name))

    def delete(self, name: str) -> None:
        with _errors_of(name):
            self._storage.delete(name)
        self.cache.drop(name)

    def check(self) -> None:
        """Raise StorageUnreachable if the bucket does not exist or denies access."""
        with _errors_of():
            self._storage.connection.meta.client.head_bucket(Bucket=settings.CONFIG.s3_bucket)

    def description(self) -> str:
        return f"{settings.CONFIG.s3_endpoint_url or 'Amazon S3'}, {settings.CONFIG.s3_bucket}"


class _WatchedFile(File):  # type: ignore[type-arg]
    """A file that calls `on_piece` before each piece is read."""

    def __init__(self, file: BinaryIO, on_piece: OnPiece) -> None:
        super().__init__(file)
        self.source, self.on_piece = file, on_piece

    def read(self, size: int = -1) -> bytes:
        self.on_piece()
        return self.source.read(size)


@contextmanager
def _errors_of(name: str = "") -> Iterator[None]:
    """Convert client errors; `name` is a file that may be missing. The messages contain addresses, but no keys."""
    try:
        yield
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") in ABSENT and name:
            raise FileNotFoundError(name) from error
        raise StorageUnreachable(str(error)) from error
    except (BotoCoreError, Boto3Error) as error:
        raise StorageUnreachable(str(error)) from error
