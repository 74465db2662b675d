"""Parses lines of ratings from a JSON Lines or CSV file into checked records or error codes."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from typing import Any
from uuid import UUID

from datasets.core.kinds import PASS_FAIL, SCORE
from datasets.core.kinds import SPANS as SPANS_KIND
from datasets.core.own_exports import is_own_table, text_of_cell
from judging.core.people.criteria import Criterion, active_seconds
from judging.core.results_file.fields import Refusal
from judging.core.results_file.records import RefusedLine
from judging.core.values import Value

VALUE, SPANS = "value: ", "spans: "
_TRUE, _FALSE = ("true", "1", "yes", "pass"), ("false", "0", "no", "fail")
_MOST = 2**31


@dataclass(frozen=True, slots=True)
class RatingLine:
    """A verdict from a file, with values by criterion name; of a checklist the marks by criterion id, of a ranking the
    places by candidate, or one text; of spans {"score", "spans"}.

    What it is about is given by `item`, or by `row`, `candidate` and, for two answers, `other`; a ranking by candidates
    needs only the row. `shown_order`: of a ranking, the candidates.
    """

    line: int
    rater: str
    values: Mapping[str, Value | Mapping[str, Any]]
    key: UUID | None = None
    item: int | None = None
    row: int | None = None
    candidate: str = ""
    answer: int = 1
    other: str = ""
    other_answer: int = 1
    shown_first: int | None = None
    shown_order: Sequence[str] = ()
    seconds: float = 0.0
    comment: str = ""
    at: datetime | None = None
    current: bool = True
    guideline_version: int | None = None


def read_lines(text: str, criteria: Sequence[Criterion]) -> Iterator[RatingLine | RefusedLine]:
    """Parse all lines of a file, in order; text that starts with `{` is JSON Lines, other text CSV with a header."""
    records = _json_records(text) if text.lstrip().startswith("{") else _csv_records(text, criteria)
    for line, record in records:
        if isinstance(record, str):
            yield RefusedLine(line, record)
            continue
        try:
            yield _rating(line, record)
        except Refusal as refused:
            yield RefusedLine(line, refused.code, refused.params)


def _json_records(text: str) -> Iterator[tuple[int, dict[str, Any] | str]]:
    for line, part in enumerate(text.split("\n"), 1):
        if not part.strip():
            continue
        try:
            record = json.loads(part)
        except (ValueError, RecursionError):
            yield line, "not_json"
            continue
        yield line, record if isinstance(record, dict) else "not_object"


def _csv_records(text: str, criteria: Sequence[Criterion]) -> Iterator[tuple[int, dict[str, Any] | str]]:
    scales = {criterion.name: criterion for criterion in criteria}
    reader = csv.reader(StringIO(text, newline=""), strict=True)
    head: list[str] | None = None
    text_of: Callable[[str], str] = str
    try:
        for cells in reader:
            if head is None:
                text_of = text_of_cell if is_own_table(cells) else str
                head = [text_of(name) for name in cells]
            elif len(cells) > len(head):
                yield reader.line_num, "too_many_cells"
            elif any(cells):
                texts = {name: text_of(cell) for name, cell in zip(head, cells, strict=False)}
                yield reader.line_num, _from_cells(texts, scales)
    except csv.Error:
        yield reader.line_num, "not_csv"


def _from_cells(cells: dict[str, str], scales: Mapping[str, Criterion]) -> dict[str, Any]:
    """Convert a table row's texts; empty cells are left out."""
    record: dict[str, Any] = {}
    values: dict[str, Any] = {}
    spans: dict[str, Any] = {}
    for head, text in cells.items():
        if not text:
            continue
        if head.startswith(VALUE):
            name = head.removeprefix(VALUE)
            values[name] = _value(scales.get(name), text)
        elif head.startswith(SPANS):
            spans[head.removeprefix(SPANS)] = _json_or_text(text)
        elif head in ("current", "set_aside"):
            record[head] = text.lower() not in _FALSE
        elif head == "shown_order":
            record[head] = _json_or_text(text)
        else:
            record[head] = _number(text) if head in _NUMBERS else text
    return record | {"values": values, "spans": spans}


_NUMBERS = ("item", "row", "answer", "other_answer", "shown_first", "seconds", "guideline_version")


def _number(cell: str) -> Any:
    try:
        number = float(cell)
    except ValueError:
        return cell
    return int(number) if math.isfinite(number) and number.is_integer() else number


def _value(criterion: Criterion | None, cell: str) -> Any:
    if criterion is not None and criterion.gives in (SCORE, SPANS_KIND):
        return _number(cell)
    if criterion is not None and criterion.gives == PASS_FAIL:
        low = cell.lower()
        return True if low in _TRUE else False if low in _FALSE else cell
    if criterion is not None and criterion.by_line and cell.lstrip().startswith("{"):
        return _json_or_text(cell)
    return cell


def _json_or_text(cell: str) -> Any:
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return cell


def _rating(line: int, record: dict[str, Any]) -> RatingLine:
    values = record.get("values")
    if not isinstance(values, dict) or not all(map(_can_be_value, values.values())):
        raise Refusal("values")
    rater = record.get("rater")
    if not isinstance(rater, str) or not rater.strip():
        raise Refusal("rater")
    return RatingLine(
        line=line,
        rater=rater.strip(),
        values=_with_spans(values, record.get("spans")),
        key=_key(record.get("key")),
        item=_whole(record, "item"),
        row=_whole(record, "row"),
        candidate=_text(record, "candidate"),
        answer=_whole(record, "answer") or 1,
        other=_text(record, "other"),
        other_answer=_whole(record, "other_answer") or 1,
        shown_first=_whole(record, "shown_first"),
        shown_order=_names(record.get("shown_order")),
        seconds=active_seconds(record.get("seconds")),
        comment=_text(record, "comment"),
        at=_moment(record.get("at")),
        current=record.get("current") is not False and not record.get("set_aside"),
        guideline_version=_whole(record, "guideline_version"),
    )


def _can_be_value(value: Any) -> bool:
    """Whether it is a plain value, or marks of a checklist's criteria by id, or places by candidate."""
    if isinstance(value, dict):
        return all(mark is None or isinstance(mark, bool | int | str) for mark in value.values())
    return isinstance(value, bool | int | float | str)


def _with_spans(values: dict[str, Any], spans: Any) -> dict[str, Any]:
    """The values, of spans {"score": the value beside them or None, "spans": [...]}."""
    if spans is None:
        return values
    if not isinstance(spans, dict):
        raise Refusal("spans")
    return values | {name: {"score": values.get(name), "spans": marked} for name, marked in spans.items()}


def _key(key: Any) -> UUID | None:
    if key is None:
        return None
    try:
        return UUID(str(key))
    except ValueError:
        raise Refusal("key") from None


def _whole(record: dict[str, Any], name: str) -> int | None:
    number = record.get(name)
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int) or not 0 < number < _MOST:
        raise Refusal("number", name=name)
    return number


def _names(value: Any) -> list[str]:
    if value is None or value == "":
        return []
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise Refusal("order")
    return value


def _text(record: dict[str, Any], name: str) -> str:
    text = record.get(name)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise Refusal("text", name=name)
    return text


def _moment(value: Any) -> datetime | None:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise Refusal("moment") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
