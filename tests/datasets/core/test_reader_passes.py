"""Files are examined in one pass. The result does not depend on the file's beginning."""

import io
import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasets.core.limits import Limits
from datasets.core.reader import UploadReading, read
from datasets.core.rows import findings_of
from tests.datasets.core.helpers import ANSWER, BLOCK, jsonl, judged, many, row, rows, summary, turns


def test_a_majority_that_comes_late_decides_the_format() -> None:
    source = many(judged()) + many(row(), BLOCK // 400)
    result = summary(source)
    assert (result.format, result.counts["file.mixed_formats"]) == ("infer_and_judge", BLOCK // 1000)


def test_a_late_family_in_the_minority_is_mixed() -> None:
    result = summary(many(turns(), BLOCK // 400) + many(row()))
    assert (result.format, result.counts["file.mixed_formats"]) == ("legacy_jsonl", BLOCK // 1000)


def test_a_late_byte_that_is_no_utf8_makes_the_file_gb18030() -> None:
    source = many(row()) + json.dumps(row(name="问题"), ensure_ascii=False).encode("gb18030")
    assert summary(source).encoding == "gb18030"
    assert json.loads(rows(source)[-1].data)["name"] == "问题"


def test_a_late_line_that_is_in_no_encoding_is_named_alone() -> None:
    result = summary(many(row()) + b'{"a": "\xff"}\n')
    assert (result.encoding, result.counts["file.encoding"]) == ("utf-8", 1)
    assert result.rows == result.valid_rows + 1


def test_bytes_that_are_no_utf8_in_a_field_that_nobody_reads_are_found() -> None:
    answer = json.dumps({**ANSWER, "responses": [{"content": "4", "extra": "?"}]})
    good = jsonl(judged(), judged(id=1))
    source = good + good.replace(json.dumps(ANSWER).encode(), answer.encode()).replace(b'"?"', b'"\xff"')
    assert summary(source).counts["file.encoding"] == 2


def test_an_object_that_is_spread_after_many_rows_is_noticed() -> None:
    result = summary(many(row()) + json.dumps(row(), indent=1).encode())
    assert (result.counts, result.rows) == ({"file.not_jsonl": 1}, BLOCK // 1000 + 1)


def test_the_summary_may_be_asked_before_the_rows_and_the_rows_twice() -> None:
    reading = read(io.BytesIO(jsonl(row(), "x", row(id=1))))
    assert reading.summary.rows == 3
    assert [one.valid for one in reading] == [one.valid for one in reading] == [True, False, True]


def test_a_path_is_opened_again_for_its_rows(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes(b"prompt,response\na,b\nc\n")
    reading = read(file)
    assert reading.summary.valid_rows == 1
    assert [(one.line, one.valid) for one in reading] == [(2, True), (3, False)]


def test_progress_grows_to_the_whole() -> None:
    reported: list[int] = []
    source = many(judged()) + many(row(), BLOCK // 400)
    for _ in read(io.BytesIO(source), progress=lambda done, whole: reported.append(done)):
        pass
    assert reported == sorted(reported)
    assert reported[-1] == len(source)


@pytest.mark.parametrize("source", [many(judged()), many(judged()) + many(row(), BLOCK // 400)])
def test_progress_is_at_its_half_when_the_first_row_comes(source: bytes) -> None:
    reported: list[int] = []
    next(iter(read(io.BytesIO(source), progress=lambda done, whole: reported.append(done))))
    assert 0 < reported[-1] <= len(source) // 2


def test_rows_stop_where_the_file_has_too_many() -> None:
    reading = read(io.BytesIO(jsonl(row(), row(id=1), row(id=2))), limits=Limits(rows=2))
    assert [one.line for one in reading] == [1, 2]
    assert reading.summary.counts["file.too_many_rows"] == 1


CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
PARTS = {"role": "user", "content": [{"type": "text", "text": "a"}]}
BLANK = {"role": "user", "content": " "}
NAMED = {"role": "user", "content": "a", "name": "b"}
FAULTY: list[Any] = [
    7,
    {"role": "bot", "content": "a"},
    {"role": ["user"], "content": "a"},
    {"content": []},
    {"role": "user", "content": [7]},
    {"role": "system"},
]
messages = st.lists(
    st.sampled_from(
        [
            {"role": "user", "content": "a"},
            {"role": "tool", "content": "b"},
            CALL,
            PARTS,
            NAMED,
            BLANK,
            *FAULTY,
        ]
    ),
    max_size=3,
)
fields = st.dictionaries(
    st.sampled_from(["id", "ref_answer", "x", "y", "gt"]), st.sampled_from([1, "1", None, [1]])
)
FAULTY_ANSWERS: list[Any] = [
    {"content": " ", "reasoning_content": 1},
    {"content": 7},
    {"usage": {"a": 1}},
    {"content": None, "tool_calls": [{"id": "1"}]},
    "x",
]
answers = st.lists(st.sampled_from([{"content": "Four."}, *FAULTY_ANSWERS]), max_size=2)
outputs = st.sampled_from(
    [[ANSWER], [ANSWER, {**ANSWER, "model_name": "wren"}], [ANSWER, ANSWER], [], 7, [7, {"responses": {}}]]
) | st.lists(
    st.fixed_dictionaries(
        {"model_name": st.sampled_from(["lark", "wren", "finch", " ", 7]), "responses": answers}
    ),
    max_size=2,
)


@st.composite
def any_row(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from(["row", "judged", "judged", "turns", "broken"]))
    if kind == "broken":
        return draw(st.sampled_from(["", " ", "{", "[1]", "// x", '{"a": 1,}', '{"x": 1, "x": 2}']))
    made = turns() if kind == "turns" else {"messages": draw(messages)}
    if kind == "judged":
        made["model_outputs"] = draw(outputs)
    if draw(st.integers(0, 9)) == 0:
        made |= draw(st.sampled_from([turns(), {"messages": []}]))
    return {**made, **draw(fields)}


@settings(max_examples=150, deadline=None)
@given(st.lists(any_row(), min_size=1, max_size=12), st.integers(0, 2))
def test_what_nobody_will_read_is_counted_like_what_is_kept(many_rows: list[Any], kept: int) -> None:
    source = jsonl(*many_rows)
    all_of_it, few = read(io.BytesIO(source)), read(io.BytesIO(source), kept_per_code=kept)
    wanted, repairs, seen = Counter[str](), Counter[tuple[str, str | None]](), []
    for one in all_of_it.summary.findings:
        wanted[one.code] += 1
        repairs[one.code, one.repair] += 1
        first_to_repair = one.repair is not None and repairs[one.code, one.repair] == 1
        seen += [one] if wanted[one.code] <= kept or first_to_repair else []
    assert list(few.summary.findings) == seen
    assert asdict(few.summary) | {"findings": ()} == asdict(all_of_it.summary) | {"findings": ()}
    assert _lines(few) == _lines(all_of_it)
    assert [row.valid for row in few] == [row.valid for row in all_of_it]


def _lines(reading: UploadReading) -> dict[str, list[tuple[int, bytes]]]:
    return {code: list(lines.blocks()) for code, lines in reading.lines.items()}


@settings(max_examples=60, deadline=None)
@given(any_row().filter(lambda made: isinstance(made, dict)), st.sampled_from([49_000, 60_000, 120_000]))
def test_a_long_row_is_treated_like_a_short_one(made: dict[str, Any], length: int) -> None:
    parts = [{"type": "text", "text": "a" * length, "x": 1}, {"type": "text", "text": "b"}]
    for longer in ({**made, "filler": "x" * length}, {**made, "system": {"x": "x" * length}}):
        short = {**longer, list(longer)[-1]: "s"} if "filler" in longer else {**longer, "system": {"x": 1}}
        assert _codes_and_paths(longer) == _codes_and_paths(short)
    if made.get("messages"):
        spoken = {"role": "user", "content": parts}
        long_row = {**made, "messages": [*made["messages"], spoken, 7]}
        short_row = {**made, "messages": [*made["messages"], PARTS, 7]}
        assert _codes_and_paths(long_row) == _codes_and_paths(short_row)


def _codes_and_paths(made: dict[str, Any]) -> list[tuple[str, str | None]]:
    """(code, path) of each finding in a judge-only row."""
    return [(one.code, one.path) for one in findings_of(1, json.dumps(made), "judge_only")]


def test_columns_in_a_long_row_are_those_of_the_text() -> None:
    faulty = [{"role": "user", "content": "x" * 60_000}, 7, {"role": "bot", "content": "a"}, [], 8]
    text = json.dumps({"messages": faulty})
    found = findings_of(1, text, "infer_and_judge")
    places = [text[one.column - 1 :] for one in found if one.column]
    assert [place[:2] for place in places] == ["7,", '"b', "[]", "8]"]


def test_a_role_that_is_a_list_is_a_finding_like_others() -> None:
    source = jsonl({"messages": [{"role": ["user"], "content": "a"}]}, row())
    assert summary(source).counts == {"role.unknown": 1}
