"""Temporary folders: one per attempt; those of killed workers are deleted."""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from datasets import uploads
from evalsite.models import Job
from evalsite.tasks import jobs

JOBS = ("read_version", "match_answers", "compare_versions")
"""The kinds of jobs whose attempts have folders, named after them."""


@contextmanager
def work_folder(kind: str, number: int) -> Iterator[Path]:
    """An empty folder for one attempt, deleted afterwards; folders of earlier attempts are deleted first."""
    for left in _place(kind).glob(f"{number}-*"):
        shutil.rmtree(left, ignore_errors=True)
    folder = _place(kind) / f"{number}-{uuid.uuid4().hex}"
    folder.mkdir(parents=True, mode=settings.DATA_FOLDER_MODE)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def folders(kind: str) -> dict[Path, int]:
    """{folder: number of what the job works on} of all existing folders."""
    return {path: int(path.name.partition("-")[0]) for path in _place(kind).glob("*-*")}


def delete_left() -> None:
    """Delete the folders of attempts that are no longer running."""
    for name in JOBS:
        if left := folders(name):
            running = set(jobs.ids(name, Job.State.WORKING))
            for path, number in left.items():
                if number not in running:
                    shutil.rmtree(path, ignore_errors=True)


def written_out(path: Path, progress: Callable[[float], None] = lambda share: None) -> tuple[int, str]:
    """Flush a finished file to disk; return its size and SHA-256."""
    digest, size = hashlib.sha256(), 0
    whole = path.stat().st_size
    with path.open("rb") as file:
        path.chmod(settings.DATA_FILE_MODE)
        os.fsync(file.fileno())
        while chunk := file.read(uploads.CHUNK):
            digest.update(chunk)
            size += len(chunk)
            progress(size / whole)
    return size, digest.hexdigest()


def _place(kind: str) -> Path:
    """Below the uploads, so that a finished file can be moved there without copying."""
    return settings.DATA_DIR / uploads.FOLDER / ".work" / kind
