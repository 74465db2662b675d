"""Uploaded files: limits, stored and displayed names, and the sample files."""

from __future__ import annotations

import hashlib
import re
import uuid
from dataclasses import replace
from pathlib import Path
from typing import IO, TypeAlias

from django.conf import settings
from django.core.files.base import File
from django.utils.translation import gettext as _

from datasets.core.limits import Limits
from evalsite.storage import files
from evalsite.templatetags.show import filesize

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


def limit_bytes() -> int:
    """The maximum size of an upload in bytes."""
    return limits().file_bytes


def limits() -> Limits:
    """Limits for reading a file, from the settings."""
    config = settings.CONFIG
    return Limits(
        file_bytes=config.upload_max_mb * 1024 * 1024,
        unpacked_bytes=config.unpacked_max_mb * 1024 * 1024,
        row_bytes=config.row_max_kb * 1024,
        row_values=config.row_values_max,
        rows=config.rows_max,
    )


def limits_of_kept() -> Limits:
    """Limits for stored files: a gzipped upload is larger once it has been repaired."""
    normal = limits()
    return replace(normal, file_bytes=max(normal.file_bytes, normal.unpacked_bytes))


def new_name() -> str:
    """A new unique storage name."""
    return f"{FOLDER}/{uuid.uuid4().hex}"


def too_large_sentence() -> str:
    """The message for a file beyond the limit."""
    return _(
        "Not saved: larger than %(limit)s, the limit for one file and for all files of an upload together. Compress "
        "with gzip, or upload fewer files at a time; an administrator can raise UPLOAD_MAX_MB."
    ) % {"limit": filesize(limit_bytes())}


def is_intact(stored_as: str, sha256: str) -> bool:
    """Whether the stored bytes are unchanged. Raises FileNotFoundError if the file is missing."""
    digest = hashlib.sha256()
    file, _size = files.stream(stored_as)
    with file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest() == sha256


def shown_name(name: str) -> str:
    """A file's name without folders and misleading characters, at most 255 characters."""
    last = re.split(r"[/\\]", _UNPRINTABLE.sub("", name))[-1].strip().strip(".")
    stem, dot, ending = last.rpartition(".")
    if len(last) > 255 and dot and len(ending) <= 10:
        return f"{stem[: 254 - len(ending)]}.{ending}"
    return last[:255] or "upload"


def name_from(file_name: str) -> str:
    """The data set name suggested by a file name: without .jsonl, .csv, .gz and other file extensions."""
    stem = _ENDING.sub("", shown_name(file_name))
    return stem.strip()[:200] or "upload"


def sample_files() -> dict[str, Path]:
    """{format: its sample file}."""
    return {path.name.split(".")[0]: path for path in sorted(SAMPLES.iterdir())}
