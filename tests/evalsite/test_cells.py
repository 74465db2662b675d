"""Which cells could be formulas, and that reading our own tables gives back what was written."""

from __future__ import annotations

import csv
import io

import pytest

from datasets.core.own_exports import (
    JUDGEMENT_COLUMNS,
    RATING_COLUMNS,
    ROW_COLUMNS,
    is_own_table,
    text_of_cell,
)
from evalsite.cells import csv_cell
from evalsite.table_files import csv_of

FORMULAS = [
    "=1",
    "+1",
    "-1",
    "@a",
    "＝1",
    " =1",
    "\n=1",
    "\u3000-1",
    "\xa0@a",
    "\t1",
    "\r1",
    "'=1",
    "''=1",
    "' =1",
]
TEXTS = ["", "a=1", "'a", "' a", "'", "1 - 1", " a", "\na", "'\n'=1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_text_that_could_be_a_formula_gets_an_apostrophe(text: str) -> None:
    assert csv_cell(text) == "'" + text


@pytest.mark.parametrize("text", TEXTS)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert csv_cell(text) == text


@pytest.mark.parametrize("text", FORMULAS + TEXTS)
def test_reading_a_cell_of_our_own_table_gives_the_text(text: str) -> None:
    assert text_of_cell(str(csv_cell(text))) == text


def test_whole_tables_read_back() -> None:
    texts = [first + text for text in FORMULAS + TEXTS for first in ("", "'", " ", "x")]
    written = b"".join(csv_of(["a"], [[text] for text in texts])).decode("utf-8-sig")
    cells = [row[0] if row else "" for row in csv.reader(io.StringIO(written, newline=""))]
    assert [text_of_cell(cell) for cell in cells[1:]] == texts


@pytest.mark.parametrize(
    "names",
    [
        [*ROW_COLUMNS, "id", "bad_rows"],
        [*ROW_COLUMNS, "bad_rows", "bad_rows_2"],
        [*JUDGEMENT_COLUMNS, "flags"],
        list(RATING_COLUMNS),
    ],
)
def test_our_own_tables_are_known_by_their_header(names: list[str]) -> None:
    assert is_own_table(names)


@pytest.mark.parametrize(
    "names", [[], ["question", "answer"], [*ROW_COLUMNS], [*JUDGEMENT_COLUMNS[1:], "line"]]
)
def test_other_tables_are_not(names: list[str]) -> None:
    assert not is_own_table(names)
