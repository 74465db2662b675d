"""Where finished files are kept: in DATA_DIR, or in a bucket of which each machine has copies (FILES).

A file has a name such as `uploads/0f3c…`. It is written once, whole or not at all, and never changed, so a copy is good
for as long as it is there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Protocol

from django.conf import settings

log = logging.getLogger("evalsite.storage.files")

Heard = Callable[
    [], object
]  # called between pieces of a long transfer, in the same thread; ends it by raising


class Unreachable(OSError):
    """The bucket does not answer, or refuses. What is kept in it is not lost."""


class Keeper(Protocol):
    """A place for files. What needs the network raises Unreachable; a file that is not there, FileNotFoundError."""

    def send(self, made: Path, name: str, heard: Heard) -> None: ...
    def place(self, made: Path, name: str) -> None: ...
    def local(self, name: str, heard: Heard) -> Path: ...
    def stream(self, name: str) -> tuple[BinaryIO, int]: ...
    def exists(self, name: str) -> bool: ...
    def delete(self, name: str) -> None: ...
    def check(self) -> None: ...
    def told(self) -> str: ...


def _nobody() -> None:
    """Nobody wants to hear of it."""


def put(made: Path, name: str, heard: Heard = _nobody) -> None:
    """Keep a file that was made below DATA_DIR; it is moved away from where it was made."""
    send(made, name, heard)
    place(made, name)


def send(made: Path, name: str, heard: Heard = _nobody) -> None:
    """The part of `put` that may take long, for callers whose `place` belongs to a transaction."""
    keeper().send(made, name, heard)


def place(made: Path, name: str) -> None:
    """The rest of `put`: the file is moved, which takes no time."""
    keeper().place(made, name)


def local(name: str, heard: Heard = _nobody) -> Path:
    """Where the file can be read on this machine; from a bucket it is brought here first, once."""
    return keeper().local(name, heard)


def stream(name: str) -> tuple[BinaryIO, int]:
    """The file to be read once from its beginning, and its size in bytes; nothing is copied for that."""
    return keeper().stream(name)


def check() -> None:
    """Raises Unreachable if files cannot be kept now."""
    keeper().check()


def told() -> str:
    """Where that is, for people; no secrets."""
    return keeper().told()


def exists(name: str) -> bool:
    """Is the file kept?"""
    return keeper().exists(name)


def delete(*names: str) -> None:
    """Forget files, whether they are there or not. What cannot be deleted now stays, and costs room only."""
    for name in names:
        try:
            keeper().delete(name)
        except Unreachable as error:
            log.warning("%s could not be deleted: %s", name, error)


def keeper() -> Keeper:
    """The place that the settings name."""
    if settings.CONFIG.files == "s3":
        from evalsite.storage.bucket import Bucket

        return Bucket(Path(settings.DATA_DIR))
    return Folder(Path(settings.DATA_DIR))


class Folder:
    """Files lie in DATA_DIR under their names; machines that work together share it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def send(self, made: Path, name: str, heard: Heard) -> None:
        """There is nowhere to send it."""

    def place(self, made: Path, name: str) -> None:
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True, mode=settings.DATA_FOLDER_MODE)
        made.replace(place)

    def local(self, name: str, heard: Heard) -> Path:
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

    def told(self) -> str:
        return str(self.root)
