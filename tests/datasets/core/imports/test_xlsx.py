"""Import of workbooks: sheets, dates, formulas, merged cells, and malicious archives."""

from __future__ import annotations

import datetime
import io
import tracemalloc
import warnings
import zipfile
from contextlib import suppress
from itertools import pairwise

import pytest

from datasets.core.imports.model import NotUsable, Options
from datasets.core.imports.table import open_table
from datasets.core.imports.xlsx import MOST_MEMBERS, xlsx_sheets
from datasets.core.limits import Limits
from tests.datasets.core.imports.tabular import source_file, taken, xlsx

HEADER = ["question", "answer", "x"]


def rewritten(book: bytes, member: str, old: bytes, new: bytes) -> bytes:
    """The workbook with `old` replaced by `new` in one archive member."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as given, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as out:
        for one in given.namelist():
            content = given.read(one)
            out.writestr(one, content.replace(old, new) if one == member else content)
    return made.getvalue()


SHEET = "xl/worksheets/sheet1.xml"
TYPES = "[Content_Types].xml"
SHARED = "xl/sharedStrings.xml"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"


def with_shared(item: str, cell: str = "A2") -> bytes:
    """A workbook in which a cell refers to a shared string, as spreadsheet programs write them."""
    book = xlsx([HEADER, [7, "a", 1]])
    part = f'<Override PartName="/{SHARED}" ContentType="{KIND}"/></Types>'
    book = rewritten(book, TYPES, b"</Types>", part.encode())
    book = rewritten(
        book, SHEET, f'<c r="{cell}" t="n"><v>7</v>'.encode(), f'<c r="{cell}" t="s"><v>0</v>'.encode()
    )
    made = io.BytesIO(book)
    with zipfile.ZipFile(made, "a") as out:
        out.writestr(SHARED, f'<sst xmlns="{MAIN}"><si>{item}</si></sst>')
    return made.getvalue()


def test_the_first_sheet_that_is_a_table_is_read_unless_another_is_named() -> None:
    book = xlsx([["Notes"]], [HEADER, ["q", "a", 1]], [HEADER, ["r", "b", 2]])
    assert taken(book).questions == ["q"]
    assert taken(book, sheet="Sheet3").questions == ["r"]
    assert open_table(source_file(book), Options()).sheets == ["Sheet1", "Sheet2", "Sheet3"]


def test_an_unknown_sheet_is_reported_with_those_that_there_are() -> None:
    with pytest.raises(NotUsable) as refused:
        taken(xlsx([HEADER, ["q", "a", 1]]), sheet="Other")
    assert refused.value.params == {"sheet": "Other", "sheets": "Sheet1"}


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ("<t>why?</t>", "why?"),
        ("<r><t>wh</t></r><r><rPr><b/></rPr><t>y?</t></r>", "why?"),
        ("<t>東</t><rPh sb='0' eb='1'><t>ひがし</t></rPh>", "東"),
        ("<t>a_x000D_b</t>", "a\rb"),
    ],
)
def test_shared_strings_are_read_without_their_formats(item: str, text: str) -> None:
    assert taken(with_shared(item)).questions == [text]


def test_a_shared_string_that_is_not_there_makes_the_file_unusable() -> None:
    with pytest.raises(NotUsable):
        taken(rewritten(with_shared("<t>a</t>"), SHEET, b't="s"><v>0<', b't="s"><v>9<'))


def test_a_title_above_the_header_and_empty_rows_are_passed_over() -> None:
    found = taken(xlsx([["Report 2024"], [], HEADER, ["q", "a", 1], [None, None, None], ["", "b", 2]]))
    assert found.questions == ["q"]
    assert found.left_out == [("above_header", 1, "Report 2024"), ("no_question", 6, "question")]


def test_cells_keep_their_types() -> None:
    day, moment = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 13, 5)
    values = [1, 2.5, True, day, moment, 12345678901, " padded "]
    found = taken(xlsx([HEADER, *(["q", "a", value] for value in values)]))
    assert found.field("x") == [1, 2.5, True, "2024-02-29", "2024-02-29T13:05:00", 12345678901, " padded "]


def test_a_formula_that_was_never_computed_is_an_empty_cell_and_reported() -> None:
    found = taken(xlsx([HEADER, ["q", "a", "=1+1"], ["=A1", "b", 1]]))
    assert found.field("x") == [None]
    assert found.left_out == [
        ("formula_without_result", 2, "x"),
        ("formula_without_result", 3, "question"),
        ("no_question", 3, "question"),
    ]


def test_a_row_of_formulas_without_results_is_reported() -> None:
    found = taken(xlsx([HEADER, ["q", "a", 1], ["=A2", "=B2", "=C2"]]))
    assert ("formula_without_result", 3, "question") in found.left_out


def test_a_formula_whose_result_is_an_empty_text_is_not_reported() -> None:
    row = b'<row r="3"><c r="A3" t="inlineStr"><is><t>r</t></is></c><c r="C3" t="str"><f>T(1)</f><v></v></c></row>'
    assert "formula_without_result" not in [code for code, _line, _name in taken(harmful(row)).left_out]


def test_a_formula_is_what_it_last_came_to() -> None:
    book = rewritten(xlsx([HEADER, ["q", "a", "=1+1"]]), SHEET, b"<v></v>", b"<v>2</v>")
    book = rewritten(book, SHEET, b"<v />", b"<v>2</v>")
    assert taken(book).field("x") == [2]


def test_an_error_in_a_cell_is_reported_and_is_no_text() -> None:
    found = taken(xlsx([HEADER, ["q", "a", "#N/A"]]))
    assert found.field("x") == [None]
    assert found.left_out == [("cell_error", 2, "x: #N/A")]


def test_of_merged_cells_only_the_first_has_the_value_and_what_lacks_it_is_reported() -> None:
    rows = [["question", "model", "answer"], ["q", "a", "1"], [None, "b", "2"], ["r", "a", "3"]]
    found = taken(xlsx(rows, merged="A2:A3"))
    assert found.answers == [{"a": ["1"]}, {"a": ["3"]}]
    assert found.left_out == [("merged_cell", 3, "question"), ("no_question", 3, "question")]


def test_cells_merged_across_columns_are_reported_by_column_and_empty_ones_beside_them_are_not() -> None:
    found = taken(xlsx([[*HEADER, "y"], ["q", "a", None, None], ["r", "b", 1, None]], merged="B3:D3"))
    assert [(line, name) for code, line, name in found.left_out if code == "merged_cell"] == [
        (3, "x"),
        (3, "y"),
    ]


def test_merged_cells_beyond_the_table_and_hidden_values_are_not_reported() -> None:
    book = xlsx([HEADER, ["q", "a", 1], ["r", "b", 2]])
    area = b'</sheetData><mergeCells><mergeCell ref="E2:F9"/><mergeCell ref="A2:A3"/></mergeCells>'
    found = taken(rewritten(book, SHEET, b"</sheetData>", area))
    assert (found.questions, found.left_out) == (["q", "r"], [])


def test_a_row_that_only_merged_cells_reach_is_no_row() -> None:
    assert taken(xlsx([HEADER, ["q", "a", 1], [], ["r", "b", 2]], merged="A2:A3")).left_out == []


def test_a_million_rows_that_are_not_there_take_no_time() -> None:
    book = rewritten(xlsx([HEADER, ["q", "a", 1]]), SHEET, b'<row r="2"', b'<row r="99999999999"')
    assert taken(book).rows == []


def test_a_cell_beyond_the_last_column_is_reported() -> None:
    book = rewritten(xlsx([HEADER, ["q", "a", 1]]), SHEET, b'r="C2"', b'r="XFD2"')
    assert taken(book).left_out == [("more_cells_than_columns", 2, "16384 > 3")]


def test_more_columns_than_a_table_may_have_are_refused() -> None:
    with pytest.raises(NotUsable) as refused:
        taken(rewritten(xlsx([HEADER, ["q", "a", 1]]), SHEET, b'r="C1"', b'r="XFD1"'))
    assert refused.value.code == "too_many_columns"


def test_a_workbook_that_expands_without_limit_is_refused() -> None:
    with pytest.raises(NotUsable) as refused:
        taken(xlsx([HEADER, ["q", "a", "x" * 30_000]]), limits=Limits(unpacked_bytes=20_000))
    assert refused.value.code == "too_large_unpacked"


def test_more_members_than_a_workbook_has_are_refused() -> None:
    made = io.BytesIO(xlsx([HEADER, ["q", "a", 1]]))
    with zipfile.ZipFile(made, "a") as out:
        for number in range(MOST_MEMBERS):
            out.writestr(f"xl/media/{number}", b"")
    with pytest.raises(NotUsable) as refused:
        taken(made.getvalue())
    assert refused.value.code == "too_large_unpacked"


def test_entities_that_expand_without_end_are_refused() -> None:
    names = "abcdefgh"
    entities = '<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {name} "{f"&{before};" * 20}">' for before, name in pairwise(names)
    )
    book = rewritten(
        xlsx([HEADER, ["q", "a", 1]]), SHEET, b"<worksheet", f"<!DOCTYPE x [{entities}]><worksheet".encode()
    )
    with pytest.raises(NotUsable) as refused:
        taken(rewritten(book, SHEET, b"<v>1</v>", b"<v>&h;</v>"))
    assert refused.value.code == "unreadable"


def harmful(rows: bytes, shared: bytes = b"") -> bytes:
    """A workbook with this XML below its header row, at the highest compression level."""
    made = io.BytesIO(rewritten(xlsx([HEADER, ["q", "a", 1]]), SHEET, b"</sheetData>", b"%ROWS</sheetData>"))
    whole = io.BytesIO()
    with (
        zipfile.ZipFile(made) as given,
        zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out,
    ):
        for one in given.namelist():
            out.writestr(one, given.read(one).replace(b"%ROWS", rows))
        if shared:
            out.writestr(SHARED, shared)
    return whole.getvalue()


def peak_of(book: bytes) -> int:
    """Peak memory in bytes while the workbook is read or refused."""
    tracemalloc.start()
    try:
        with suppress(NotUsable):
            for _record in open_table(source_file(book), Options(limits=Limits(row_bytes=2**20))).records():
                pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


MANY = 20_000
ATTRIBUTES = b"".join(b' x%d="1"' % number for number in range(MANY))
ONE_STRING = b'<row><c t="s"><v>0</v></c><c t="inlineStr"><is><t>a</t></is></c></row>'


@pytest.mark.parametrize(
    ("most", "rows", "shared"),
    [
        (1_000_000, b'<row r="3">' + b"<c/>" * MANY + b"</row>", b""),
        (1_000_000, b"<row/>" * MANY, b""),
        (7_000_000, b'<row r="3"><c' + ATTRIBUTES + b"/></row>", b""),
        (
            7_000_000,
            b'<row r="3"><c t="inlineStr"><is><t>' + b"x" * 7_000_000 + b"</t></is></c></row>",
            b"",
        ),
        (1_000_000, b'<row r="3"><c t="s"><v>5</v></c></row>', b"<sst>" + b"<si/>" * MANY + b"</sst>"),
        (20_000_000, ONE_STRING * 50, b"<sst><si><t>" + b"y" * 900_000 + b"</t></si></sst>"),
    ],
    ids=["empty cells", "empty rows", "attributes", "a text", "shared strings", "one string everywhere"],
)
def test_a_workbook_made_to_fill_memory_does_not(most: int, rows: bytes, shared: bytes) -> None:
    assert peak_of(harmful(rows, shared)) < most


def test_a_row_of_empty_cells_is_no_row_and_those_behind_it_are_read() -> None:
    rows = b'<row r="3">' + b"<c/>" * 20_000 + b"</row>"
    after = b'<row r="4"><c r="A4" t="inlineStr"><is><t>r</t></is></c><c r="B4"><v>2</v></c></row>'
    assert taken(harmful(rows + after)).questions == ["q", "r"]


def test_a_row_with_more_text_than_a_row_may_have_is_reported() -> None:
    rows = [HEADER, ["q", "a", "x" * 5_000], ["r", "b", 2]]
    found = taken(xlsx(rows), limits=Limits(row_bytes=1_000))
    assert (found.questions, found.left_out) == (["r"], [("too_large", 2, "")])


def test_reading_a_workbook_leaves_the_warnings_of_others_alone() -> None:
    before = list(warnings.filters)
    taken(xlsx([HEADER, ["q", "a", 1]]))
    assert warnings.filters == before


def test_a_sheet_that_lies_about_its_size_is_read_whole() -> None:
    book = rewritten(xlsx([HEADER, ["q", "a", 1]]), SHEET, b'ref="A1:C2"', b'ref="B2"')
    assert taken(book).field("x") == [1]


@pytest.mark.parametrize("member", ["xl/workbook.xml", "xl/styles.xml", SHEET, SHARED])
def test_a_workbook_with_a_broken_part_is_not_usable(member: str) -> None:
    book = rewritten(with_shared("<t>a</t>"), member, b">", b"")
    with pytest.raises(NotUsable):
        taken(book)


def test_every_sheet_can_be_looked_at_before_one_is_chosen() -> None:
    book = xlsx([["Notes"], [], ["of 2024"]], [HEADER, *[["q", "a", n] for n in range(9)]], [])
    looks = xlsx_sheets(source_file(book), Limits())
    assert [(one.name, one.rows, one.columns, one.more) for one in looks] == [
        ("Sheet1", 3, 1, False),
        ("Sheet2", 10, 3, False),
        ("Sheet3", 0, 0, False),
    ]
    assert [one.first for one in looks] == [
        [["Notes"], ["of 2024"]],
        [HEADER, ["q", "a", 0], ["q", "a", 1]],
        [],
    ]


def test_a_long_sheet_s_size_is_what_it_says_itself() -> None:
    book = xlsx([HEADER, *[["q", "a", n] for n in range(1500)]])
    (look,) = xlsx_sheets(source_file(book), Limits())
    assert (look.rows, look.columns, look.more) == (1501, 3, False)


def test_a_long_sheet_that_does_not_say_its_size_has_more_rows_than_were_counted() -> None:
    book = xlsx([HEADER, *[["q", "a", n] for n in range(1500)]])
    book = rewritten(book, SHEET, b'<dimension ref="A1:C1501" />', b"")
    (look,) = xlsx_sheets(source_file(book), Limits())
    assert (look.rows, look.columns, look.more) == (1000, 3, True)


def test_a_damaged_sheet_does_not_hide_the_others() -> None:
    book = rewritten(xlsx([HEADER, ["q", "a", 1]], [HEADER, ["r", "b", 2]]), SHEET, b"</row>", b"</rw>")
    damaged, whole = xlsx_sheets(source_file(book), Limits())
    assert (damaged.rows, whole.rows) == (0, 2)
