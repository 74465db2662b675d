"""A run's judgements as an Excel file.

openpyxl writes it row by row; pandas would need the whole table in memory (docs/decisions/dependencies.md).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from judging.runs.export import table_columns, table_rows
from judging.runs.filters import ANYTHING, Filters
from judging.runs.models import Run

LAST_ROW = 1_048_576  # of a sheet
_ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # control characters that no Excel file can hold


def write_xlsx(run: Run, path: Path, filters: Filters = ANYTHING) -> None:
    """Write the table row by row; what does not fit on a sheet goes on the next."""
    from openpyxl import Workbook  # here: it takes 60 ms, which only an export needs

    book = Workbook(write_only=True)
    columns, sheet, rows = table_columns(run), None, 0
    for row in table_rows(run, filters):
        if sheet is None or rows == LAST_ROW:
            sheet, rows = book.create_sheet(), 1
            sheet.append(columns)
        sheet.append([_cell(value) for value in row])
        rows += 1
    if sheet is None:
        book.create_sheet().append(columns)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    book.save(draft)
    draft.replace(path)


def _cell(value: str | int | float | None) -> str | int | float | None:
    return _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", value) if isinstance(value, str) else value
