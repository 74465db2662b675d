"""One CSV record: its text and its fields. A quote is special only at the start of a field."""

import csv
import io
from collections.abc import Iterable, Iterator

NEVER = -2
"""The state of a quote from an earlier line that ends in the middle of a field: it was never closed."""


def header_of(text: str, delimiter: str = ",") -> list[str]:
    """The column names in a header line."""
    return split_fields(text.rstrip("\r\n"), delimiter)


def split_fields(text: str, delimiter: str = ",") -> list[str]:
    """Split one record without its line end."""
    fields = whole_fields(text, delimiter)
    return list(fields_in(text, delimiter)) if fields is None else fields


def whole_fields(text: str, delimiter: str) -> list[str] | None:
    """The fields of a record of plain shape: no quote is open at its end, and none closes before other text.

    None for a record of any other shape, which needs `fields_in`. A dozen times as fast.
    """
    if not delimiter or text.endswith(("\n", "\r")):
        return None
    if '"' not in text:
        return text.split(delimiter)
    try:
        return next(csv.reader((text,), delimiter=delimiter, strict=True))
    except csv.Error:
        return None


def fields_in(text: str, delimiter: str) -> Iterator[str]:
    """The fields of a record, one by one."""
    position = 0
    while True:
        field, position = _quoted(text, position) if text.startswith('"', position) else ("", position)
        end = _next(text, delimiter, position)
        if end < 0:
            yield field + text[position:]
            return
        yield field + text[position:end]
        position = end + 1


def _next(text: str, delimiter: str, position: int) -> int:
    return text.find(delimiter, position) if delimiter else -1


def _quoted(text: str, start: int) -> tuple[str, int]:
    """The text of the quoted field that starts at `start`, and the position after its closing quote."""
    end = _closing(text, start + 1)
    inner = text[start + 1 : end] if end >= 0 else text[start + 1 :]
    return inner.replace('""', '"'), end + 1 if end >= 0 else len(text)


def _closing(text: str, position: int) -> int:
    """The position of the closing quote, or -1; a doubled quote is an escaped one."""
    while True:
        at = text.find('"', position)
        if at < 0 or text[at + 1 : at + 2] != '"':
            return at
        position = at + 2


def open_quote(line: str, inside: bool, delimiter: str = ",") -> int | None:
    """Index of the quote still open at the end of `line`: -1 if opened on an earlier line, None if there is none.

    NEVER if the quote from an earlier line ends before other text, as at the start of another quoted field.
    """
    if '"' not in line:
        return -1 if inside else None
    position, opened = 0, -1
    if inside:
        end = _closing(line, 0)
        if end < 0:
            return -1
        position = end + 1
        after = line[position:].lstrip(" \t\r\n" if delimiter != "\t" else " \r\n")
        if after and not (delimiter and after.startswith(delimiter)):
            return NEVER
        inside = False
    while True:
        if inside:
            end = _closing(line, position)
            if end < 0:
                return opened
            position, inside = end + 1, False
        elif line.startswith('"', position):
            opened, position, inside = position, position + 1, True
            continue
        end = _next(line, delimiter, position)
        if end < 0:
            return None
        position = end + 1


def csv_record(fields: Iterable[str], delimiter: str = ",") -> str:
    """The text of one record, without a line end."""
    written = io.StringIO()
    csv.writer(written, delimiter=delimiter).writerow(
        fields
    )  # another lineterminator would leave fields with \r\n unquoted
    return written.getvalue().removesuffix("\r\n")
