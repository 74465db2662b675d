"""Reads a results file as a stream of records, holding only a block of lines in memory.

Lines of a human evaluation's rating export, with one value per criterion, become one record per criterion.
"""

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
from judging.core.people.criteria import BOTH_BAD, STEPS
from judging.core.results_file.fields import TableCell, cell, plain

FIELDS = (
    *("line", "id", "model", "response", "other_model", "other_response", "metric", "value", "state"),
    *("reason", "judge", "rater", "reasoning", "shown_first", "drawn_with", "repeat", "at", "seconds"),
    *("prompt_tokens", "completion_tokens", "cost", "min_score", "max_score", "role", "compares"),
)
"""The fields of a line; all others are ignored."""

LINE_BYTES = 16 * 2**20
_DELIMITERS = (",", "\t", ";")

COMPARISONS = (*STEPS, BOTH_BAD)
# The fields of a rating, and what they are called in results.
_RATING_NAMES = {
    "row": "line",
    "candidate": "model",
    "answer": "response",
    "other": "other_model",
    "other_answer": "other_response",
    "rater": "rater",
    "at": "at",
    "shown_first": "shown_first",
    "seconds": "seconds",
    "drawn_with": "drawn_with",
    "comment": "reasoning",
}
_RATING_FIELDS = {"row", "candidate", "rater"}  # by which a table of ratings is recognised
VALUE, ADJUDICATED = "value: ", "adjudicated: "
"""Prefixes of a criterion's columns in a table of ratings."""

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RefusedLine:
    """A skipped line: its number, a code, and the parameters of the code's message."""

    line: int
    code: str
    params: dict[str, str] = field(default_factory=dict)


NumberedRecord = tuple[int, Record | RefusedLine]


class NotResults(Exception):
    """The file is not a results file: a code and the parameters of its message."""

    def __init__(self, code: str, **params: str) -> None:
        super().__init__(code)
        self.code, self.params = code, params


def records(path: Path) -> Iterator[NumberedRecord]:
    """Each non-blank line, with the number of its (first) physical line. Raises NotResults."""
    with Upload(path, Limits(row_bytes=LINE_BYTES)) as upload:
        try:
            for line, record in _records(upload):
                if isinstance(record, dict) and _is_rating(record):
                    yield from ((line, verdict) for verdict in _verdicts(record))
                else:
                    yield line, record
        except Unreadable as error:
            raise NotResults("unreadable", finding=error.found.code) from None


def _records(upload: Upload) -> Iterator[NumberedRecord]:
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


def _json_records(parts: Iterator[Block]) -> Iterator[NumberedRecord]:
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
        try:
            found = json.loads(line.decode())  # accepts NaN and lone surrogates, which are reported per field
        except UnicodeDecodeError:
            return "not_utf8"
        except (ValueError, RecursionError):
            return "not_json"
    return found if isinstance(found, dict) else "not_object"


def _table_records(parts: Iterator[Block]) -> Iterator[NumberedRecord]:
    lines = (line.decode("utf-8", "replace") + "\n" for part in parts for line in part.lines)
    before: list[str] = []
    while not (head := next(lines)).strip():
        before.append(head)
    delimiter = max(_DELIMITERS, key=lambda one: len(_known(head, one)))
    names = _known(head, delimiter)
    if not ("model" in names and names & {"line", "id"}) and not names >= _RATING_FIELDS:
        raise NotResults("no_columns")
    csv.field_size_limit(LINE_BYTES)
    reader = csv.reader(chain(before, (head,), lines), delimiter=delimiter, strict=True)
    yield from _rows(reader)


def _known(head: str, delimiter: str) -> set[str]:
    names = {name.strip() for name in next(csv.reader([head], delimiter=delimiter), [])}
    return names & (_RATING_FIELDS | set(FIELDS))


def _rows(reader: Any) -> Iterator[NumberedRecord]:
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


def _is_rating(record: Record) -> bool:
    """Whether the record names its row and candidate as ratings do."""
    return "row" in record and "candidate" in record and "model" not in record


def _verdicts(record: Record) -> Iterator[Record]:
    """The verdicts of a rating; none if it does not count: outdated, on a gold item, or a repeat."""
    if plain(record.get("current")) is False or plain(record.get("gold")) or plain(record.get("repeat_of")):
        return
    about = {name: record[known] for known, name in _RATING_NAMES.items() if known in record}
    for metric, value in _values(record, "values", VALUE).items():
        yield about | _criterion(metric, value)
    decided = {"rater": "adjudicator", "role": "adjudicator", "reasoning": None, "shown_first": None}
    for metric, value in _values(record, "adjudicated", ADJUDICATED).items():
        yield about | decided | _criterion(metric, value) | {"at": None, "seconds": None}


def _criterion(metric: str, value: Any) -> Record:
    compares = isinstance(value, str) and value in COMPARISONS
    return {"metric": metric, "value": value} | ({} if compares else {"compares": False})


def _values(record: Record, field: str, prefix: str) -> dict[str, Any]:
    given = record.get(field)
    if isinstance(given, dict):
        return {name: value for name, value in given.items() if value not in (None, "")}
    columns = {name: value for name, value in record.items() if name.startswith(prefix)}
    return {
        name.removeprefix(prefix): value for name, value in columns.items() if isinstance(value, TableCell)
    }
