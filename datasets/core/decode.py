"""Bytes of an upload → blocks of physical lines in UTF-8, streamed: memory does not grow with the file."""

import codecs
import hashlib
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Literal, Self

from datasets.core.file_kinds import SNIFFED_BYTES, other_kind
from datasets.core.findings import Finding, finding
from datasets.core.limits import MEBIBYTE, Limits

Encoding = Literal["utf-8", "utf-8-sig", "utf-16", "gb18030"]
Progress = Callable[[int], None]
"""Called with the number of bytes of the file that were read so far."""

CHUNK = 128 * 1024
SLICE = 16 * 1024
LARGER = 4 * MEBIBYTE
STUB = 64
TEXT_FOLDS = 500
_GZIP = b"\x1f\x8b"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Unreadable(Exception):
    """Reading had to stop before the end of the file; `found` says why."""

    def __init__(self, found: Finding) -> None:
        super().__init__(found.code)
        self.found = found


@dataclass(frozen=True, slots=True)
class Block:
    """Some whole lines: `text` is their bytes with line ends, `lines` are without the final \\n.

    Lines beyond the limit are cut to a stub and their numbers are in `oversized`.
    """

    first: int
    lines: list[bytes]
    text: bytes
    oversized: frozenset[int] = frozenset()


class Upload:
    """One uploaded file, gzipped or not, that can be read from the start any number of times."""

    def __init__(self, source: Path | str | BinaryIO, limits: Limits) -> None:
        self._path = Path(source) if isinstance(source, Path | str) else None
        self._opened: BinaryIO | None = None if isinstance(source, Path | str) else _seekable(source)
        self._spooled = self._opened is not None and self._opened is not source
        self.limits = limits
        self.bytes = self._file.seek(0, 2)
        self._file.seek(0)
        self.gzipped = self._file.read(2) == _GZIP

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def _file(self) -> BinaryIO:
        """The open file; one that was given by its path is opened again where it was closed."""
        if self._opened is None:
            assert self._path is not None  # only those are closed so that they can be opened again
            self._opened = self._path.open("rb")
        return self._opened

    def close(self) -> None:
        """Closes what was opened here; reading again opens a path anew."""
        if self._opened and (self._path or self._spooled):
            self._opened.close()
        if self._path:
            self._opened = None

    def sha256(self) -> str:
        """Of the original bytes."""
        self._file.seek(0)
        return hashlib.file_digest(self._file, "sha256").hexdigest()  # type: ignore[arg-type]

    def chunks(self, progress: Progress | None = None) -> Iterator[bytes]:
        """The decompressed bytes; raises Unreadable at a cut gzip or beyond the limit, after what could be read."""
        left, beyond = self._byte_limit()
        self._file.seek(0)
        given = iter(partial(self._file.read, CHUNK), b"")
        for chunk in _unzipped(given) if self.gzipped else given:
            if len(chunk) > left:
                yield chunk[:left]
                raise Unreadable(beyond)
            left -= len(chunk)
            yield chunk
            if progress:
                progress(self._file.tell())

    def _byte_limit(self) -> tuple[int, Finding]:
        """How many bytes are read, and what is said of one more.

        A small archive that unfolds far beyond what text does is a bomb: it is given up early.
        """
        limits = self.limits
        if not self.gzipped:
            return limits.file_bytes, finding("file.too_large", limit=limits.file_bytes)
        folded = max(256 * MEBIBYTE, TEXT_FOLDS * self.bytes)
        if folded < limits.unpacked_bytes:
            return folded, finding("file.too_large", limit=folded, unpacked="bomb")
        return limits.unpacked_bytes, finding("file.too_large", limit=limits.unpacked_bytes, unpacked="limit")

    def head(self) -> bytes:
        """The first decompressed kilobytes."""
        start = b""
        try:
            for chunk in self.chunks():
                start += chunk
                if len(start) >= SNIFFED_BYTES:
                    break
        except Unreadable:
            pass  # what is unreadable is reported by the reading proper
        return start[:SNIFFED_BYTES]

    def other_kind(self) -> str | None:
        """What this file is if it is no text: see file_kinds.py."""
        head = self.head()
        self._file.seek(max(0, self.bytes - 8 * SNIFFED_BYTES))
        return other_kind(head, b"" if self.gzipped else self._file.read(8 * SNIFFED_BYTES))


def _unzipped(packed: Iterator[bytes]) -> Iterator[bytes]:
    """Members one after the other, each step bounded, so that a bomb cannot unfold in memory."""
    member = zlib.decompressobj(wbits=31)
    ended = False
    for compressed in packed:
        while compressed:
            if ended:
                if not compressed.strip(b"\0"):
                    break  # padding after the last member is usual
                member, ended = zlib.decompressobj(wbits=31), False
            try:
                chunk = member.decompress(compressed, CHUNK)
            except zlib.error:
                raise Unreadable(finding("file.encoding", reason="gzip_damaged")) from None
            if chunk:
                yield chunk
            ended = member.eof
            compressed = member.unused_data if ended else member.unconsumed_tail
    while not ended and (chunk := member.decompress(b"", CHUNK)):
        yield chunk
        ended = member.eof
    if not ended:
        raise Unreadable(finding("file.encoding", reason="gzip_cut"))


def _seekable(source: BinaryIO) -> BinaryIO:
    if source.seekable():
        return source
    spooled = tempfile.TemporaryFile()  # noqa: SIM115 - closed with its Upload
    while chunk := source.read(CHUNK):
        spooled.write(chunk)
    return spooled


def marked_encoding(head: bytes) -> Encoding:
    """What the first bytes say of the encoding: its mark, and UTF-8 where there is none."""
    if head.startswith(_UTF16):
        return "utf-16"
    return "utf-8-sig" if head.startswith(codecs.BOM_UTF8) else "utf-8"


def encoding_of(upload: Upload) -> Encoding:
    """The upload's encoding; some lines of it may not decode."""
    marked = marked_encoding(upload.head())
    if marked == "utf-8" and not _decodes(upload, "utf-8") and _decodes(upload, "gb18030"):
        return "gb18030"
    return marked


def _decodes(upload: Upload, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    try:
        for chunk in upload.chunks():
            # Small pieces: one rare character would make the text of a whole chunk four times as large.
            for start in range(0, len(chunk), SLICE):
                piece = chunk[start : start + SLICE]
                if decoder.getstate()[0] or not piece.isascii():
                    decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    except Unreadable:
        return True  # the part that was read is fine; the rest is another finding
    return True


def utf8_chunks(
    upload: Upload, encoding: Encoding | None, progress: Progress | None = None
) -> Iterator[bytes]:
    """The upload in UTF-8 without byte order mark. Bytes that are no UTF-8 in a UTF-8 file pass unchanged.

    An encoding that is not known is UTF-8. Of another one half characters and a cut last character become bytes that
    are no UTF-8: their lines are reported.
    """
    if encoding not in ("utf-16", "gb18030"):
        first = True
        for chunk in upload.chunks(progress):
            yield chunk.removeprefix(codecs.BOM_UTF8) if first else chunk
            first = False
        return
    decoder = codecs.getincrementaldecoder(encoding)("surrogatepass" if encoding == "utf-16" else "strict")
    try:
        for chunk in upload.chunks(progress):
            yield decoder.decode(chunk).encode("utf-8", "surrogatepass")
        yield decoder.decode(b"", final=True).encode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        yield b"\xff"


def blocks(upload: Upload, encoding: Encoding | None, progress: Progress | None = None) -> Iterator[Block]:
    """Whole lines in UTF-8, some hundred kilobytes at a time; only \\n ends a line."""
    _keep_freed_memory()
    most = upload.limits.row_bytes
    stopped: Unreadable | None = None
    first, begun, is_cut = 1, b"", False  # a line that has begun; one that grows too long is cut to a stub
    try:
        for chunk in utf8_chunks(upload, encoding, progress):
            end = chunk.rfind(b"\n") + 1
            if end:
                ended = chunk[chunk.index(b"\n") : end] if is_cut else chunk[:end]
                block = _block(first, begun + ended, most, is_cut)
                yield block
                first, begun, is_cut = first + len(block.lines), b"", False
            if not is_cut:
                begun += chunk[end:]
                is_cut = len(begun) > most
            if is_cut:
                begun = begun[:STUB]
    except Unreadable as trouble:
        stopped = trouble
    if begun:
        yield _block(first, begun, most, is_cut)
    if stopped:
        raise stopped


def _keep_freed_memory() -> None:
    """Frees one piece larger than a block's arrays: glibc then no longer returns each of them to the system.

    It would ask for them anew at every block, which costs a quarter of the whole time. (mallopt(3), M_MMAP_THRESHOLD.)
    """
    bytearray(LARGER)


def _block(first: int, text: bytes, most: int, is_cut: bool) -> Block:
    # Three times as fast as splitting, which looks at every single byte.
    lines = [line[:-1] for line in BytesIO(text if text.endswith(b"\n") else text + b"\n")]
    oversized = {first} if is_cut else set()
    if len(text) > most:
        long = [index for index, line in enumerate(lines) if len(line) > most]
        oversized |= {first + index for index in long}
        for index in long:
            lines[index] = lines[index][:STUB]
    return Block(first, lines, text, frozenset(oversized))
