"""Exports of judgements as JSON Lines, CSV, Excel and Parquet. Memory holds one batch, however large the run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from django.db.models import Count, Max
from django.utils.translation import gettext as _

from datasets.core.own_exports import JUDGEMENT_COLUMNS
from datasets.models import Version
from datasets.versions.downloads import fields_with_columns
from evalsite.cells import clean_text
from evalsite.hooks import Hook
from evalsite.table_files import Cell, Sheet, csv_of, parquet_of, xlsx_of
from judging.core.metric_definition import MetricDefinition
from judging.filters.counts import overridden_states
from judging.filters.judgement_filter import ANYTHING, Filters
from judging.records import json_text
from judging.records.models import JudgeReply, Run
from judging.teamwork.marks import exclusions_of
from judging.transfer.export.other_tools import every_eval_ever_lines, inspect_blocks
from judging.transfer.export.records import LoadedJudgement, author_columns, load, record, records
from judging.transfer.export.results import results_lines

RECORD_BYTES = 2 * 2**20  # what common readers of JSON Lines take; longer texts are cut

FIELD = "row."
"""Begins the names of columns for fields of rows, so that none has the name of another column."""
OTHER_FIELDS = "row"
"""The column for the fields without a column, as JSON."""

first_sheets: Hook[Callable[[Run], Sheet]] = Hook("judging.transfer.export.files.first_sheets")
"""Returns the sheet before the judgements in an Excel file."""

_WHOLE = ("line", "response", "attempt", "other_response", "shown_first", "repeat")
_NUMBERS = ("seconds", "score", "drawn_with")
_VALUES = ("value", "own_value", "adjudicated")
_TYPES: dict[str, type] = {**dict.fromkeys(_WHOLE, int), **dict.fromkeys(_NUMBERS, float)}


def write_lines(lines: Iterable[bytes], path: Path) -> None:
    """Write to a temporary file next to `path` and rename it, so that the file is complete or absent."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            file.writelines(lines)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def jsonl_lines(run: Run, filters: Filters = ANYTHING) -> Iterator[bytes]:
    """Yield the records as lines of strict JSON in UTF-8, at most RECORD_BYTES each."""
    return (json_text.dumps(document, RECORD_BYTES - 1) + b"\n" for document in records(run, filters))


def csv_lines(run: Run, filters: Filters = ANYTHING) -> Iterator[bytes]:
    """The table as blocks of CSV, safe to open in spreadsheets: no formulas, and Chinese is displayed correctly."""
    return csv_of(table_columns(run), table_values(run, filters))


def xlsx_blocks(run: Run, filters: Filters = ANYTHING) -> Iterator[bytes]:
    """The table as an Excel file, after a sheet with the figures of the run's report."""
    judgements = Sheet(_("Judgements"), table_columns(run), table_values(run, filters))
    return xlsx_of(*(sheet(run) for sheet in first_sheets), judgements)


def parquet_blocks(run: Run, filters: Filters = ANYTHING) -> Iterator[bytes]:
    """The table as a Parquet file, with typed numbers and uncut texts. Values are JSON, because they may be numbers,
    bools or categories; `score` is the value as a number, if numeric."""
    names = table_columns(run)
    return parquet_of([*names, "score"], _parquet_rows(run, filters, names), _TYPES)


def _parquet_rows(run: Run, filters: Filters, names: list[str]) -> Iterator[list[Cell]]:
    for values in table_values(run, filters):
        cells = [_parquet_cell(name, value) for name, value in zip(names, values, strict=True)]
        yield [*cells, _score(values[names.index("value")])]


def _parquet_cell(name: str, value: Any) -> Cell:
    if value is None or name in _TYPES:
        return value if value is None or name not in _NUMBERS else float(value)
    if isinstance(value, str) and name not in _VALUES:
        return clean_text(value)
    return clean_text(json.dumps(value, ensure_ascii=False))


def _score(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


FORMS: dict[str, tuple[Callable[[Run, Filters], Iterator[bytes]], str]] = {
    "jsonl": (jsonl_lines, "application/x-ndjson"),
    "csv": (csv_lines, "text/csv; charset=utf-8"),
    "xlsx": (xlsx_blocks, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    "parquet": (parquet_blocks, "application/vnd.apache.parquet"),
    "results": (results_lines, "application/x-ndjson"),
    "every_eval_ever": (every_eval_ever_lines, "application/x-ndjson"),
    "inspect": (inspect_blocks, "application/json"),
}
"""{format name: (writer, media type)}."""

ENDINGS = {"results": "results.jsonl", "every_eval_ever": "samples.jsonl", "inspect": "inspect.json"}
"""File extensions that differ from the format's name."""


_OF_OVERRIDE = ("own_state", "own_value", "own_reason", "overridden_by", "override_reason")
"""Columns added if the run has overrides."""
_OF_EXCLUSION = ("excluded_by", "exclusion_reason")
"""Columns added if the run has exclusions."""
_OF_JUDGE = ("judge", "verdict", "reply", "reasoning")
"""Columns of each judge, with its number appended."""


def table_columns(run: Run) -> list[str]:
    """The table's columns, with as many judges as the metric with the most has."""
    more = [
        *(_OF_OVERRIDE if overridden_states(run) else ()),
        *(_OF_EXCLUSION if exclusions_of(run).exists() else ()),
        *author_columns(run),
    ]
    judge_columns = [f"{name}_{n}" for n in range(1, _most_judges(run) + 1) for name in _OF_JUDGE]
    texts = ("question", "answer", "reference")
    return [*JUDGEMENT_COLUMNS, "flags", "seconds", *more, *_row_columns(run.version), *texts, *judge_columns]


def _row_columns(version: Version) -> list[str]:
    """The columns for fields that rows have besides messages, answers and reference."""
    fields, all_of_them = fields_with_columns(version)
    return [*(FIELD + name for name in fields), *([] if all_of_them else [OTHER_FIELDS])]


def _most_judges(run: Run) -> int:
    metrics = [MetricDefinition.from_json(metric.definition) for metric in run.metrics.all()]
    most = 1 if run.imported else max((metric.calls for metric in metrics), default=0)
    if any(metric.calls_over(2) > metric.calls for metric in metrics):  # one call per field of an answer
        counts = JudgeReply.objects.filter(judgement__run=run).values("judgement").annotate(n=Count("pk"))
        return max(most, counts.aggregate(most=Max("n"))["most"] or 0)
    return most


def table_values(run: Run, filters: Filters = ANYTHING) -> Iterator[list[Any]]:
    """Yield the matching judgements as unformatted rows of `table_columns`."""
    columns = table_columns(run)
    with_column = {name.removeprefix(FIELD) for name in columns if name.startswith(FIELD)}
    for loaded in load(run, filters, texts=True):
        cells = _cells(loaded, with_column)
        yield [cells.get(name) for name in columns]


def _cells(loaded: LoadedJudgement, with_column: Collection[str]) -> dict[str, Any]:
    """The values of all columns that apply to a judgement, by name; `with_column`: fields of rows."""
    document, judgement = record(loaded), loaded.judgement
    override, excluded = document.get("override") or {}, document.get("excluded") or {}
    own = override.get("own") or {}
    cells = document | {
        **{FIELD + name: value for name, value in document["row"].items()},
        OTHER_FIELDS: {n: value for n, value in document["row"].items() if n not in with_column} or None,
        "flags": judgement.flags,
        "seconds": judgement.seconds,
        "own_state": own.get("state"),
        "own_value": own.get("value"),
        "own_reason": own.get("reason"),
        "overridden_by": override.get("by"),
        "override_reason": override.get("reason"),
        "excluded_by": excluded.get("by"),
        "exclusion_reason": excluded.get("reason"),
    }
    for n, judge in enumerate(document["judges"], 1):
        reply = judge["reply"] or {}
        values = judge["name"], judge["verdict"], reply.get("content"), reply.get("reasoning_content")
        cells |= {f"{name}_{n}": value for name, value in zip(_OF_JUDGE, values, strict=True)}
    return cells
