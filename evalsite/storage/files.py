"""Storage of finished files: in DATA_DIR, or in a bucket with a local cache on each machine (FILES).

A file has a name such as `uploads/0f3c…`. It is written atomically and never changed, so cached copies stay valid.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from django.conf import settings

from evalsite.storage.errors import StorageUnreachable
from evalsite.storage.local_cache import OnPiece

log = logging.getLogger("evalsite.storage.files")


class FileStorage(Protocol):
    """A file store. Network operations raise StorageUnreachable; a missing file raises FileNotFoundError."""

    def send(self, source: Path, name: str, on_piece: OnPiece) -> None: ...
    def place(self, source: Path, name: str) -> None: ...
    def local(self, name: str, on_piece: OnPiece) -> Path: ...
    def stream(self, name: str) -> tuple[BinaryIO, int]: ...
    def exists(self, name: str) -> bool: ...
    def delete(self, name: str) -> None: ...
    def check(self) -> None: ...
    def description(self) -> str: ...


def _ignore() -> None:
    """Default progress callback."""


def put(source: Path, name: str, on_piece: OnPiece = _ignore) -> None:
    """Store a file made below DATA_DIR; it is moved from its location."""
    send(source, name, on_piece)
    place(source, name)


def send(source: Path, name: str, on_piece: OnPiece = _ignore) -> None:
    """The slow part of `put`, for callers whose `place` belongs to a transaction."""
    storage().send(source, name, on_piece)


def place(source: Path, name: str) -> None:
    """The fast part of `put`: move the file into place."""
    storage().place(source, name)


def local(name: str, on_piece: OnPiece = _ignore) -> Path:
    """Path of the file on this machine; fetched once from a bucket."""
    return storage().local(name, on_piece)


def stream(name: str) -> tuple[BinaryIO, int]:
    """Open the file for one sequential read; return it and its size in bytes. Makes no local copy."""
    return storage().stream(name)


def check() -> None:
    """Raise StorageUnreachable if files cannot be stored."""
    storage().check()


def description() -> str:
    """The storage location for display, without secrets."""
    return storage().description()


def exists(name: str) -> bool:
    """Whether the file exists."""
    return storage().exists(name)


def delete(*names: str) -> None:
    """Delete files, ignoring missing ones. Files that cannot be deleted now remain, which only costs space."""
    for name in names:
        try:
            storage().delete(name)
        except StorageUnreachable as error:
            log.warning("%s could not be deleted: %s", name, error)


@contextmanager
def deleted_on_error(*names: str) -> Iterator[list[str]]:
    """Delete these files, and those whose names are added to the list, if the block does not end well."""
    stored = list(names)
    try:
        yield stored
    except BaseException:  # also when the process is stopped: nothing refers to the files
        delete(*stored)
        raise


def storage() -> FileStorage:
    """The configured file store."""
    if settings.CONFIG.files == "s3":
        from evalsite.storage.bucket import Bucket  # imported here: only needed for a bucket

        return Bucket(settings.DATA_DIR)
    return Folder(settings.DATA_DIR)


class Folder:
    """Stores files in DATA_DIR under their names; several machines must share it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def send(self, source: Path, name: str, on_piece: OnPiece) -> None:
        """Nothing to send: `place` moves the file."""

    def place(self, source: Path, name: str) -> None:
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True, mode=settings.DATA_FOLDER_MODE)
        source.replace(place)

    def local(self, name: str, on_piece: OnPiece) -> Path:
        return self.root / name

    def stream(self, name: str) -> tuple[BinaryIO, int]:
        path = self.root / name
        return path.open("rb"), path.stat().st_size

    def exists(self, name: str) -> bool:
        return (self.root / name).is_file()

    def delete(self, name: str) -> None:
        (self.root / name).unlink(missing_ok=True)

    def check(self) -> None:
        """Nothing to check: DATA_DIR was checked before."""

    def description(self) -> str:
        return str(self.root)
