"""The bytes of uploads: kept (evalsite/storage/files.py) exactly as they came, each under a name of our own."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TypeAlias

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.files.base import File
from django.utils.translation import gettext as _

from datasets.core.limits import Limits
from evalsite.storage import files
from evalsite.storage.errors import NO_SPACE, StorageUnreachable
from evalsite.templatetags.show import filesize

log = logging.getLogger("datasets.uploads")

FOLDER = "uploads"
SAMPLES = Path(__file__).parent / "samples" / "formats"
CHUNK = 1024 * 1024
Incoming: TypeAlias = "File[bytes] | IO[bytes]"
_ENDING = re.compile(
    r"(\.(jsonl?|ndjson|csv|tsv|txt|md|xlsx?|ods|docx?|odt|pptx?|rtf|pdf|png|jpe?g|gif|webp|html?|xml|ya?ml|zip|tar|rar|7z"
    r"|parquet|arrow|sqlite3?|db))?(\.(gz|tgz|bz2|xz|zst))?$",
    re.IGNORECASE,
)
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Stored:
    """The name under which the bytes are kept, how many they are, and their SHA-256 in hexadecimal."""

    stored_as: str
    size: int
    sha256: str


def limit_bytes() -> int:
    """How many bytes an upload may have."""
    return int(settings.CONFIG.upload_max_mb) * 1024 * 1024


def limits() -> Limits:
    """How much of a file is read, from the settings."""
    config = settings.CONFIG
    return Limits(
        file_bytes=config.upload_max_mb * 1024 * 1024,
        unpacked_bytes=config.unpacked_max_mb * 1024 * 1024,
        row_bytes=config.row_max_kb * 1024,
        row_values=config.row_values_max,
        rows=config.rows_max,
    )


def limits_of_kept() -> Limits:
    """The same for files that are kept here: what was uploaded packed is larger once it was repaired."""
    given = limits()
    return replace(given, file_bytes=max(given.file_bytes, given.unpacked_bytes))


def store(file: Incoming, most: int | None = None) -> Stored:
    """Copy a stream of up to `most` bytes (default: the limit of uploads) to its own new file; whole or not at all.

    Raises ValidationError with a sentence if it cannot be kept.
    """
    folder = Path(settings.DATA_DIR) / FOLDER
    stored_as = new_name()
    part = folder / f".{Path(stored_as).name}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=settings.DATA_FOLDER_MODE)
        size, sha256 = _copy(file, part, limit_bytes() if most is None else most)
        files.put(part, stored_as)
    except StorageUnreachable:
        log.exception("An upload could not be stored.")
        raise ValidationError(
            _(
                "The file storage is not responding. Nothing was saved. Try again in a minute. If that does not help, "
                "contact an administrator."
            )
        ) from None
    except OSError as error:
        if error.errno in NO_SPACE:
            raise ValidationError(
                _(
                    "The server's disk is full. Nothing was saved. Ask an administrator to free disk space, then try "
                    "again."
                )
            ) from None
        raise
    finally:
        part.unlink(missing_ok=True)
    return Stored(stored_as, size, sha256)


def new_name() -> str:
    """A name that no stored file has."""
    return f"{FOLDER}/{uuid.uuid4().hex}"


def too_large_sentence() -> str:
    """What to say about a file beyond the limit."""
    return _(
        "Not saved: larger than %(limit)s, the limit for one file and for all files of an upload together. Compress "
        "with gzip, or upload fewer files at a time; an administrator can raise UPLOAD_MAX_MB."
    ) % {"limit": filesize(limit_bytes())}


def _copy(file: Incoming, target: Path, most: int) -> tuple[int, str]:
    size, digest = 0, hashlib.sha256()
    with open(target, "xb", opener=_private) as out:
        for chunk in _chunks(file):
            size += len(chunk)
            if size > most:
                raise ValidationError(too_large_sentence())
            digest.update(chunk)
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())  # the table must not promise bytes that a power cut could take
    return size, digest.hexdigest()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, settings.DATA_FILE_MODE)


def _chunks(file: Incoming) -> Iterator[bytes]:
    while chunk := file.read(CHUNK):
        yield chunk


def is_intact(stored_as: str, sha256: str) -> bool:
    """Are the kept bytes those that were stored? FileNotFoundError where there are none."""
    digest = hashlib.sha256()
    file, _size = files.stream(stored_as)
    with file:
        for chunk in _chunks(file):
            digest.update(chunk)
    return digest.hexdigest() == sha256


def discard(stored: Stored) -> None:
    """Remove a stored file that no version came to point at."""
    files.delete(stored.stored_as)


def shown_name(name: str) -> str:
    """A file's name without folders and without characters that could mislead a reader; at most 255 characters."""
    last = re.split(r"[/\\]", _UNPRINTABLE.sub("", name))[-1].strip().strip(".")
    stem, dot, ending = last.rpartition(".")
    if len(last) > 255 and dot and len(ending) <= 10:
        return f"{stem[: 254 - len(ending)]}.{ending}"
    return last[:255] or "upload"


def name_from(file_name: str) -> str:
    """The data set's name that a file name suggests: without .jsonl, .csv, .gz and endings of other kinds of file."""
    stem = _ENDING.sub("", shown_name(file_name))
    return stem.strip()[:200] or "upload"


def sample_files() -> dict[str, Path]:
    """{format: its sample file}."""
    return {path.name.split(".")[0]: path for path in sorted(SAMPLES.iterdir())}
