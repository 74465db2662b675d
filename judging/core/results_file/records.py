"""Reads a results file as a stream of records, holding only a block of lines in memory."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from datasets.core.decode import Block, Unreadable, Upload, blocks, encoding_of
from datasets.core.limits import Limits
from judging.core.results_file.fields import cell

FIELDS = (
    *(
        "line",
        "id",
        "model",
        "response",
        "other_model",
        "other_response",
        "metric",
        "value",
        "state",
        "reason",
    ),
    *("judge", "rater", "reasoning", "shown_first", "drawn_with", "repeat", "at", "seconds", "prompt_tokens"),
    *("completion_tokens", "cost", "min_score", "max_score", "role", "compares"),
)
"""The fields of a line; all others are ignored."""

LINE_BYTES = 16 * 2**20
_RATING_FIELDS = ("row", "candidate", "rater")  # in the export of a human evaluation
_DELIMITERS = (",", "\t", ";")

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RefusedLine:
    """A skipped line: its number, a code, and the parameters of the code's message."""

    line: int
    code: str
    params: dict[str, str] = field(default_factory=dict)


class NotResults(Exception):
    """The file is not a results file: a code and the parameters of its message."""

    def __init__(self, code: str, **params: str) -> None:
        super().__init__(code)
        self.code, self.params = code, params


def records(path: Path) -> Iterator[tuple[int, Record | RefusedLine]]:
    """Each non-blank line, with the number of its (first) physical line. Raises NotResults."""
    with Upload(path, Limits(row_bytes=LINE_BYTES)) as upload:
        try:
            yield from _records(upload)
        except Unreadable as trouble:
            raise NotResults("unreadable", finding=trouble.found.code) from None


def _records(upload: Upload) -> Iterator[tuple[int, Record | RefusedLine]]:
    kind = upload.other_kind()
    if kind is not None:
        raise NotResults("other_kind", kind=kind)
    parts = blocks(upload, encoding_of(upload))
    first = next((part for part in parts if part.text.strip()), None)
    if first is None:
        raise NotResults("empty")
    start = first.text.lstrip()[:1]
    if start == b"[":
        raise NotResults("json_array")
    yield from (_json_records if start == b"{" else _table_records)(chain((first,), parts))


def _json_records(parts: Iterator[Block]) -> Iterator[tuple[int, Record | RefusedLine]]:
    for part in parts:
        for number, line in enumerate(part.lines, part.first):
            if number in part.oversized:
                yield number, RefusedLine(number, "line_too_long")
            elif line.strip():
                found = _json_object(line)
                yield number, RefusedLine(number, found) if isinstance(found, str) else found


def _json_object(line: bytes) -> Record | str:
    """A JSON object, or an error code."""
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = _json_by_python(line)
    if isinstance(found, str):
        return found if found in ("not_utf8", "not_json") else "not_object"
    return found if isinstance(found, dict) else "not_object"


def _json_by_python(line: bytes) -> Any:
    """Parse NaN and lone surrogates, which strict parsers reject, so that they are reported per field."""
    try:
        return json.loads(line.decode())
    except UnicodeDecodeError:
        return "not_utf8"
    except (ValueError, RecursionError):
        return "not_json"


def _table_records(parts: Iterator[Block]) -> Iterator[tuple[int, Record | RefusedLine]]:
    lines = _texts(parts)
    before: list[str] = []
    while not (head := next(lines)).strip():
        before.append(head)
    delimiter = max(_DELIMITERS, key=lambda one: len(_known(head, one)))
    names = _known(head, delimiter)
    if not ("model" in names and names & {"line", "id"}) and not names >= set(_RATING_FIELDS):
        raise NotResults("no_columns")
    csv.field_size_limit(LINE_BYTES)
    reader = csv.reader(chain(before, (head,), lines), delimiter=delimiter, strict=True)
    yield from _rows(reader)


def _texts(parts: Iterator[Block]) -> Iterator[str]:
    for part in parts:
        for line in part.lines:
            yield line.decode("utf-8", "replace") + "\n"


def _known(head: str, delimiter: str) -> set[str]:
    return {name.strip() for name in next(csv.reader([head], delimiter=delimiter), [])} & {
        *FIELDS,
        *_RATING_FIELDS,
    }


def _rows(reader: Any) -> Iterator[tuple[int, Record | RefusedLine]]:
    names: list[str] = []
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield line, RefusedLine(line, "not_csv")
            return
        if not names:
            names = [name.strip() for name in cells]
        elif len(cells) > len(names):
            yield line, RefusedLine(line, "too_many_cells")
        elif any(cells):
            yield line, {name: cell(text) for name, text in zip(names, cells, strict=False) if text.strip()}
