"""This machine's copies of files in a bucket: a folder from which anything may be deleted at any time."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

KEPT_FOR = 7 * 86400  # seconds since the last access
IN_USE = 3600  # seconds since the last access during which a copy is kept even on a nearly full disk
RESERVE = 1 << 30  # bytes to leave free on the disk after copying
_PART = ".part"
OnPiece = Callable[[], object]
"""Called between the pieces of a long transfer, in the same thread; raises to abort it."""


class LocalCache:
    """Cached copies by file name. If several processes need a file, one fetches it while the others wait."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def get(self, name: str) -> Path | None:
        """The copy, with its access time updated; None if there is none."""
        try:
            os.utime(self.root / name)
        except FileNotFoundError:
            return None
        return self.root / name

    def add(self, source: Path, name: str) -> None:
        """Move a file made here into the cache after its upload."""
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True, mode=settings.DATA_FOLDER_MODE)
        source.replace(place)

    def get_or_fetch(self, name: str, size: int, fetch: Callable[[BinaryIO], object]) -> Path:
        """The copy, fetched with `fetch` unless present. Raises OSError if it does not have `size` bytes."""
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True, mode=settings.DATA_FOLDER_MODE)
        begun = place.with_name(place.name + _PART)
        with _alone(begun) as part:
            if cached := self.get(name):
                return cached
            self.make_room(size)
            try:
                fetch(part)
                part.flush()
                if (met := part.tell()) != size:
                    raise OSError(f"{name} came with {met} bytes in place of {size}")
                begun.rename(place)
            finally:
                begun.unlink(missing_ok=True)
        return place

    def drop(self, name: str) -> None:
        (self.root / name).unlink(missing_ok=True)

    def make_room(self, size: int) -> None:
        """Delete copies that have not been used for long, or, if the disk is nearly full, all not used recently."""
        now = time.time()
        for used, path in sorted(self._all()):
            short = shutil.disk_usage(self.root).free < size + RESERVE
            if now - used > (IN_USE if short else KEPT_FOR):
                path.unlink(missing_ok=True)

    def _all(self) -> Iterator[tuple[float, Path]]:
        for path in self.root.rglob("*"):
            try:
                if path.is_file():
                    yield path.stat().st_mtime, path
            except FileNotFoundError:  # deleted by another process
                continue


@contextmanager
def _alone(path: Path) -> Iterator[BinaryIO]:
    """An empty file opened exclusively; the lock ends with the process. Retries if the file was moved meanwhile."""
    while True:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, settings.DATA_FILE_MODE), "r+b")
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not _is_at(file, path):
                continue
            file.truncate()
            yield file
            return


def _is_at(file: BinaryIO, path: Path) -> bool:
    try:
        return path.stat().st_ino == os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return False
