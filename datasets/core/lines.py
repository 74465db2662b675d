"""Some lines of an upload as they stand in it."""

import codecs
import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from pathlib import Path

from datasets.core.decode import CHUNK, Encoding, Unreadable, Upload, blocks, utf8_chunks
from datasets.core.limits import MEBIBYTE, Limits

STRIDE = 4 * MEBIBYTE
FILES_KNOWN = 64


def lines_at(path: Path, encoding: Encoding, first: int, until: int, limits: Limits) -> str:
    """The text from line `first` up to line `until`, which is not in it; at most a row's limit of it. Raises OSError.

    The file is read up to there, without looking at what stands before; a plain one from the nearest landmark on.
    """
    upload = Upload(path, limits)
    try:
        return _text(upload, path, encoding, first, until).decode("utf-8", "replace").rstrip("\r\n")
    finally:
        upload.close()


def bytes_at(path: Path, encoding: Encoding, line: int, limits: Limits) -> bytes:
    """One line in UTF-8 as lines_at finds it; bytes that are no text among it."""
    upload = Upload(path, limits)
    try:
        return _text(upload, path, encoding, line, line + 1).rstrip(b"\r\n")
    finally:
        upload.close()


def pieces_at(
    path: Path, encoding: Encoding, places: Iterable[tuple[int, int]], length: int, limits: Limits
) -> dict[tuple[int, int], str]:
    """At each (line, column) so many characters of that line, in one pass over the file. Raises OSError."""
    wanted: dict[int, list[int]] = {}
    for line, column in places:
        wanted.setdefault(line, []).append(column)
    found: dict[tuple[int, int], str] = {}
    upload = Upload(path, limits)
    try:
        for block in blocks(utf8_chunks(upload, encoding), limits.row_bytes) if wanted else ():
            end = block.first + len(block.lines)
            for line in [one for one in wanted if one < end]:
                text = block.lines[line - block.first].decode("utf-8", "replace")
                for column in wanted.pop(line):
                    found[line, column] = text[column - 1 : column - 1 + length]
            if not wanted:
                break
    except Unreadable:
        pass  # what could be read is shown
    finally:
        upload.close()
    return found


class _Landmarks:
    """Where lines of the files that were looked into last begin, every few megabytes as far as they were read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, int, int], list[tuple[int, int]]] = OrderedDict()

    def of(self, path: Path) -> list[tuple[int, int]]:
        """[(line, place in bytes)], growing: at that place the file is within that line, or at its beginning."""
        state = path.stat()
        key = (str(path), state.st_size, state.st_mtime_ns)
        with self._lock:
            found = self._known.setdefault(key, [(1, 0)])
            self._known.move_to_end(key)
            if len(self._known) > FILES_KNOWN:
                self._known.popitem(last=False)
        return found

    def note(self, marks: list[tuple[int, int]], line: int, place: int) -> None:
        with self._lock:
            if place >= marks[-1][1] + STRIDE:
                marks.append((line, place))


_landmarks = _Landmarks()


def _text(upload: Upload, path: Path, encoding: Encoding, first: int, until: int) -> bytes:
    """The lines wanted, of an archive that is cut what could be read of them."""
    plain = not upload.gzipped and encoding in ("utf-8", "utf-8-sig")
    found = b""
    try:
        for number, chunk, ends in _from_landmark(path, first) if plain else _all(upload, encoding):
            if number + ends >= first:
                found += _between(chunk, number, first, until)
            if number + ends >= until or len(found) > upload.limits.row_bytes:
                break
    except Unreadable:
        pass  # what could be read is shown
    return found[: upload.limits.row_bytes]


def _all(upload: Upload, encoding: Encoding) -> Iterator[tuple[int, bytes, int]]:
    """(the line within which it begins, a chunk, how many lines end in it) of the whole upload."""
    number = 1
    for chunk in utf8_chunks(upload, encoding):
        ends = chunk.count(b"\n")
        yield number, chunk, ends
        number += ends


def _from_landmark(path: Path, first: int) -> Iterator[tuple[int, bytes, int]]:
    """The same of a plain file, from shortly before line `first` on; landmarks are noted on the way."""
    marks = _landmarks.of(path)
    number, place = marks[max(0, bisect_left(marks, (first, 0)) - 1)]
    with path.open("rb") as file:
        file.seek(place)
        while chunk := file.read(CHUNK):
            _landmarks.note(marks, number, place)
            ends = chunk.count(b"\n")
            yield number, chunk if place else chunk.removeprefix(codecs.BOM_UTF8), ends
            number, place = number + ends, place + len(chunk)


def _between(chunk: bytes, number: int, first: int, until: int) -> bytes:
    """Of a chunk that begins within line `number`, the part that belongs to the lines wanted."""
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
