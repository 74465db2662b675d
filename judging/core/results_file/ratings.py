"""Converts the rating export of a human evaluation, with one value per criterion in each line, to results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from judging.core.people.criteria import BOTH_BAD, STEPS
from judging.core.results_file.fields import TableCell, plain
from judging.core.results_file.records import Record, RefusedLine

VALUE, ADJUDICATED = "value: ", "adjudicated: "
"""Prefixes of a criterion's columns in a table export."""
COMPARISONS = (*STEPS, BOTH_BAD)
_NAMES = {
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


def expanded(
    found: Iterable[tuple[int, Record | RefusedLine]],
) -> Iterator[tuple[int, Record | RefusedLine]]:
    """The same lines, with each rating expanded to one verdict per criterion."""
    for line, record in found:
        if isinstance(record, RefusedLine) or not is_rating(record):
            yield line, record
        else:
            for one in _verdicts(record):
                yield line, one


def is_rating(record: Record) -> bool:
    """Whether the record names its row and candidate as ratings do."""
    return "row" in record and "candidate" in record and "model" not in record


def _verdicts(record: Record) -> Iterator[Record]:
    """The verdicts of a rating; none if it does not count: outdated, on a gold item, or a repeat."""
    if plain(record.get("current")) is False or plain(record.get("gold")) or plain(record.get("repeat_of")):
        return
    about = {name: record[known] for known, name in _NAMES.items() if known in record}
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
