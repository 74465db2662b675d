"""Files of a request, as importers read them before anything is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from django.core.files.uploadedfile import TemporaryUploadedFile, UploadedFile

from datasets import uploads
from datasets.core.imports.model import SourceFile


def source_files_of(files: Iterable[UploadedFile[bytes]]) -> list[SourceFile]:
    """The uploaded files, to be opened from their start as often as needed."""
    return [SourceFile(uploads.shown_name(file.name or ""), file.size or 0, _opener(file)) for file in files]


def _opener(file: UploadedFile[bytes]) -> Callable[[], BinaryIO]:
    """A function that opens the uploaded file from the start, whether Django holds it on disk or in memory."""

    def opened() -> BinaryIO:
        if isinstance(file, TemporaryUploadedFile):
            return Path(file.temporary_file_path()).open("rb")
        file.seek(0)
        content = BytesIO(file.read())
        file.seek(0)
        return content

    return opened
