"""Some lines of an upload as they stand in it."""

from pathlib import Path

from datasets.core.decode import Encoding, Unreadable, Upload, utf8_chunks
from datasets.core.limits import Limits


def lines_at(path: Path, encoding: Encoding, first: int, until: int, limits: Limits) -> str:
    """The text from line `first` up to line `until`, which is not in it; at most a row's limit of it. Raises OSError.

    The file is read up to there, without looking at what stands before.
    """
    upload = Upload(path, limits)
    try:
        return _text(upload, encoding, first, until).decode("utf-8", "replace").rstrip("\r\n")
    finally:
        upload.close()


def bytes_at(path: Path, encoding: Encoding, line: int, limits: Limits) -> bytes:
    """One line in UTF-8 as lines_at finds it; bytes that are no text among it."""
    upload = Upload(path, limits)
    try:
        return _text(upload, encoding, line, line + 1).rstrip(b"\r\n")
    finally:
        upload.close()


def _text(upload: Upload, encoding: Encoding, first: int, until: int) -> bytes:
    number, found = 1, b""  # `number` is the line at which the next chunk begins
    try:
        for chunk in utf8_chunks(upload, encoding):
            ends = chunk.count(b"\n")
            if number + ends >= first:
                found += _between(chunk, number, first, until)
            number += ends
            if number >= until or len(found) > upload.limits.row_bytes:
                break
    except Unreadable:
        pass  # what could be read is shown
    return found[: upload.limits.row_bytes]


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
