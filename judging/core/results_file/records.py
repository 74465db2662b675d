"""Reads a results file as a stream of records, holding only a block of lines in memory.

Lines of a human evaluation's rating export, with one value per criterion, become one record per criterion.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from datasets.core.decode import Block, Unreadable, Upload, blocks, encoding_of
from datasets.core.kinds import BOTH_BAD, CATEGORY, CHECKLIST, COMPARISON, COMPARISON_CODES, PASS_FAIL, SCORE
from datasets.core.limits import Limits
from datasets.core.own_exports import is_own_table, text_of_cell
from datasets.core.texts import Text, gettext_noop
from judging.core.results_file.fields import TableCell, plain

FIELDS = (
    *("line", "id", "model", "response", "other_model", "other_response", "metric", "value", "state"),
    *("reason", "judge", "rater", "reasoning", "shown_first", "drawn_with", "repeat", "at", "seconds"),
    *("prompt_tokens", "completion_tokens", "cost", "min_score", "max_score", "role", "compares"),
    "criterion",
)
"""The fields of a line; all others are ignored."""

LINE_BYTES = 16 * 2**20
_DELIMITERS = (",", "\t", ";")

COMPARISONS = (*COMPARISON_CODES, BOTH_BAD)
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


REFUSALS: dict[str, Text] = {
    "not_json": gettext_noop("Not valid JSON."),
    "not_utf8": gettext_noop("Not valid UTF-8."),
    "not_object": gettext_noop("Not a JSON object."),
    "not_csv": gettext_noop("A quotation mark is not closed. The rest of the file was not read."),
    "too_many_cells": gettext_noop("More cells than the header has columns."),
    "line_too_long": gettext_noop("Longer than 16 MB."),
    "no_row_named": gettext_noop("Names no row: add line or id."),
    "no_model_named": gettext_noop("Names no model: add model."),
    "no_source": gettext_noop("Says neither judge nor rater. Exactly one is required."),
    "two_sources": gettext_noop("Says both judge and rater. Exactly one is required."),
    "no_value": gettext_noop(
        "No value. Where there is none, set state to no_score, unparsed, unsettled, error or not_run."
    ),
    "unsettled_alone": gettext_noop("Only comparisons of two models can be unsettled."),
    "unknown_line": gettext_noop("The data set has no row at line %(line)s."),
    "invalid_row": gettext_noop("The row at line %(line)s is invalid and was excluded."),
    "unknown_id": gettext_noop("The data set has no row with the id %(id)s."),
    "id_not_unique": gettext_noop("Several rows have the id %(id)s. Use line instead."),
    "two_rows": gettext_noop("Line %(line)s and the id %(id)s are different rows."),
    "unknown_model": gettext_noop("The data set has no model called %(model)s."),
    "model_not_unique": gettext_noop("Several runs generated answers of a model called %(model)s."),
    "no_such_answer": gettext_noop("%(model)s has no answer %(number)s to this row."),
    "no_reference": gettext_noop("This row has no reference."),
    "same_answer": gettext_noop("Compares an answer with itself."),
    "not_a_comparison": gettext_noop(
        "%(value)s is not a comparison. Use A>>B, A>B, A=B, B>A, B>>A or both_bad."
    ),
    "compares": gettext_noop("Compares two answers, but the other lines of %(metric)s judge one."),
    "compares_not": gettext_noop("Judges one answer, but the other lines of %(metric)s compare two."),
    "other_kind_of_value": gettext_noop(
        "%(value)s does not fit: the other values of %(metric)s are of the type %(wanted)s."
    ),
    "unknown_criterion": gettext_noop("The row's rubric has no criterion with the id %(criterion)s."),
    "criterion_missing": gettext_noop(
        "The other lines of %(metric)s are about criteria of a checklist: add criterion."
    ),
    "value_not_finite": gettext_noop("The value is not a finite number."),
    "value_type": gettext_noop("The value must be a number, true, false or a text."),
    "unknown_state": gettext_noop("There is no state %(state)s."),
    "value_beside_state": gettext_noop("Has a value although its state is %(state)s."),
    "not_text": gettext_noop("%(field)s must be a text."),
    "text_too_long": gettext_noop("%(field)s has more than %(most)s characters."),
    "not_number": gettext_noop("%(field)s must be a number."),
    "number_out_of_range": gettext_noop("%(field)s is out of range."),
    "not_whole": gettext_noop("%(field)s must be a whole number from %(least)s."),
    "not_moment": gettext_noop("%(field)s must be a time in ISO 8601, or Unix seconds."),
    "scale": gettext_noop("min_score must be below max_score."),
    "contradicts": gettext_noop("Contradicts an earlier verdict on the same question: %(said)s."),
}
"""Why a line is skipped, by code."""

VALUE_KINDS: dict[str, Text] = {
    SCORE: gettext_noop("number"),
    PASS_FAIL: gettext_noop("pass or fail"),
    CATEGORY: gettext_noop("category"),
    COMPARISON: gettext_noop("comparison"),
    CHECKLIST: gettext_noop("checklist"),
    "": gettext_noop("no value"),
}
"""Types of a metric's values, as in the parameter `wanted`."""

NOT_RESULTS: dict[str, Text] = {
    "empty": gettext_noop("The file is empty."),
    "json_array": gettext_noop("The file is a JSON array. Write one object per line (JSON Lines)."),
    "other_kind": gettext_noop("The file is not text: %(kind)s. Use JSON Lines or CSV."),
    "no_columns": gettext_noop("The header must name model and line or id, as in a results file."),
    "unreadable": gettext_noop("The file could not be read to its end: %(finding)s."),
}
"""Why a file is not a results file, by code."""


@dataclass(frozen=True, slots=True)
class RefusedLine:
    """A skipped line: its number, a code of REFUSALS, and the parameters of its sentence."""

    line: int
    code: str
    params: dict[str, str] = field(default_factory=dict)


NumberedRecord = tuple[int, Record | RefusedLine]


class NotResults(Exception):
    """The file is not a results file: a code of NOT_RESULTS and the parameters of its sentence."""

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
            raise NotResults("unreadable", finding=error.finding.code) from None


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
                decoded = _json_object(line)
                yield number, RefusedLine(number, decoded) if isinstance(decoded, str) else decoded


def _json_object(line: bytes) -> Record | str:
    """A JSON object, or an error code."""
    try:
        decoded = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            decoded = json.loads(
                line.decode()
            )  # accepts NaN and lone surrogates, which are reported per field
        except UnicodeDecodeError:
            return "not_utf8"
        except (ValueError, RecursionError):
            return "not_json"
    return decoded if isinstance(decoded, dict) else "not_object"


def _table_records(parts: Iterator[Block]) -> Iterator[NumberedRecord]:
    lines = (line.decode("utf-8", "replace") + "\n" for part in parts for line in part.lines)
    before: list[str] = []
    while not (head := next(lines)).strip():
        before.append(head)
    delimiter = max(_DELIMITERS, key=lambda delimiter: len(_known(head, delimiter)))
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
    text_of: Callable[[str], str] = str
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
            text_of = text_of_cell if is_own_table(cells) else str
            names = [text_of(name.strip()) for name in cells]
        elif len(cells) > len(names):
            yield line, RefusedLine(line, "too_many_cells")
        elif any(cells):
            texts = zip(names, map(text_of, cells), strict=False)
            yield line, {name: TableCell(text) for name, text in texts if text.strip()}


def _is_rating(record: Record) -> bool:
    """Whether the record names its row and candidate as ratings do."""
    return "row" in record and "candidate" in record and "model" not in record


def _verdicts(record: Record) -> Iterator[Record]:
    """The verdicts of a rating; none if it does not count: outdated, set aside, on a gold item, or a repeat."""
    aside = any(plain(record.get(column)) for column in ("set_aside", "gold", "repeat_of"))
    if aside or plain(record.get("current")) is False:
        return
    about = {name: record[column] for column, name in _RATING_NAMES.items() if column in record}
    for metric, value in _values(record, "values", VALUE).items():
        yield about | _criterion(metric, value)
    decided = {"rater": "adjudicator", "role": "adjudicator", "reasoning": None, "shown_first": None}
    for metric, value in _values(record, "adjudicated", ADJUDICATED).items():
        yield about | decided | _criterion(metric, value) | {"at": None, "seconds": None}


def _criterion(metric: str, value: Any) -> Record:
    compares = isinstance(value, str) and value in COMPARISONS
    return {"metric": metric, "value": value} | ({} if compares else {"compares": False})


def _values(record: Record, field: str, prefix: str) -> dict[str, Any]:
    nested = record.get(field)
    if isinstance(nested, dict):
        return {name: value for name, value in nested.items() if value not in (None, "")}
    columns = {name: value for name, value in record.items() if name.startswith(prefix)}
    return {
        name.removeprefix(prefix): value for name, value in columns.items() if isinstance(value, TableCell)
    }
