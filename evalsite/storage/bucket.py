"""Files in a bucket of an S3-compatible store, by django-storages; every machine keeps copies of what it reads."""

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

from evalsite.storage.files import Heard, Unreachable
from evalsite.storage.local_cache import Copies

FOLDER = "copies"
PIECE = 1 << 20
ABSENT = ("404", "NoSuchKey", "NotFound")


class Bucket:
    """One bucket, and the copies below DATA_DIR."""

    def __init__(self, data_dir: Path) -> None:
        self.copies = Copies(data_dir / FOLDER)

    @property
    def _storage(self) -> Any:
        return storages["kept"]

    def _object(self, name: str) -> Any:
        return self._storage.bucket.Object(name)

    def send(self, made: Path, name: str, heard: Heard) -> None:
        size = made.stat().st_size
        with _told(name), made.open("rb") as file:
            self._storage.save(name, _Heard(file, heard))
            if (met := self._object(name).content_length) != size:
                raise Unreachable(f"The bucket kept {met} bytes of {name} in place of {size}.")

    def place(self, made: Path, name: str) -> None:
        self.copies.keep(made, name)

    def local(self, name: str, heard: Heard) -> Path:
        if found := self.copies.get(name):
            return found
        with _told(name):
            there = self._object(name)
            size = there.content_length

            def fetch(part: BinaryIO) -> None:
                # Not boto's own download: one that is ended by `heard` leaves its connection open.
                with closing(there.get()["Body"]) as body:
                    for piece in body.iter_chunks(PIECE):
                        heard()
                        part.write(piece)

            return self.copies.bring(name, size, fetch)

    def stream(self, name: str) -> tuple[BinaryIO, int]:
        if found := self.copies.get(name):
            return found.open("rb"), found.stat().st_size
        with _told(name):
            answer = self._object(name).get()
            return cast(BinaryIO, answer["Body"]), int(answer["ContentLength"])

    def exists(self, name: str) -> bool:
        if self.copies.get(name):
            return True
        with _told(name):
            return bool(self._storage.exists(name))

    def delete(self, name: str) -> None:
        with _told(name):
            self._storage.delete(name)
        self.copies.drop(name)

    def check(self) -> None:
        """Raises Unreachable if the bucket is not there for us."""
        with _told():
            self._storage.connection.meta.client.head_bucket(Bucket=settings.CONFIG.s3_bucket)

    def told(self) -> str:
        return f"{settings.CONFIG.s3_endpoint_url or 'Amazon S3'}, {settings.CONFIG.s3_bucket}"


class _Heard(File):  # type: ignore[type-arg]
    """A file of which every piece that is read is heard."""

    def __init__(self, file: BinaryIO, heard: Heard) -> None:
        super().__init__(file)
        self.source, self.heard = file, heard

    def read(self, size: int = -1) -> bytes:
        self.heard()
        return self.source.read(size)


@contextmanager
def _told(name: str = "") -> Iterator[None]:
    """Errors of the client as ours; `name` is the file that may be absent. Its messages hold addresses, no keys."""
    try:
        yield
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") in ABSENT and name:
            raise FileNotFoundError(name) from error
        raise Unreachable(str(error)) from error
    except (BotoCoreError, Boto3Error) as error:
        raise Unreachable(str(error)) from error
