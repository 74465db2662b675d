"""Build tables in every format and import them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq

from datasets.core.imports import table
from datasets.core.imports.model import Imported, Options, SourceFile
from datasets.core.limits import Limits


def source_file(content: str | bytes, name: str = "table.csv") -> SourceFile:
    raw = content if isinstance(content, bytes) else content.encode()
    return SourceFile(name, len(raw), lambda: io.BytesIO(raw))


@dataclass(frozen=True, slots=True)
class Taken:
    """The rows and verdicts of an imported table, and the import itself."""

    rows: list[dict[str, Any]]
    verdicts: list[dict[str, Any]]
    imported: Imported

    @property
    def left_out(self) -> list[tuple[str, int | None, str]]:
        """(code, line, detail) of each skipped record."""
        return [(one.code, one.place.line, one.detail) for one in self.imported.left_out]

    @property
    def questions(self) -> list[Any]:
        return [row["messages"][-1]["content"] for row in self.rows]

    @property
    def answers(self) -> list[dict[str, list[str]]]:
        """{model: answers} for each row."""
        return [
            {
                one["model_name"]: [a["content"] for a in one["responses"]]
                for one in row.get("model_outputs", ())
            }
            for row in self.rows
        ]

    def field(self, name: str) -> list[Any]:
        return [row.get(name) for row in self.rows]


def taken(content: str | bytes, columns: str = "", sheet: str = "", limits: Limits | None = None) -> Taken:
    """Import a table with the guessed column roles, or those of `columns`."""
    options = Options(columns=columns, sheet=sheet, limits=limits or Limits())
    imported = table.read([source_file(content)], options)
    rows = [row.data for row in imported.rows]
    return Taken(rows, list(imported.verdicts), imported)


def xlsx(*sheets: Sequence[Sequence[Any]], merged: str = "") -> bytes:
    """A workbook with the sheets `Sheet1`, `Sheet2`, …; `merged` is a cell range to merge in the last one."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, rows in enumerate(sheets, 1):
        sheet = book.create_sheet(f"Sheet{number}")
        for row in rows:
            sheet.append(row)
        if merged and number == len(sheets):
            sheet.merge_cells(merged)
    made = io.BytesIO()
    book.save(made)
    return made.getvalue()


def parquet(**columns: Sequence[Any]) -> bytes:
    made = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), made, row_group_size=2)
    return made.getvalue()
