"""Reads selected lines of an upload."""

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from datasets.core.decode import (
    CHUNK,
    Encoding,
    Unreadable,
    Upload,
    blocks,
    ends_lines_with_cr,
    unmarked,
    utf8_chunks,
)
from datasets.core.limits import MEBIBYTE, Limits

STRIDE = 4 * MEBIBYTE
FILES_KNOWN = 64
_marking = threading.Lock()


def lines_at(path: Path, encoding: Encoding, first: int, until: int, limits: Limits) -> str:
    """The text of lines `first` to `until` (exclusive), at most a row's byte limit. Raises OSError.

    The file is read from its start without parsing; a plain file from the nearest landmark.
    """
    return bytes_at(path, encoding, first, until, limits).decode("utf-8", "replace").rstrip("\r\n")


def bytes_at(path: Path, encoding: Encoding, first: int, until: int, limits: Limits) -> bytes:
    """The same lines as UTF-8, keeping invalid bytes; from a truncated archive, whatever can be read."""
    content = b""
    with Upload(path, limits) as upload, suppress(Unreadable):
        plain = not upload.gzipped and encoding in ("utf-8", "utf-8-sig") and not ends_lines_with_cr(upload)
        for number, chunk in _from_landmark(path, first) if plain else _all(upload, encoding):
            ends_in = number + chunk.count(b"\n")
            if ends_in >= first:
                content += between(chunk, number, first, until)
            if ends_in >= until or len(content) > limits.row_bytes:
                break
    return content[: limits.row_bytes]


def pieces_at(
    path: Path, encoding: Encoding, places: Iterable[tuple[int, int]], length: int, limits: Limits
) -> dict[tuple[int, int], str]:
    """`length` characters at each (line, column), in one pass over the file. Raises OSError.

    If the file cannot be read to its end, returns what could be read.
    """
    wanted: dict[int, list[int]] = {}
    for line, column in places:
        wanted.setdefault(line, []).append(column)
    pieces: dict[tuple[int, int], str] = {}
    with Upload(path, limits) as upload, suppress(Unreadable):
        for block in blocks(upload, encoding) if wanted else ():
            end = block.first + len(block.lines)
            for line in [line for line in wanted if line < end]:
                text = block.lines[line - block.first].decode("utf-8", "replace")
                for column in wanted.pop(line):
                    pieces[line, column] = text[column - 1 : column - 1 + length]
            if not wanted:
                break
    return pieces


def _all(upload: Upload, encoding: Encoding) -> Iterator[tuple[int, bytes]]:
    """Yield (line in which the chunk starts, chunk) for the whole upload."""
    number = 1
    for chunk in utf8_chunks(upload, encoding):
        yield number, chunk
        number += chunk.count(b"\n")


def _from_landmark(path: Path, first: int) -> Iterator[tuple[int, bytes]]:
    """Like `_all`, for a plain file from shortly before line `first`; records landmarks on the way."""
    state = path.stat()
    marks = _landmarks(path, state.st_size, state.st_mtime_ns)
    number, place = marks[max(0, bisect_left(marks, (first, 0)) - 1)]
    with path.open("rb") as file:
        file.seek(place)
        while chunk := file.read(CHUNK):
            with _marking:
                if place >= marks[-1][1] + STRIDE:
                    marks.append((number, place))
            yield number, chunk if place else unmarked(chunk)
            number, place = number + chunk.count(b"\n"), place + len(chunk)


@lru_cache(FILES_KNOWN)
def _landmarks(_path: Path, _size: int, _modified: int) -> list[tuple[int, int]]:
    """A growing list of (line, byte offset) landmarks of a file; each offset is within or at the start of its line."""
    return [(1, 0)]


def between(chunk: bytes, number: int, first: int, until: int) -> bytes:
    """The part of a chunk, which starts within line `number`, that belongs to the requested lines."""
    start = 0
    for _ in range(first - number):
        start = chunk.index(b"\n", start) + 1
    end = start
    for _ in range(until - max(first, number)):
        after = chunk.find(b"\n", end)
        if after < 0:
            return chunk[start:]
        end = after + 1
    return chunk[start:end]
