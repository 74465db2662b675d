"""Reading a results file: the verdict of each line, or why the line is skipped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from datasets.core.own_exports import JUDGEMENT_COLUMNS
from judging.core.results_file.records import NotResults, RefusedLine, records
from judging.core.results_file.verdicts import AnswerKey, FileVerdict, metric_summaries, verdicts

GOOD = {"line": 1, "model": "alpha", "judge": "gpt", "value": 7}


def read(path: Path) -> list[FileVerdict | RefusedLine]:
    kinds = {name: one.kind for name, one in metric_summaries(records(path)).items()}
    return list(verdicts(records(path), kinds))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results"


def lines(path: Path, *given: dict[str, Any] | str | bytes) -> list[FileVerdict | RefusedLine]:
    texts = [json.dumps(one) if isinstance(one, dict) else one for one in given]
    path.write_bytes(b"\n".join(one if isinstance(one, bytes) else one.encode() for one in texts))
    return read(path)


def one(path: Path, **changes: Any) -> FileVerdict:
    (found,) = lines(path, GOOD | changes)
    assert isinstance(found, FileVerdict), found
    return found


def refused(path: Path, **changes: Any) -> str:
    (found,) = lines(path, GOOD | changes)
    assert isinstance(found, RefusedLine), found
    return found.code


def test_what_a_line_leaves_out_has_its_default(path: Path) -> None:
    found = one(path)
    assert (found.metric, found.answer, found.other, found.repeat) == (
        "score",
        AnswerKey("alpha", 1),
        None,
        1,
    )
    assert (found.state, found.value, found.reason, found.reasoning) == ("scored", 7, "", "")


def test_every_field_is_read(path: Path) -> None:
    found = one(
        path,
        id="r-1",
        response=2,
        other_model="@reference",
        metric="better",
        value="A>>B",
        reasoning="clear",
        shown_first=2,
        drawn_with=0.25,
        repeat=3,
        at="2026-05-31T12:00:00+08:00",
        seconds=1.5,
        prompt_tokens=10,
        completion_tokens=20,
        cost=0.01,
    )
    assert (found.row, found.row_id, found.other) == (1, "r-1", AnswerKey("@reference", 1))
    assert (found.shown_first, found.drawn_with, found.repeat) == (2, 0.25, 3)
    assert (found.at, found.seconds, found.cost) == (1780200000.0, 1.5, 0.01)
    assert (found.prompt_tokens, found.completion_tokens) == (10, 20)


@pytest.mark.parametrize("judge", ["rules", "script", "combined"])
def test_a_program_is_a_source_of_its_own_kind(path: Path, judge: str) -> None:
    assert one(path, judge=judge).source_kind == judge


def test_a_rater_may_be_a_number(path: Path) -> None:
    found = one(path, judge=None, rater=17)
    assert (found.source_kind, found.source) == ("rater", "17")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"line": None}, "no_row_named"),
        ({"line": 0}, "not_whole"),
        ({"line": 1.5}, "not_whole"),
        ({"line": "1"}, "not_number"),
        ({"line": True}, "not_number"),
        ({"model": " "}, "no_model_named"),
        ({"model": ["alpha"]}, "not_text"),
        ({"response": 0}, "not_whole"),
        ({"judge": None}, "no_source"),
        ({"rater": "R1"}, "two_sources"),
        ({"judge": "j" * 301}, "text_too_long"),
        ({"metric": "m" * 201}, "text_too_long"),
        ({"value": None}, "no_value"),
        ({"value": [7]}, "value_type"),
        ({"value": float("nan")}, "value_not_finite"),
        ({"value": 10**400}, "value_not_finite"),
        ({"state": "lost"}, "unknown_state"),
        ({"state": "error"}, "value_beside_state"),
        ({"other_model": "beta"}, "not_a_comparison"),
        ({"other_model": "alpha"}, "same_answer"),
        ({"other_model": "beta", "value": "A=B", "shown_first": 3}, "not_whole"),
        ({"drawn_with": 0}, "number_out_of_range"),
        ({"drawn_with": 1.5}, "number_out_of_range"),
        ({"repeat": 40_000}, "not_whole"),
        ({"seconds": "long"}, "not_number"),
        ({"seconds": -1}, "number_out_of_range"),
        ({"at": "yesterday"}, "not_moment"),
        ({"min_score": 5, "max_score": 1}, "scale"),
    ],
)
def test_a_wrong_field_is_reported_by_a_code(path: Path, changes: dict[str, Any], code: str) -> None:
    assert refused(path, **changes) == code


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("{", "not_json"),
        ('{"a": 1}}', "not_json"),
        ("7", "not_object"),
        ('"text"', "not_object"),
        (b'{"model": "\xff"}', "not_utf8"),
        ("{" + '"a": [' * 100_000, "not_json"),
    ],
)
def test_a_line_that_is_no_object_takes_no_other_with_it(path: Path, line: str | bytes, code: str) -> None:
    first, wrong, last = lines(path, GOOD, line, GOOD | {"line": 2})
    assert wrong == RefusedLine(2, code)
    assert isinstance(first, FileVerdict)
    assert isinstance(last, FileVerdict)


def test_half_characters_and_nul_become_ones_that_can_be_stored(path: Path) -> None:
    (found,) = lines(
        path, '{"line": 1, "model": "a", "judge": "g", "value": 1, "reasoning": "\\ud800 \\u0000"}'
    )
    assert isinstance(found, FileVerdict)
    assert found.reasoning == "? \ufffd"


def test_blank_lines_and_unknown_fields_are_passed_over(path: Path) -> None:
    found = lines(path, GOOD | {"colour": "red"}, "", "  ", GOOD | {"line": 2})
    assert [one.line for one in found] == [1, 4]


def test_a_state_without_a_value_keeps_its_reason(path: Path) -> None:
    found = one(path, value=None, state="error", reason="timeout: after 60 s")
    assert (found.state, found.reason, found.detail) == ("error", "timeout", "after 60 s")


def test_a_reason_in_free_words_is_kept_as_words(path: Path) -> None:
    found = one(path, value=None, state="no_score", reason="The grader was ill.")
    assert (found.reason, found.detail) == ("elsewhere", "The grader was ill.")


def test_a_value_of_another_kind_than_most_of_its_metric_is_refused(path: Path) -> None:
    found = lines(path, GOOD | {"value": "bad"}, GOOD | {"line": 2}, GOOD | {"line": 3})
    assert [getattr(one, "code", "") for one in found] == ["other_kind_of_value", "", ""]


def test_true_is_no_number(path: Path) -> None:
    found = lines(path, GOOD, GOOD | {"line": 2}, GOOD | {"line": 3, "value": True})
    assert getattr(found[2], "code", "") == "other_kind_of_value"


def test_one_answer_does_not_fit_a_metric_that_compares_two(path: Path) -> None:
    pair = GOOD | {"other_model": "beta", "value": "A>B"}
    found = lines(path, pair, pair | {"line": 2}, GOOD | {"line": 3})
    assert getattr(found[2], "code", "") == "compares_not"


def test_metrics_are_judged_apart(path: Path) -> None:
    found = lines(path, GOOD, GOOD | {"metric": "label", "value": "good"})
    assert all(isinstance(one, FileVerdict) for one in found)


def table(path: Path, text: str, encoding: str = "utf-8") -> list[FileVerdict | RefusedLine]:
    path.write_bytes(text.encode(encoding))
    return read(path)


def test_a_table_says_the_same_as_lines_of_json(path: Path) -> None:
    (found,) = table(path, 'line,model,judge,value,reasoning\r\n1,alpha,gpt,7.5,"two\nlines"\r\n')
    assert isinstance(found, FileVerdict)
    assert (found.row, found.value, found.reasoning) == (1, 7.5, "two\nlines")


def test_rows_of_a_table_are_reported_by_their_first_line(path: Path) -> None:
    found = table(path, 'line,model,judge,value\n1,alpha,"g\npt",7\n2,,gpt,7\n')
    assert found[1] == RefusedLine(4, "no_model_named")


@pytest.mark.parametrize(("text", "value"), [("true", True), ("FALSE", False), ("1e1", 10.0), ("良", "良")])
def test_a_cell_is_read_as_what_it_looks_like(path: Path, text: str, value: object) -> None:
    (found,) = table(path, f"line,model,judge,value\n1,alpha,gpt,{text}\n")
    assert isinstance(found, FileVerdict)
    assert found.value == value


def test_a_cell_that_looks_like_a_number_is_a_category_among_categories(path: Path) -> None:
    found = table(path, "line,model,judge,value\n1,a,g,good\n2,a,g,bad\n3,a,g,3\n")
    assert isinstance(found[2], FileVerdict)
    assert found[2].value == "3"


OWN = ",".join(JUDGEMENT_COLUMNS) + ",judge,reasoning\n1,a,1,m,1,scored,1,,g,"


@pytest.mark.parametrize(
    ("start", "written", "text"),
    [
        (OWN, "'=2+2", "=2+2"),
        (OWN, "''=2", "'=2"),
        ("line,model,value,judge,reasoning\n1,a,1,g,", "'=2", "'=2"),
    ],
)
def test_one_apostrophe_before_a_formula_is_taken_off_in_our_own_tables(
    path: Path, start: str, written: str, text: str
) -> None:
    (found,) = table(path, f"{start}{written}\n")
    assert isinstance(found, FileVerdict)
    assert found.reasoning == text


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "gb18030"])
def test_a_table_may_come_as_spreadsheets_write_it(path: Path, encoding: str) -> None:
    (found,) = table(path, "line\tmodel\tjudge\tvalue\n1\t模型甲\t裁判\t7\n", encoding)
    assert isinstance(found, FileVerdict)
    assert (found.answer.model, found.source) == ("模型甲", "裁判")


def test_a_quotation_mark_that_is_not_closed_ends_the_reading(path: Path) -> None:
    found = table(path, 'line,model,judge,value\n1,a,g,1\n2,a,"g,1\n3,a,g,1\n')
    assert found[1:] == [RefusedLine(3, "not_csv")]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (b'[{"line": 1}]', "json_array"),
        (b"PK\x03\x04" + bytes(60), "other_kind"),
        (b"question,answer\nx,y\n", "no_columns"),
    ],
)
def test_a_file_that_holds_no_results_is_refused_whole(path: Path, content: bytes, code: str) -> None:
    path.write_bytes(content)
    with pytest.raises(NotResults) as refusal:
        read(path)
    assert refusal.value.code == code
