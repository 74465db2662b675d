"""Editing one row: its fields, its findings, and the file with the change."""

from __future__ import annotations

import gzip
import io

import pytest

from datasets.core.csv_reader import CsvTable
from datasets.core.decode import Encoding, Upload
from datasets.core.limits import Limits
from datasets.versions.row_fields import (
    MOST_FIELDS,
    Replacement,
    as_typed,
    blank_like,
    fields_of,
    findings_in,
    one_line,
    record_of,
    replaced,
    with_fields,
)

ROW = (
    '{"id": 12345678901234567890123,  "messages":[{"role":"user","content":"Wh\\u0079?"}], "z": 1.50, '
    '"model_outputs": [{"model_name": "a", "responses": [{"content": "x\\ny"}]}], "a": {"k": [1, 2]}}'
)


def table(header: str) -> CsvTable:
    record = record_of(header)
    assert record
    return CsvTable.of(record)


def written(source: bytes, *replacements: Replacement, encoding: Encoding = "utf-8") -> bytes:
    upload = Upload(io.BytesIO(source), Limits())
    return b"".join(replaced(upload, encoding, replacements))


def test_a_row_is_taken_apart_in_its_own_order() -> None:
    assert [(field.path, field.kind, field.value) for field in fields_of(ROW) or []] == [
        ("id", "json", "12345678901234567890123"),
        ("messages[0].role", "text", "user"),
        ("messages[0].content", "text", "Why?"),
        ("z", "json", "1.50"),
        ("model_outputs[0].model_name", "text", "a"),
        ("model_outputs[0].responses[0].content", "text", "x\ny"),
        ("a", "json", '{"k": [1, 2]}'),
    ]


def test_only_what_was_changed_is_written_again() -> None:
    typed = {"messages[0].content": 'Wo "?"', "model_outputs[0].responses[0].content": "x\r\ny", "z": "1.50"}
    assert with_fields(ROW, typed) == ROW.replace("Wh\\u0079?", 'Wo \\"?\\"')
    assert with_fields(ROW, {"id": "99999999999999999999999"}) == ROW.replace(
        "12345678901234567890123", "9" * 23
    )
    assert with_fields(ROW, {"unknown": "x"}) == ROW


@pytest.mark.parametrize(
    "text", ["{bad", "[1]", "7", "{}", '{"a": 1, "a": 2}', '{"m": x}', '{"messages": [%s]}']
)
def test_what_is_no_form_is_edited_as_text(text: str) -> None:
    many = ", ".join('{"role": "user"}' for _ in range(MOST_FIELDS + 1))
    assert fields_of(text.replace("%s", many)) is None


@pytest.mark.parametrize("escape", ["\\u0000", "\\ud800", "\\r", "\\u001b"])
def test_a_text_that_a_browser_would_not_give_back_is_shown_as_json(escape: str) -> None:
    (field,) = fields_of(f'{{"a": "x{escape}"}}') or []
    assert (field.kind, field.value) == ("json", f'"x{escape}"')


def test_a_record_of_a_csv_is_a_field_for_each_column() -> None:
    header = table("prompt,response,Note")
    record = 'Why?,"a ""b""\r\nc",x'
    assert [field.value for field in fields_of(record, header) or []] == ["Why?", 'a "b"\r\nc', "x"]
    assert with_fields(record, {"response": 'a "b"\nc'}, header) == record
    assert with_fields(record, {"response": "a\r\nb, c"}, header) == 'Why?,"a\r\nb, c",x'
    assert with_fields(record, {"Note": "y\nz"}, header) == 'Why?,"a ""b""\r\nc","y\nz"'
    assert fields_of("too,few", header) is None
    assert fields_of('a,"b,c', header) is None


def test_line_ends_stay_as_they_were() -> None:
    assert as_typed("a\nb", "a\r\nb") == "a\nb"
    assert as_typed("a\nb", "a\r\nc") == "a\nc"
    assert as_typed("a\r\nb", "a\nc") == "a\r\nc"


def test_json_over_several_lines_becomes_one_line_and_keeps_its_texts() -> None:
    assert one_line('{\r\n  "a": "x\u2028 \\n y",\n  "b": 1.0\n}\n') == '{ "a": "x\u2028 \\n y", "b": 1.0 }'
    assert one_line('{"a": "x\n  y"}') == '{"a": "x\n  y"}'  # invalid inside a string, not whitespace


def test_the_ordinary_rules_look_at_the_row() -> None:
    found = findings_in('{"messages": [{"role": "usr", "content": " "}]}', 7, "infer_and_judge", Limits())
    assert [(one.line, one.code, one.severity) for one in found] == [
        (7, "messages.no_user", "error"),
        (7, "role.unknown", "error"),
        (7, "content.blank", "warning"),
    ][1:]
    assert [one.code for one in findings_in("{", 1, "infer_and_judge", Limits())] == ["json.invalid"]
    assert [one.code for one in findings_in("{}" * 9, 1, None, Limits(row_bytes=9))] == ["row.too_large"]
    many = Limits(row_values=3)
    assert [one.code for one in findings_in("[1,2,3,4]", 1, None, many)] == ["row.too_large"]
    header = table("prompt,response")
    assert [one.code for one in findings_in(",b,c", 2, "legacy_csv", Limits(), header)] == ["csv.columns"]
    assert [one.code for one in findings_in(",b", 2, "legacy_csv", Limits(), header)] == ["prompt.blank"]


def test_only_the_lines_that_are_replaced_change() -> None:
    source = b"\xef\xbb\xbfone\r\n\n  two \r\nthree\xff\nfour"
    made = written(source, Replacement(3, 1, "2"), Replacement(5, 1, "4"), encoding="utf-8-sig")
    assert made == b"\xef\xbb\xbfone\r\n\n2\r\nthree\xff\n4"
    assert written(source, encoding="utf-8-sig") == source
    assert written(b"a\nb\nc\n", Replacement(1, 2, "x,\ny"), Replacement(3, 1, "z")) == b"x,\ny\nz\n"


def test_rows_are_deleted_with_their_line_ends_and_added_behind_the_last_line() -> None:
    gone, new = Replacement(1, 1, ""), Replacement(9, 0, "new")
    assert written(b"a\nb\nc", gone, Replacement(3, 1, "")) == b"b\n"
    assert written(b"a\nb", gone, new, Replacement(10, 0, "newer")) == b"b\nnew\nnewer\n"
    assert written(b"a\r\nb\r\n", Replacement(2, 1, ""), new) == b"a\r\nnew\r\n"
    assert written(b'h\n"a\nb",c\nd,e\n', Replacement(2, 2, ""), new) == b"h\nd,e\nnew\n"
    assert written(b"a\n", gone) == b""


def test_a_new_row_has_the_parts_of_another_but_nothing_in_them() -> None:
    asked, answered = '[{"role": "user", "content": "Why?"}]', '[{"content": "So."}]'
    outputs = f'[{{"model_name": "m", "responses": {answered}}}]'
    text = f'{{"id": 7, "messages": {asked}, "model_outputs": {outputs}}}'
    assert blank_like(text) == text.replace("7", "null").replace("Why?", "").replace("So.", "")
    assert blank_like("a,b", table("prompt,response")) == ","
    assert blank_like("{broken") == ""


def test_lines_are_found_across_the_chunks_in_which_a_file_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    source = b"".join(b"line %d\r\n" % number for number in range(1, 40))
    for size in (1, 2, 3, 7):
        monkeypatch.setattr("datasets.core.decode.CHUNK", size)
        made = written(source, Replacement(9, 2, "nine"), Replacement(39, 1, "last"))
        assert made == source.replace(b"line 9\r\nline 10\r\n", b"nine\r\n").replace(b"line 39", b"last")


def test_packed_and_other_encodings_come_out_in_utf8() -> None:
    assert written(gzip.compress(b"a\nb\n"), Replacement(2, 1, "x")) == b"a\nx\n"
    cut = gzip.compress(b"".join(b"line %d\n" % number for number in range(9000)))[:-40]
    assert written(cut, Replacement(1, 1, "x")).startswith(b"x\nline 1\n")
    assert (
        written("问\n答\n".encode("gb18030"), Replacement(2, 1, "好"), encoding="gb18030")
        == "问\n好\n".encode()
    )
