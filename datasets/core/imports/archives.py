"""Reads files from other tools' zip archives within limits, including Zstandard compression (method 93)."""

import lzma
import struct
import zipfile
import zlib
from contextlib import closing
from typing import IO

from datasets.core.imports.model import NotUsable, SourceFile
from datasets.core.limits import MEBIBYTE, Limits

MEMBER_BYTES = 256 * MEBIBYTE
"""Limit for one unpacked file in an archive."""
DIRECTORY_BYTES = 32 * MEBIBYTE
"""Limit for an archive's central directory (some hundred thousand files), which is held in memory."""
_ZSTANDARD = 93
_LOCAL_HEADER = 30
_TAIL = 2**16 + 128  # covers the end record with the longest comment
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    NotImplementedError,  # compression method that zipfile does not support
    RuntimeError,  # encrypted file
    OSError,
    EOFError,
    ValueError,
)


def directory_bytes(stream: IO[bytes]) -> int:
    """The size of the central directory as stated by the archive; 0 if not stated."""
    stream.seek(max(0, stream.seek(0, 2) - _TAIL))
    tail = stream.read()
    stream.seek(0)
    for mark, layout, at in ((b"PK\x06\x06", "<Q", 40), (b"PK\x05\x06", "<I", 12)):
        start = tail.rfind(mark)
        field = tail[start + at : start + at + struct.calcsize(layout)]
        if start >= 0 and len(field) == struct.calcsize(layout):
            return int(struct.unpack(layout, field)[0])
    return 0


def is_archive_with(file: SourceFile, *names: str) -> bool:
    """Whether the file is a zip archive that contains a file with one of these names."""
    with closing(file.open_file()) as stream:
        if stream.read(4) != b"PK\x03\x04" or directory_bytes(stream) > DIRECTORY_BYTES:
            return False
        try:
            with zipfile.ZipFile(stream) as archive:
                return not set(names).isdisjoint(archive.namelist())
        except BROKEN:
            return False


class Archive:
    """A zip archive; files read from it count towards the limit of unpacked bytes."""

    def __init__(self, file: SourceFile, limits: Limits) -> None:
        self._file, self._room = file, limits.unpacked_bytes
        self._stream = file.open_file()
        if directory_bytes(self._stream) > DIRECTORY_BYTES:
            self._stream.close()
            raise NotUsable("too_large", file=file.name)
        try:
            self._zip = zipfile.ZipFile(self._stream)
        except BROKEN:
            self._stream.close()
            raise NotUsable("archive_broken", file=file.name) from None
        self.names = self._zip.namelist()

    def close(self) -> None:
        self._zip.close()
        self._stream.close()

    def read(self, name: str, most_bytes: int = MEMBER_BYTES) -> bytes:
        """Read one of its files, of at most so many bytes. Raises NotUsable."""
        most = min(most_bytes, self._room)
        try:
            with self._opened(self._zip.getinfo(name)) as member:
                content = member.read(most + 1)
        except (KeyError, *BROKEN):
            raise NotUsable("archive_broken", file=self._file.name) from None
        if len(content) > most:
            raise NotUsable("too_large", file=self._file.name)
        self._room -= len(content)
        return content

    def _opened(self, info: zipfile.ZipInfo) -> IO[bytes]:
        if info.compress_type != _ZSTANDARD:
            return self._zip.open(info)
        import pyarrow as pa  # imported here: takes 100 ms and is rarely needed

        self._stream.seek(info.header_offset)
        header = self._stream.read(_LOCAL_HEADER)
        self._stream.seek(sum(struct.unpack("<HH", header[26:30])), 1)
        packed = pa.BufferReader(self._stream.read(min(info.compress_size, MEMBER_BYTES)))
        return pa.CompressedInputStream(packed, "zstd")  # type: ignore[no-any-return]
