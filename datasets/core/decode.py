"""Decodes an upload into blocks of physical UTF-8 lines, streamed in constant memory."""

import codecs
import hashlib
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Literal, Self

from datasets.core.file_kinds import SNIFFED_BYTES, UTF16_MARKS, is_unmarked_utf16, other_kind
from datasets.core.findings import Finding, finding
from datasets.core.limits import MEBIBYTE, Limits
from datasets.core.texts import Text, gettext_noop

Encoding = Literal["utf-8", "utf-8-sig", "utf-16", "gb18030"]
"""What is detected. Imports of other tools' files also read `FALLBACK`, and any codec that a user names."""
FALLBACK = "cp1252"
ENCODING_NAMES: dict[str, Text] = {
    "utf-8": gettext_noop("UTF-8"),
    "utf-8-sig": gettext_noop("UTF-8 with byte order mark"),
    "utf-16": gettext_noop("UTF-16, converted"),
    "gb18030": gettext_noop("GB18030 (GBK), converted"),
}
Progress = Callable[[int], None]
"""Called with the number of bytes of the file read so far."""

CHUNK = 128 * 1024
SLICE = 16 * 1024
LARGER = 4 * MEBIBYTE
STUB = 64
TEXT_FOLDS = 500
_GZIP = b"\x1f\x8b"
_QUOTED = re.compile(rb'"[^"]*"')


class Unreadable(Exception):
    """Reading had to stop before the end of the file; `finding` says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.code)
        self.finding = finding


@dataclass(frozen=True, slots=True)
class Block:
    """Some whole lines: `text` is their bytes with line ends, `lines` are without the final \\n.

    `first` is the number of the first line. Lines over the limit are truncated and their numbers are in `oversized`.
    """

    first: int
    lines: list[bytes]
    text: bytes
    oversized: frozenset[int] = frozenset()


class Upload:
    """An uploaded file, gzipped or not, that can be read repeatedly from the start; an open file must be seekable.

    `encoding` is the codec that a user named, '' to detect it.
    """

    def __init__(self, source: Path | str | BinaryIO, limits: Limits, encoding: str = "") -> None:
        self._path = Path(source) if isinstance(source, Path | str) else None
        self._opened = None if isinstance(source, Path | str) else source
        self.limits, self.encoding = limits, encoding
        self._head: bytes | None = None
        self.bytes = self._file.seek(0, 2)
        self._file.seek(0)
        self.gzipped = self._file.read(2) == _GZIP

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def _file(self) -> BinaryIO:
        """The open file; one given by its path is reopened after `close`."""
        if self._opened is None:
            assert self._path is not None  # only files given by path are closed and reopened
            self._opened = self._path.open("rb")
        return self._opened

    def close(self) -> None:
        """Close a file given by its path; it is reopened on the next read."""
        if self._opened and self._path:
            self._opened.close()
            self._opened = None

    def sha256(self) -> str:
        """Hash of the original bytes."""
        self._file.seek(0)
        return hashlib.file_digest(self._file, "sha256").hexdigest()  # type: ignore[arg-type]

    def chunks(self, progress: Progress | None = None) -> Iterator[bytes]:
        """Yield decompressed bytes. Raises Unreadable for a truncated gzip or at the limit, after the readable part."""
        left, beyond = self._byte_limit()
        self._file.seek(0)
        raw = iter(partial(self._file.read, CHUNK), b"")
        for chunk in _unzipped(raw) if self.gzipped else raw:
            if len(chunk) > left:
                yield chunk[:left]
                raise Unreadable(beyond)
            left -= len(chunk)
            yield chunk
            if progress:
                progress(self._file.tell())

    def _byte_limit(self) -> tuple[int, Finding]:
        """The maximum number of bytes to read, and the finding if there are more.

        A small archive whose unpacked size exceeds any plausible text compression ratio is a zip bomb and is rejected
        early.
        """
        limits = self.limits
        if not self.gzipped:
            return limits.file_bytes, finding("file.too_large", limit=limits.file_bytes)
        folded = max(limits.small_gzip_bytes, TEXT_FOLDS * self.bytes)
        if folded < limits.unpacked_bytes:
            return folded, finding("file.too_large", limit=folded, unpacked="bomb")
        return limits.unpacked_bytes, finding("file.too_large", limit=limits.unpacked_bytes, unpacked="limit")

    def head(self) -> bytes:
        """The first decompressed kilobytes."""
        if self._head is None:
            self._head = self._read_head()
        return self._head

    def _read_head(self) -> bytes:
        start = b""
        try:
            for chunk in self.chunks():
                start += chunk
                if len(start) >= SNIFFED_BYTES:
                    break
        except Unreadable:
            pass  # reported when the file is read
        return start[:SNIFFED_BYTES]

    def other_kind(self) -> str | None:
        """The kind of file if it is not text (see file_kinds.py)."""
        head = self.head()
        self._file.seek(max(0, self.bytes - 8 * SNIFFED_BYTES))
        return other_kind(head, b"" if self.gzipped else self._file.read(8 * SNIFFED_BYTES))


def _unzipped(packed: Iterator[bytes]) -> Iterator[bytes]:
    """Decompress gzip members in sequence, each step bounded so that a zip bomb cannot fill memory."""
    member = zlib.decompressobj(wbits=31)
    ended = False
    for compressed in packed:
        while compressed:
            if ended:
                if not compressed.strip(b"\0"):
                    break  # padding after the last member is common
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


def marked_encoding(head: bytes) -> Encoding:
    """The encoding indicated by the byte order mark, or by the NULs of UTF-16; else UTF-8."""
    if head.startswith(UTF16_MARKS) or is_unmarked_utf16(head):
        return "utf-16"
    return "utf-8-sig" if head.startswith(codecs.BOM_UTF8) else "utf-8"


def encoding_of(upload: Upload) -> Encoding:
    """The upload's encoding; some of its lines may still not decode."""
    marked = marked_encoding(upload.head())
    if marked == "utf-8" and not decodes(upload, "utf-8") and decodes(upload, "gb18030"):
        return "gb18030"
    return marked


def text_encoding(upload: Upload) -> str:
    """The encoding of another tool's file: the named one, or the detected one, or the fallback.

    The fallback can decode anything, so it is not used for a file that is UTF-8 but for a few bytes.
    """
    encoding = upload.encoding or encoding_of(upload)
    if upload.encoding or encoding != "utf-8" or decodes(upload, "utf-8"):
        return encoding
    return encoding if _seems_utf8(_first_beyond_ascii(upload)) else FALLBACK


def first_encoding(upload: Upload) -> str:
    """The same, judged by the beginning only."""
    marked = upload.encoding or marked_encoding(upload.head())
    if marked != "utf-8":
        return marked
    start = upload.head()
    if _seems_utf8(start):
        return marked
    return "gb18030" if _text_in(start, "gb18030") is not None else FALLBACK


def is_guess(encoding: str) -> bool:
    """Whether nothing in the bytes proves this encoding."""
    return encoding in ("gb18030", FALLBACK)


def _beginning(upload: Upload) -> bytes:
    try:
        return next(upload.chunks(), b"")
    except Unreadable:
        return b""


def _first_beyond_ascii(upload: Upload) -> bytes:
    try:
        return next((chunk for chunk in upload.chunks() if not chunk.isascii()), b"")
    except Unreadable:
        return b""


def _seems_utf8(some: bytes) -> bool:
    """Whether more characters beyond ASCII are valid UTF-8 than not."""
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(some)
    broken = text.count("\ufffd")
    return broken == 0 or sum(not sign.isascii() for sign in text) > 2 * broken


def _text_in(start: bytes, encoding: str) -> str | None:
    """The beginning of a file in this encoding; None if it does not decode."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(start)
    except UnicodeDecodeError:
        return None


def decodes(upload: Upload, encoding: str) -> bool:
    """Whether all bytes that can be read are text in this encoding."""
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    try:
        for chunk in upload.chunks():
            # Decode small slices: a single rare character would make a whole chunk's text take four times the memory.
            for start in range(0, len(chunk), SLICE):
                piece = chunk[start : start + SLICE]
                if decoder.getstate()[0] or not piece.isascii():
                    decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    except Unreadable:
        return True  # what was read is fine; the rest is reported separately
    return True


def utf8_chunks(upload: Upload, encoding: str | None, progress: Progress | None = None) -> Iterator[bytes]:
    """Yield the upload as UTF-8 without byte order marks and with \\n where lines end with \\r.

    Invalid bytes of a UTF-8 file pass unchanged; an unknown encoding is treated as UTF-8. In other encodings, invalid
    bytes, lone surrogates and a truncated last character become bytes that are not UTF-8, so that their lines are
    reported.
    """
    chunks = upload.chunks(progress)
    if encoding not in (None, "utf-8", "utf-8-sig"):
        chunks = _decoded(chunks, _codec(upload, encoding))
    return filter(None, _with_line_feeds(_unmarked(chunks)))


def _codec(upload: Upload, encoding: str) -> str:
    """The name of the decoder; without a mark, UTF-16 is decoded by the position of its NULs."""
    head = upload.head()
    if encoding != "utf-16" or head.startswith(UTF16_MARKS):
        return encoding
    return "utf-16-le" if head[1::2].count(0) >= head[::2].count(0) else "utf-16-be"


def _decoded(chunks: Iterator[bytes], codec: str) -> Iterator[bytes]:
    errors = "surrogatepass" if codec.startswith("utf-16") else "surrogateescape"
    decoder = codecs.getincrementaldecoder(codec)(errors)
    try:
        for chunk in chunks:
            yield decoder.decode(chunk).encode("utf-8", errors)
        yield decoder.decode(b"", final=True).encode("utf-8", errors)
    except UnicodeError:
        yield b"\xff"


def unmarked(start: bytes) -> bytes:
    """The start of a text without byte order marks; some programs write two."""
    while start.startswith(codecs.BOM_UTF8):
        start = start.removeprefix(codecs.BOM_UTF8)
    return start


def _unmarked(chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield unmarked(next(chunks, b""))
    yield from chunks


def _with_line_feeds(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Replace \\r by \\n in a file whose lines end with it."""
    first = next(chunks, b"")
    if not _ends_lines_with_cr(first):
        yield first
        yield from chunks
        return
    held = b""
    for chunk in chain([first], chunks):
        text = held + chunk
        held = b"\r" if text.endswith(b"\r") else b""  # a \n may follow
        yield text.removesuffix(held).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    yield held.replace(b"\r", b"\n")


def _ends_lines_with_cr(start: bytes) -> bool:
    """Whether the lines at the start of a file end with \\r alone; a quoted field may hold any line end."""
    if start.count(b"\r") == start.count(b"\r\n"):
        return False
    outside = _QUOTED.sub(b"", start)
    return b"\r" in outside.removesuffix(b"\r") and b"\n" not in outside


def ends_lines_with_cr(upload: Upload) -> bool:
    """Whether `utf8_chunks` replaces the line ends, so that lines cannot be counted in the bytes of the file."""
    return _ends_lines_with_cr(_beginning(upload))


def blocks(upload: Upload, encoding: str | None, progress: Progress | None = None) -> Iterator[Block]:
    """Yield whole lines as UTF-8, some hundred kilobytes at a time; only \\n ends a line."""
    _keep_freed_memory()
    most = upload.limits.row_bytes
    stopped: Unreadable | None = None
    first, begun, is_cut = 1, b"", False  # a line over the limit is cut to a stub
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
    except Unreadable as error:
        stopped = error
    if begun:
        yield _block(first, begun, most, is_cut)
    if stopped:
        raise stopped


def _keep_freed_memory() -> None:
    """Free one piece larger than a block's arrays, so that glibc stops returning those to the system.

    Requesting them again for every block would take a quarter of the total time. (mallopt(3), M_MMAP_THRESHOLD.)
    """
    bytearray(LARGER)


def _block(first: int, text: bytes, most: int, is_cut: bool) -> Block:
    # Three times as fast as split(), which checks every byte.
    lines = [line[:-1] for line in BytesIO(text if text.endswith(b"\n") else text + b"\n")]
    oversized = {first} if is_cut else set()
    if len(text) > most:
        long = [index for index, line in enumerate(lines) if len(line) > most]
        oversized |= {first + index for index in long}
        for index in long:
            lines[index] = lines[index][:STUB]
    return Block(first, lines, text, frozenset(oversized))
