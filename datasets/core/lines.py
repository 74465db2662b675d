"""Some lines of an upload as they are in it."""

import codecs
import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from datasets.core.decode import CHUNK, Encoding, Unreadable, Upload, blocks, utf8_chunks
from datasets.core.limits import MEBIBYTE, Limits

STRIDE = 4 * MEBIBYTE
FILES_KNOWN = 64
_marking = threading.Lock()


def lines_at(path: Path, encoding: Encoding, first: int, until: int, limits: Limits) -> str:
    """The text from line `first` up to line `until`, which is not in it; at most a row's limit of it. Raises OSError.

    The file is read up to there, without looking at what is before; a plain one from the nearest landmark on.
    """
    return bytes_at(path, encoding, first, until, limits).decode("utf-8", "replace").rstrip("\r\n")


def bytes_at(path: Path, encoding: Encoding, first: int, until: int, limits: Limits) -> bytes:
    """The same lines in UTF-8 with bytes that are no text; of an archive that is cut what could be read of them."""
    found = b""
    with Upload(path, limits) as upload, suppress(Unreadable):
        plain = not upload.gzipped and encoding in ("utf-8", "utf-8-sig")
        for number, chunk in _from_landmark(path, first) if plain else _all(upload, encoding):
            ends_in = number + chunk.count(b"\n")
            if ends_in >= first:
                found += _between(chunk, number, first, until)
            if ends_in >= until or len(found) > limits.row_bytes:
                break
    return found[: limits.row_bytes]


def pieces_at(
    path: Path, encoding: Encoding, places: Iterable[tuple[int, int]], length: int, limits: Limits
) -> dict[tuple[int, int], str]:
    """At each (line, column) so many characters of that line, in one pass over the file. Raises OSError.

    Of a file that cannot be read to its end those that could be read.
    """
    wanted: dict[int, list[int]] = {}
    for line, column in places:
        wanted.setdefault(line, []).append(column)
    found: dict[tuple[int, int], str] = {}
    with Upload(path, limits) as upload, suppress(Unreadable):
        for block in blocks(upload, encoding) if wanted else ():
            end = block.first + len(block.lines)
            for line in [one for one in wanted if one < end]:
                text = block.lines[line - block.first].decode("utf-8", "replace")
                for column in wanted.pop(line):
                    found[line, column] = text[column - 1 : column - 1 + length]
            if not wanted:
                break
    return found


def _all(upload: Upload, encoding: Encoding) -> Iterator[tuple[int, bytes]]:
    """(the line within which it starts, a chunk) of the whole upload."""
    number = 1
    for chunk in utf8_chunks(upload, encoding):
        yield number, chunk
        number += chunk.count(b"\n")


def _from_landmark(path: Path, first: int) -> Iterator[tuple[int, bytes]]:
    """The same of a plain file, from shortly before line `first` on; landmarks are noted on the way."""
    state = path.stat()
    marks = _landmarks(path, state.st_size, state.st_mtime_ns)
    number, place = marks[max(0, bisect_left(marks, (first, 0)) - 1)]
    with path.open("rb") as file:
        file.seek(place)
        while chunk := file.read(CHUNK):
            with _marking:
                if place >= marks[-1][1] + STRIDE:
                    marks.append((number, place))
            yield number, chunk if place else chunk.removeprefix(codecs.BOM_UTF8)
            number, place = number + chunk.count(b"\n"), place + len(chunk)


@lru_cache(FILES_KNOWN)
def _landmarks(_path: Path, _size: int, _modified: int) -> list[tuple[int, int]]:
    """[(line, place in bytes)] of a file, growing: at that place it is within that line, or at its beginning."""
    return [(1, 0)]


def _between(chunk: bytes, number: int, first: int, until: int) -> bytes:
    """Of a chunk that starts within line `number`, the part that belongs to the lines wanted."""
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
