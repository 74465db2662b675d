"""Exports of judgements as JSON Lines, CSV, Excel and Parquet. Memory holds one batch, however large the run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from django.db.models import Count, Max

from datasets.core.variables import reference_in, response_data
from evalsite.cells import clean_text
from evalsite.table_files import Cell, csv_of, parquet_of, xlsx_of
from judging.core.metric_definition import MetricDefinition
from judging.runs import json_text
from judging.runs.counts import overridden_states
from judging.runs.export.other_tools import every_eval_ever_lines, inspect_blocks
from judging.runs.export.records import LoadedJudgement, author_columns, data_of, load, record, records
from judging.runs.export.results import results_lines
from judging.runs.filters import ANYTHING, Filters
from judging.runs.models import JudgeReply, Run
from judging.runs.teamwork.marks import exclusions_of

RECORD_BYTES = 2 * 2**20  # spec: commands

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
    return (json_text.dumps(one, RECORD_BYTES - 1) + b"\n" for one in records(run, filters))


def csv_lines(run: Run, filters: Filters = ANYTHING) -> Iterator[bytes]:
    """The table as blocks of CSV, safe to open in spreadsheets: no formulas, and Chinese is displayed correctly."""
    return csv_of(table_columns(run), table_values(run, filters))


def xlsx_blocks(run: Run, filters: Filters = ANYTHING) -> Iterator[bytes]:
    """The table as an Excel file."""
    return xlsx_of(table_columns(run), table_values(run, filters))


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


_FIXED = ("line", "model", "response", "metric", "attempt", "state", "value", "reason")
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
    asked = [f"{name}_{n}" for n in range(1, _most_judges(run) + 1) for name in _OF_JUDGE]
    return [*_FIXED, "flags", "seconds", *more, "question", "answer", "reference", *asked]


def _most_judges(run: Run) -> int:
    metrics = [MetricDefinition.from_json(one.definition) for one in run.metrics.all()]
    most = 1 if run.imported else max((metric.calls for metric in metrics), default=0)
    if any(metric.calls_over(2) > metric.calls for metric in metrics):  # one call per field of an answer
        counts = JudgeReply.objects.filter(judgement__run=run).values("judgement").annotate(n=Count("pk"))
        return max(most, counts.aggregate(most=Max("n"))["most"] or 0)
    return most


def table_values(run: Run, filters: Filters = ANYTHING) -> Iterator[list[Any]]:
    """Yield the matching judgements as unformatted rows of `table_columns`."""
    columns = table_columns(run)
    for one in load(run, filters, texts=True):
        cells = _cells(one, run.version.format)
        yield [cells.get(name) for name in columns]


def _cells(one: LoadedJudgement, form: str) -> dict[str, Any]:
    """The values of all columns that apply to a judgement, by name."""
    document, judgement = record(one), one.judgement
    override, excluded = document.get("override") or {}, document.get("excluded") or {}
    own = override.get("own") or {}
    data = data_of(judgement.row.raw, form)
    cells = document | {
        "flags": judgement.flags,
        "seconds": judgement.seconds,
        "own_state": own.get("state"),
        "own_value": own.get("value"),
        "own_reason": own.get("reason"),
        "overridden_by": override.get("by"),
        "override_reason": override.get("reason"),
        "excluded_by": excluded.get("by"),
        "exclusion_reason": excluded.get("reason"),
        "question": data["question"],
        "answer": response_data(judgement.response.raw)["content"],
        "reference": reference_in(data),
    }
    for n, judge in enumerate(document["judges"], 1):
        reply = judge["reply"] or {}
        values = judge["name"], judge["verdict"], reply.get("content"), reply.get("reasoning_content")
        cells |= {f"{name}_{n}": value for name, value in zip(_OF_JUDGE, values, strict=True)}
    return cells
