"""CSV files are safe to open in spreadsheets; Parquet files can be read with pandas and pyarrow."""

from __future__ import annotations

import io
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from openpyxl.worksheet.worksheet import Worksheet
from pyarrow.parquet import ParquetFile

from evalsite.cells import CELL_CHARACTERS
from evalsite.table_files import (
    GROUP_ROWS,
    NARROWEST,
    WIDEST,
    Sheet,
    csv_blocks,
    csv_of,
    parquet_of,
    xlsx_of,
)

NAMES = ["line", "value", "score"]


def written(rows: list[list[Any]]) -> io.BytesIO:
    return io.BytesIO(b"".join(parquet_of(NAMES, rows, {"line": int, "score": float})))


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [[1, "天空 \n", 0.5]],
        [[None, None, None]],
        [[n, None if n % 3 else f"row {n}", n / 7 if n % 2 else None] for n in range(300)],
        [[2**62, "", -1e300]],
    ],
    ids=["nothing", "one", "empty", "many", "extremes"],
)
def test_cells_are_read_back_as_they_were(rows: list[list[Any]]) -> None:
    table = ParquetFile(written(rows)).read()
    assert [list(row.values()) for row in table.to_pylist()] == rows


def test_pandas_reads_numbers_as_numbers() -> None:
    table = pd.read_parquet(written([[1, "7", 7.0], [2, None, None]]))
    assert (table["line"].tolist(), table["score"].sum(), table["value"].count()) == ([1, 2], 7.0, 1)


def test_columns_have_their_types_even_where_all_cells_are_empty() -> None:
    schema = ParquetFile(written([[None, None, None]])).schema_arrow
    assert schema.types == [pa.int64(), pa.string(), pa.float64()]


def test_long_tables_are_written_in_groups() -> None:
    file = ParquetFile(written([[n, "x", None] for n in range(GROUP_ROWS * 2 + 5)]))
    groups = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    assert groups == [GROUP_ROWS, GROUP_ROWS, 5]


def test_a_group_ends_where_its_texts_are_long() -> None:
    assert ParquetFile(written([[n, "x" * 2**20, None] for n in range(18)])).num_row_groups == 2


def book_of(*sheets: Sheet) -> openpyxl.Workbook:
    return openpyxl.load_workbook(io.BytesIO(b"".join(xlsx_of(*sheets))))


def test_sheets_have_names_a_header_that_stays_in_view_and_a_filter() -> None:
    rows = ([n, "x"] for n in range(250))
    first, second = book_of(Sheet("Report", ["a"], []), Sheet("Rows", ["line", "text"], rows)).worksheets
    assert (first.title, first.freeze_panes, first.auto_filter.ref) == ("Report", "A2", "A1:A1")
    assert (second.title, second.freeze_panes, second.auto_filter.ref) == ("Rows", "A2", "A1:B251")
    assert [row[0].value for row in second.iter_rows()] == ["line", *range(250)]


def test_columns_are_as_wide_as_their_first_rows_within_limits() -> None:
    rows = [[1, "天空" * 5, "x" * 500, None], [22, "short\nlines", "", None]]
    (page,) = book_of(Sheet("Rows", ["n", "text", "long", "none"], rows)).worksheets
    widths = [page.column_dimensions[letter].width for letter in "ABCD"]
    assert widths == [NARROWEST, 23, WIDEST, NARROWEST]


def test_a_table_longer_than_a_sheet_goes_on_in_another() -> None:
    names = ["n"]
    pages = book_of(Sheet("Rows", names, ([n] for n in range(7)), most_rows=4)).worksheets
    assert [page.title for page in pages] == ["Rows", "Rows 2", "Rows 3"]
    assert [[row[0].value for row in page.iter_rows()] for page in pages] == [
        ["n", 0, 1, 2],
        ["n", 3, 4, 5],
        ["n", 6],
    ]
    assert [page.auto_filter.ref for page in pages] == ["A1:A4", "A1:A4", "A1:A2"]


def test_csv_cells_are_no_formulas_and_fit_a_spreadsheet() -> None:
    text = b"".join(csv_of(["=name", "value"], [["@b", True], [None, -1.5], ["a\n", "x" * 40_000]])).decode()
    lines = ["\ufeff'=name,value", "'@b,true", ",-1.5", '"a\n",' + "x" * CELL_CHARACTERS + "… [+8000]"]
    assert text == "".join(f"{line}\r\n" for line in lines)


def test_csv_is_sent_in_blocks_after_its_byte_order_mark() -> None:
    blocks = list(csv_blocks([["=x" * 1000, "ü"]] * 100))
    assert blocks[0] == b"\xef\xbb\xbf"
    assert [len(block) < 2**17 for block in blocks[1:]] == [True] * 4
    assert b"".join(blocks[1:]) == ("=x" * 1000 + ",ü\r\n").encode() * 100


def sheet_of(columns: list[str], *rows: list[Any]) -> Worksheet:
    book = openpyxl.load_workbook(io.BytesIO(b"".join(xlsx_of(Sheet("Table", columns, rows)))))
    assert isinstance(book.active, Worksheet)
    return book.active


@pytest.mark.parametrize("text", ["=1+1", "-1", " =1", "'=1", "#N/A", "text"])
def test_excel_cells_are_typed_as_text_and_get_no_apostrophe(text: str) -> None:
    sheet = sheet_of([text], [text])
    assert [(cell.value, cell.data_type) for (cell,) in sheet.iter_rows()] == [(text, "s")] * 2


def test_text_that_could_be_a_formula_stays_text_when_its_excel_cell_is_edited() -> None:
    assert [cell.number_format for cell in sheet_of(["a", "b"], ["=1", "x"])[2]] == ["@", "General"]


def test_excel_numbers_stay_numbers() -> None:
    assert [cell.value for cell in sheet_of(["a", "b"], [-1.5, 3])[2]] == [-1.5, 3]
