"""Import of CSV with any delimiter and encoding."""

from __future__ import annotations

import gzip

import pytest

from datasets.core.imports.model import NotUsable, Options
from datasets.core.imports.table import open_table
from datasets.core.limits import Limits
from tests.datasets.core.imports.tabular import source_file, taken


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_out(delimiter: str) -> None:
    text = f"question{delimiter}answer\na, b; c{delimiter}d\n".replace("a, b; c", '"a, b; c"')
    assert taken(text).questions == ["a, b; c"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_the_encoding_is_found_out(encoding: str) -> None:
    assert taken("问题,回答\n一,二\n".encode(encoding)).questions == ["一"]


def test_what_is_no_utf8_is_read_as_western_text() -> None:
    assert taken("question,answer\ncafé, oui\n".encode("cp1252")).questions == ["café"]


def test_a_packed_file_is_read() -> None:
    assert taken(gzip.compress(b"question,answer\nq,a\n")).questions == ["q"]


def test_a_quoted_field_may_span_lines_and_places_count_physical_lines() -> None:
    found = taken('question,answer\n"two\nlines",a\n\n,b\n')
    assert found.questions == ["two\nlines"]
    assert found.left_out == [("no_question", 5, "question")]


def test_columns_without_a_name_and_with_the_same_one_get_their_own() -> None:
    table = open_table(source_file("a,,a\n1,2,3\n"), Options())
    assert table.columns == ["a", "column 2", "a (2)"]


def test_a_record_with_more_cells_than_the_header_is_left_out() -> None:
    found = taken("question,answer\nq,a,b\nr,c\n")
    assert (found.questions, found.left_out) == (["r"], [("more_cells_than_columns", 2, "3 > 2")])


def test_a_quote_that_never_ends_is_reported_once_it_is_longer_than_a_row() -> None:
    given = 'question,answer\nq,a\n"' + ("x" * 99 + "\n") * 2_000
    found = taken(given, limits=Limits(row_bytes=140_000))
    assert found.questions[0] == "q"
    assert "quote_never_ends" in found.imported.left_out_counts


def test_a_gzip_that_is_cut_is_not_usable() -> None:
    with pytest.raises(NotUsable):
        taken(gzip.compress(b"question,answer\n" + b"q,a\n" * 1000)[:-12])
