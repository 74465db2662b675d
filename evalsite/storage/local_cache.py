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
IN_USE = 3600  # seconds since the last access in which a copy is kept even if the disk is nearly full
RESERVE = 1 << 30  # bytes that must stay free on the disk after copying
_PART = ".part"
OnPiece = Callable[[], object]
"""Called between the pieces of a long transfer, in the same thread; ends it by raising."""


class LocalCache:
    """Copies by the names of their originals. Of several that want the same one, one brings it and the others wait."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def get(self, name: str) -> Path | None:
        """The copy, with its access time updated; None if there is none."""
        try:
            os.utime(self.root / name)
        except FileNotFoundError:
            return None
        return self.root / name

    def keep(self, made: Path, name: str) -> None:
        """A file that was made here and uploaded is its own copy."""
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True, mode=settings.DATA_FOLDER_MODE)
        made.replace(place)

    def bring(self, name: str, size: int, fetch: Callable[[BinaryIO], object]) -> Path:
        """The copy, which `fetch` writes if no one has done so meanwhile. Raises OSError if it is not `size` bytes."""
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True, mode=settings.DATA_FOLDER_MODE)
        begun = place.with_name(place.name + _PART)
        with _alone(begun) as part:
            if found := self.get(name):
                return found
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
            except FileNotFoundError:  # another process was as tidy
                continue


@contextmanager
def _alone(path: Path) -> Iterator[BinaryIO]:
    """An empty file that no one else writes; a killed one holds nothing. Whoever waited may hold one that was moved."""
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
