"""Files that are being written in DATA_DIR: locked while their process lives, deleted once it is gone."""

from __future__ import annotations

import fcntl
import logging
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

log = logging.getLogger(__name__)
PLACES = ("incoming/*", "uploads/.*.part", "copies/**/*.part", "keys/.*")


def lock(file: IO[Any]) -> None:
    """Lock a file until it is closed, also by the end of the process."""
    fcntl.flock(file.fileno(), fcntl.LOCK_EX)


def delete_left(data_dir: Path) -> None:
    """Delete the files that no living process holds, of this or another machine."""
    deleted = sum(
        _delete_if_left(path) for place in PLACES for path in data_dir.glob(place) if path.is_file()
    )
    if deleted:
        log.info("Deleted %s unfinished files whose process has ended.", deleted)


def _delete_if_left(path: Path) -> bool:
    with suppress(OSError), path.open("r+b") as file:  # BlockingIOError: a process holds it
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
        return True
    return False
