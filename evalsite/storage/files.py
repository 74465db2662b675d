"""Finished files: in DATA_DIR, or in a bucket with a local cache on each machine (FILES).

A file has a name such as `uploads/0f3c…`. It is written once, whole or not at all, and never changed, so a copy is good
for as long as it is there.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import BinaryIO, Protocol

from django.conf import settings

from evalsite.storage.errors import StorageUnreachable
from evalsite.storage.local_cache import OnPiece

log = logging.getLogger("evalsite.storage.files")


class FileStorage(Protocol):
    """A place for files. What needs the network raises StorageUnreachable; a missing file, FileNotFoundError."""

    def send(self, made: Path, name: str, on_piece: OnPiece) -> None: ...
    def place(self, made: Path, name: str) -> None: ...
    def local(self, name: str, on_piece: OnPiece) -> Path: ...
    def stream(self, name: str) -> tuple[BinaryIO, int]: ...
    def exists(self, name: str) -> bool: ...
    def delete(self, name: str) -> None: ...
    def check(self) -> None: ...
    def description(self) -> str: ...


def _ignore() -> None:
    """The caller does not follow the transfer."""


def put(made: Path, name: str, on_piece: OnPiece = _ignore) -> None:
    """Keep a file that was made below DATA_DIR; it is moved away from where it was made."""
    send(made, name, on_piece)
    place(made, name)


def send(made: Path, name: str, on_piece: OnPiece = _ignore) -> None:
    """The part of `put` that may take long, for callers whose `place` belongs to a transaction."""
    storage().send(made, name, on_piece)


def place(made: Path, name: str) -> None:
    """The rest of `put`: the file is moved, which takes no time."""
    storage().place(made, name)


def local(name: str, on_piece: OnPiece = _ignore) -> Path:
    """Where the file can be read on this machine; from a bucket it is brought here first, once."""
    return storage().local(name, on_piece)


def stream(name: str) -> tuple[BinaryIO, int]:
    """The file to be read once from its beginning, and its size in bytes; nothing is copied for that."""
    return storage().stream(name)


def check() -> None:
    """Raises StorageUnreachable if files cannot be kept now."""
    storage().check()


def description() -> str:
    """Where that is, for people; no secrets."""
    return storage().description()


def exists(name: str) -> bool:
    """Is the file kept?"""
    return storage().exists(name)


def delete(*names: str) -> None:
    """Delete files, whether they exist or not. One that cannot be deleted now stays, which only costs space."""
    for name in names:
        try:
            storage().delete(name)
        except StorageUnreachable as error:
            log.warning("%s could not be deleted: %s", name, error)


def storage() -> FileStorage:
    """The place that the settings name."""
    if settings.CONFIG.files == "s3":
        from evalsite.storage.bucket import Bucket  # here: only a bucket needs boto3

        return Bucket(Path(settings.DATA_DIR))
    return Folder(Path(settings.DATA_DIR))


class Folder:
    """Files lie in DATA_DIR under their names; machines that work together share it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def send(self, made: Path, name: str, on_piece: OnPiece) -> None:
        """There is nowhere to send it."""

    def place(self, made: Path, name: str) -> None:
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True, mode=settings.DATA_FOLDER_MODE)
        made.replace(place)

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
        """DATA_DIR was looked at before."""

    def description(self) -> str:
        return str(self.root)
