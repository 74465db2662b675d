"""Whole files: encodings, kinds, formats, limits, and the warnings on a version."""

import codecs
import gzip
import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasets.core.limits import Limits
from datasets.core.reader import read
from datasets.core.variables import row_data
from datasets.messages import message
from tests.datasets.core.helpers import ANSWER, codes, found, jsonl, judged, row, rows, summary, turns

BINARY = bytes((number * number * 31 + number // 7) % 256 for number in range(60_000))
CHINESE = jsonl(row(name="参考答案,问题与回答"))


def ask(text: str, **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **fields}


def answered(text: str, **models: int) -> dict[str, Any]:
    outputs = [{"model_name": name, "responses": [{"content": "4"}] * n} for name, n in models.items()]
    return ask(text, model_outputs=outputs)


@pytest.mark.parametrize(
    ("source", "encoding", "counts"),
    [
        (CHINESE, "utf-8", {}),
        (codecs.BOM_UTF8 + CHINESE, "utf-8-sig", {}),
        (CHINESE.decode().encode("utf-16"), "utf-16", {"file.converted": 1}),
        (codecs.BOM_UTF16_BE + CHINESE.decode().encode("utf-16-be"), "utf-16", {"file.converted": 1}),
        (CHINESE.decode().encode("gb18030"), "gb18030", {"file.converted": 1}),
        (gzip.compress(CHINESE, mtime=0), "utf-8", {}),
        (CHINESE.replace(b"\n", b"\r\n"), "utf-8", {}),
    ],
)
def test_an_encoding_is_detected_from_the_bytes(source: bytes, encoding: str, counts: dict[str, int]) -> None:
    result = summary(source)
    assert (result.encoding, result.valid_rows, result.counts) == (encoding, 1, counts)


def test_lines_that_are_no_utf8_are_named_one_by_one() -> None:
    source = jsonl(row()) + b'{"a": "\xff"}\n' + jsonl(ask("b")) + b'{"\xe5\x90\x8d": "caf\xe9"}\n'
    assert [(one.line, one.column) for one in found(source, "file.encoding")] == [(2, 8), (4, 11)]
    assert (summary(source).rows, summary(source).valid_rows) == (4, 2)


def test_a_line_separator_inside_a_text_is_no_line_end() -> None:
    (only,) = rows(jsonl(row(note="a\u2028b\u0085c")))
    assert json.loads(only.data)["note"] == "a\u2028b\u0085c"


def test_the_hash_and_size_are_those_of_the_original_bytes() -> None:
    source = gzip.compress(CHINESE, mtime=0)
    result = summary(source)
    assert (result.sha256, result.bytes) == (hashlib.sha256(source).hexdigest(), len(source))


def _zip(name: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, "x")
    return file.getvalue()


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (_zip("xl/workbook.xml"), "spreadsheet"),
        (_zip("word/document.xml"), "document"),
        (_zip("rows.jsonl"), "archive"),
        (b"%PDF-1.7 ...", "pdf"),
        (b"\x89PNG\r\n\x1a\n", "image"),
        (b"\n<!DOCTYPE html><html>", "html"),
        (b"<?xml version='1.0'?>", "xml"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old_office"),
        (gzip.compress(gzip.compress(b"{}", mtime=0), mtime=0), "archive"),
        (b"<!-- saved -->\n<div>\n<p>one</p>\n</div>\n", "html"),
        (b"<!-- saved -->\n<rows>\n</rows>\n", "xml"),
        (b"RIFF\x24\x00\x00\x00WEBPVP8 ", "image"),
        (b"II*\x00\x08\x00\x00\x00", "image"),
        (b"\x00\x00\x00\x20ftypisom\x00\x00\x02\x00", "media"),
        (b"RIFF\x24\x00\x00\x00WAVEfmt ", "media"),
        (b"\x93NUMPY\x01\x00v\x00{'descr': '<f8'}", "numpy"),
        (BINARY, "binary"),
        (b'{"a": 1}\n' + BINARY, "binary"),
        (gzip.compress(BINARY, mtime=0), "binary"),
    ],
)
def test_another_kind_of_file_is_called_by_its_name(source: bytes, kind: str) -> None:
    (only,) = summary(source).findings
    assert (only.code, only.line, only.params["kind"]) == ("file.other_kind", None, kind)


@pytest.mark.parametrize(
    "source", [b"", b"\n \r\n", codecs.BOM_UTF8, b"[]", b"prompt,response\n", gzip.compress(b"", mtime=0)]
)
def test_a_file_without_rows_is_empty(source: bytes) -> None:
    assert (summary(source).counts, summary(source).rows) == ({"file.empty": 1}, 0)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (jsonl(row(), ask("b")), "infer_and_judge"),
        (jsonl(judged(), judged(), row()), "judge_only"),
        (jsonl(judged(), row()), "judge_only"),
        (jsonl(judged(), row(), row()), "infer_and_judge"),
        (jsonl(turns(), turns(), row()), "legacy_jsonl"),
        (b"Response, PROMPT \nfour,how many?\n", "legacy_csv"),
        (b"hello\nworld\n", None),
        (jsonl({"a": 1}, {"b": 2}), None),
        (b"a,b\n1,2\n", None),
    ],
)
def test_the_format_is_detected_from_the_content(source: bytes, name: str | None) -> None:
    assert summary(source).format == name


@pytest.mark.parametrize("source", [CHINESE.decode().encode("gb18030") * 300, b"\x01" * 20 + CHINESE])
def test_text_is_no_binary_file(source: bytes) -> None:
    assert "file.other_kind" not in codes(source)


@pytest.mark.parametrize(
    "source",
    [
        jsonl({"a": 1}, {"b": 2}),
        b"a,b\n1,2\n",
        b"hello\n",
        b"# Title\n\nSome text.\n",
        b"// code\nlet x = 1\n" * 9,
    ],
)
def test_a_file_of_no_format_has_one_finding(source: bytes) -> None:
    assert codes(source) == {"file.unknown_format": 1}


def test_a_format_may_be_forced() -> None:
    assert summary(jsonl(row()), format="judge_only").counts == {"model_outputs.missing": 1}


@pytest.mark.parametrize(
    "source",
    [
        json.dumps([judged(), judged(id=1)]).encode(),
        json.dumps([judged(), judged(id=1)], indent=2).encode(),
        b"[\n" + json.dumps(judged()).encode() + b",\n" + json.dumps(judged()).encode() + b"\n]\n",
        b"\n".join(json.dumps(judged(id=i), indent=1).encode() for i in (1, 2)),
        b",\n".join(json.dumps(judged(id=i), indent=1).encode() for i in (1, 2)),
    ],
)
def test_json_that_is_no_jsonl_is_described_by_its_objects(source: bytes) -> None:
    result = summary(source)
    assert (result.counts, result.format, result.rows, result.valid_rows) == (
        {"file.not_jsonl": 1},
        "judge_only",
        2,
        0,
    )


PRINTED = json.dumps(judged(id=1), indent=1)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (PRINTED.replace('"id"', "'id'"), PRINTED[: PRINTED.index('"id"')].count("\n") + 1),
        (PRINTED.replace("],", "]", 1), PRINTED[: PRINTED.index("],")].count("\n") + 2),
        (PRINTED[:-6], PRINTED.count("\n")),
        ('{\n"messages": [\n{"role": "user", "content": "?"}\n]\n"model_outputs": []\n}', 5),
    ],
)
def test_one_printed_object_that_is_broken_is_reported_as_such(source: str, line: int) -> None:
    result = summary(source.encode())
    assert (result.counts, result.rows) == ({"file.not_jsonl": 1, "json.invalid": 1}, 1)
    assert (result.findings[1].line, result.findings[1].params["reason"]) == (line, "spread")


def test_comments_over_several_lines_are_passed_over() -> None:
    source = f"/* of\n{{ */{PRINTED}/* and\n*/{PRINTED}\n"
    assert (codes(source.encode()), summary(source.encode()).rows) == ({"file.not_jsonl": 1}, 2)


@pytest.mark.parametrize("cut", ['{"messages": [', '{"messages": [{"role": "user"', '{"id": 1,'])
def test_a_cut_row_between_whole_ones_is_only_broken_json(cut: str) -> None:
    source = jsonl(row(), cut, ask("b"), ask("c"))
    assert (codes(source), summary(source).valid_rows) == ({"json.invalid": 1}, 3)


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (Limits(file_bytes=100), "file.too_large"),
        (Limits(rows=1), "file.too_many_rows"),
        (Limits(row_bytes=60), "row.too_large"),
    ],
)
def test_a_limit_is_a_finding(limits: Limits, code: str) -> None:
    source = jsonl(row(), ask("b" * 80))
    result = summary(source, limits)
    assert code in result.counts
    assert result.valid_rows == 1


@pytest.mark.parametrize(
    "lines",
    [
        [jsonl(ask(str(i) * 9)) for i in range(5000)],
        [b"prompt,response\n", *(f"question {i},answer {i * i}\n".encode() for i in range(5000))],
    ],
    ids=["jsonl", "csv"],
)
def test_a_cut_gzip_gives_the_rows_before_the_cut(lines: list[bytes]) -> None:
    result = summary(gzip.compress(b"".join(lines))[:-2000])
    assert result.counts["file.encoding"] == 1
    assert 0 < result.valid_rows < 5000


def test_what_was_read_of_a_csv_before_a_limit_is_counted() -> None:
    result = summary(b"prompt,response,note\n" + b"a,b,c\n" * 5, Limits(rows=3))
    assert (result.rows, result.fields, result.counts["row.duplicate"]) == (3, {"note": 3}, 2)


def test_a_bomb_stops_at_the_limit() -> None:
    bomb = gzip.compress(b" " * 30_000_000, mtime=0)
    assert "file.too_large" in summary(bomb, Limits(unpacked_bytes=1_000_000, row_bytes=10_000)).counts


def test_a_small_file_that_unpacks_to_hundreds_of_times_its_size_is_called_a_bomb() -> None:
    bomb = gzip.compress(bytes(3_000_000), mtime=0)
    too_large, *_ = summary(bomb, Limits(small_gzip_bytes=1_000_000, row_bytes=10_000)).findings
    assert (too_large.code, too_large.params["unpacked"]) == ("file.too_large", "bomb")
    assert "hundreds of times its size" in message(too_large)


@pytest.mark.parametrize(
    ("source", "code", "params"),
    [
        (
            jsonl(answered("a", **{"Qwen-3": 1, "lark": 1}), answered("b", qwen3=1, lark=1)),
            "model_name.alike",
            {"names": "Qwen-3 (1), qwen3 (1)", "number": 2},
        ),
        (
            jsonl(answered("a", lark=1), answered("b", lark=1, wren=1)),
            "model.coverage",
            {"model": "wren", "absent": 1, "rows": 2},
        ),
        (
            jsonl(answered("a", lark=1), answered("b", lark=2)),
            "model.uneven_n",
            {"model": "lark", "fewest": 1, "most": 2},
        ),
        (
            jsonl(ask("a", ref_answer="4"), ask("b", ref_answer=None)),
            "ref_answer.some_missing",
            {"missing": 1, "rows": 2},
        ),
        (jsonl(ask("a", gt=1), ask("b", gt=2)), "field.shadowed", {"name": "gt", "rows": 2}),
        (
            jsonl(ask("a", n=1), ask("b", n="1"), ask("c", n=None)),
            "field.type_varies",
            {"name": "n", "types": "string, number"},
        ),
    ],
)
def test_a_warning_on_the_version_is_on_no_line(source: bytes, code: str, params: dict[str, Any]) -> None:
    (only,) = found(source, code)
    assert (only.line, only.severity, only.params) == (None, "warning", params)


def test_repeated_ids_and_rows_name_the_first_of_them() -> None:
    source = jsonl(ask("a", id=1), ask("b", id="1"), ask("a", id=2), ask("c", id=1), ask("a"))
    assert [(one.line, one.params["first"]) for one in found(source, "row.duplicate")] == [(3, 1), (5, 1)]
    assert [(one.line, one.params["first"]) for one in found(source, "id.duplicate")] == [(4, 1)]


def test_faulty_rows_count_for_warnings_on_the_version() -> None:
    source = jsonl(answered("a", lark=1), {**answered("b", wren=1), "messages": []})
    assert codes(source)["model.coverage"] == 2


def test_null_is_no_type_and_no_id() -> None:
    assert codes(jsonl(ask("a", id=None, n=1), ask("b", id=None, n=None))) == {}


def test_fields_and_models_are_counted_by_row() -> None:
    result = summary(jsonl(answered("a", lark=2) | {"x": 1}, answered("b", lark=2) | {"ref_answer": None}))
    assert result.models == {"lark": {"rows": 2, "responses": 4}}
    assert result.fields == {"x": 1, "ref_answer": 1}


def test_the_system_text_is_a_field_unless_the_file_is_legacy() -> None:
    assert summary(jsonl(row(system="x"))).fields == {"system": 1}
    assert summary(jsonl(turns(system="x", id=1))).fields == {"id": 1}


CSV_CASES = [
    (b"prompt\nhow?\n", "csv.header", 1, "response"),
    (b"prompt,response,prompt\na,b,c\n", "csv.header", 1, "prompt"),
    (b"\nprompt,response,note\na,b,c\n", "csv.extra_column", 2, "note"),
    (b"prompt,response\na,b\n\nc\n", "csv.columns", 4, None),
    (b"prompt,response\na,b,c\n", "csv.columns", 2, None),
    (b'prompt,response\na,b\nc,"d\ne,f\n', "csv.quote", 3, None),
    (b'prompt,response\n"a\nb",c\n ,d\n', "prompt.blank", 4, "prompt"),
    (b"prompt,Response\na,\n", "response.blank", 2, "Response"),
    (b"prompt,response\na,b\x00\n", "json.nul", 2, "response"),
]


@pytest.mark.parametrize(("source", "code", "line", "path"), CSV_CASES)
def test_a_fault_in_a_csv_is_named_where_it_is(source: bytes, code: str, line: int, path: str | None) -> None:
    assert [(one.code, one.line, one.path) for one in summary(source).findings] == [(code, line, path)]


def test_what_is_wrong_with_a_csvs_header_is_reported_at_its_line() -> None:
    broken = found(b"\xff,prompt,response\n1,a,b\n", "file.encoding")
    assert [(one.line, one.column, one.params["met"]) for one in broken] == [(1, 1, "0xFF")]
    assert codes(b"prompt,response,x\0\na,b,c\n") == {"csv.extra_column": 1, "json.nul": 1}
    assert summary(b"prompt,response,x\0\na,b,c\n").valid_rows == 0
    (endless,) = found(b'prompt,response,"x\n1,2,3\n4,5,6\n', "csv.quote")
    assert (endless.line, endless.column, endless.params) == (1, 17, {"more": 0})


def test_a_csvs_header_that_is_too_long_is_reported_once_and_no_row_for_it() -> None:
    source = b"prompt,response," + b"x" * 200 + b"\n" + b"a,b,c\n" * 3
    result = summary(source, Limits(row_bytes=100), format="legacy_csv")
    assert (result.counts, result.rows, result.valid_rows) == ({"row.too_large": 1}, 3, 0)


@pytest.mark.parametrize("name", ["model_outputs", "messages", "conversation"])
def test_a_csvs_column_is_a_field_whatever_it_is_called(name: str) -> None:
    source = f"prompt,response,{name}\na,b,c\n".encode()
    assert codes(source) == {"csv.extra_column": 1}
    (only,) = rows(source)
    assert (json.loads(only.data)[name], only.responses) == ("c", ())
    (kept,) = [one for part, _ in read(io.BytesIO(source)).parts(lambda: None) for one in part]
    assert json.loads(kept.raw)[name] == "c"
    data = row_data(only.data, "legacy_csv")
    assert data["messages"][0] == {"role": "user", "content": "a"}
    assert name == "messages" or data[name] == "c"


def test_an_empty_id_is_not_the_number_nought() -> None:
    assert "id.duplicate" not in codes(jsonl(row(id=""), row(id=0) | ask("other")))
    assert codes(jsonl(row(id=""), row(id="") | ask("other"))) == {"id.duplicate": 1}


def test_bytes_that_are_no_text_are_reported_in_a_printed_file_too() -> None:
    source = b'[\n{"messages": [{"role": "user", "content": "\xff"}]}\n]'
    assert codes(source) == {"file.not_jsonl": 1, "file.encoding": 1}
    (only,) = found(source, "file.encoding")
    assert (only.line, only.column) == (2, 44)


@pytest.mark.parametrize("source", [b"[]", b"[\n]", b"[\n\n  ]\n"])
def test_an_array_of_nothing_is_empty(source: bytes) -> None:
    assert "file.empty" in codes(source)


def test_a_quote_that_never_ends_is_kept_out_of_memory_and_named_with_its_column() -> None:
    source = b'prompt,response\na,"' + b"x\n" * 5000
    result = summary(source, Limits(row_bytes=100))
    (quote,) = (one for one in result.findings if one.code == "csv.quote")
    assert (quote.line, quote.column) == (2, 3)
    assert result.counts == {"csv.quote": 1, "csv.columns": 4_999}  # what follows is read from the next line


def test_extra_columns_become_fields_and_quotes_are_undone() -> None:
    (only,) = rows(b'prompt,response,id\r\n"a ""b"",\r\nc",d,7\r\n')
    assert json.loads(only.data) == {"prompt": 'a "b",\r\nc', "response": "d", "id": "7"}


def test_custom_fields_come_through_byte_for_byte() -> None:
    text = '{"z": 1.50,  "messages": [{"role":"user","content":"?"}], "big": 123456789012345678901234567890, "a": "\\u00e9"}'  # noqa: E501
    (only,) = rows(jsonl(text))
    assert only.data == text
    (with_answers,) = rows(
        jsonl(text[:-1] + ', "model_outputs": [{"model_name": "m", "responses": [{"content": "4"}]}]}')
    )
    assert with_answers.data == text


def test_responses_come_out_one_by_one_as_they_are() -> None:
    outputs = [ANSWER, {"model_name": "wren", "responses": [{"content": "4", "x": 1.0}, {"content": "5"}]}]
    (only,) = rows(jsonl(judged(model_outputs=outputs)))
    assert [(name, index) for name, index, _ in only.responses] == [("lark", 1), ("wren", 1), ("wren", 2)]
    assert only.responses[1][2] == '{"content": "4", "x": 1.0}'
    assert "model_outputs" not in json.loads(only.data)


def test_a_path_is_read_like_a_stream_and_closed(tmp_path: Path) -> None:
    file = tmp_path / "rows.txt"
    file.write_bytes(CHINESE)
    with read(file) as reading:
        assert [one.line for one in reading] == [1]
    assert reading.summary.valid_rows == 1


@settings(max_examples=150, deadline=None)
@given(
    st.binary(max_size=300)
    | st.text(alphabet="{}[]\",:'/#\\u0d8 \nmessagesroleuserprompt,response", max_size=200).map(str.encode)
)
def test_any_bytes_give_a_report(source: bytes) -> None:
    result = summary(source)
    assert result.valid_rows <= result.rows


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_called_gzip_give_a_report(source: bytes) -> None:
    assert summary(b"\x1f\x8b\x08" + source).errors


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), min_size=1, max_size=5))
def test_what_is_written_as_csv_reads_back_equal(pairs: list[tuple[str, str]]) -> None:
    clean = [
        (
            p.replace("\0", "").encode("utf-8", "ignore").decode() + "x",
            r.encode("utf-8", "ignore").decode() + "y",
        )
        for p, r in pairs
    ]
    clean = [(p, r.replace("\0", "")) for p, r in clean]
    quoted = ['"' + p.replace('"', '""') + '","' + r.replace('"', '""') + '"' for p, r in clean]
    source = ("prompt,response\n" + "\n".join(quoted)).encode()
    read_back = [json.loads(one.data) for one in rows(source)]
    assert [(one["prompt"], one["response"]) for one in read_back] == clean


def test_a_row_with_very_many_findings_is_counted_whole() -> None:
    assert codes(jsonl(row(messages=[1] * 7000))) == {"message.not_object": 7000}
