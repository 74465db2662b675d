"""Downloads contain every judgement with its details, in row order."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from datasets.models import Row, Version
from evalsite.accounts.models import Project
from judging.core.results import Failure, ScriptResult
from judging.filters.judgement_filter import Filters
from judging.records.models import Judgement, Run
from judging.reports.figures import FEW
from judging.runs import services
from judging.transfer.export.files import RECORD_BYTES, csv_lines, jsonl_lines, write_lines, xlsx_blocks
from judging.transfer.export.records import records
from tests.judging.judged import JUDGE_URL, a_judged_run, failed, judge, said
from tests.make import a_metric

pytestmark = pytest.mark.django_db
BEFORE, AFTER = "def preprocess(data): ...", "def postprocess(data): ..."
KEYS = (
    "line model response metric attempt state value reason row question answer reference preprocess judges "
    "postprocess steps rules flags"
)


def table(run: Run, **asked: Any) -> list[dict[str, str]]:
    text = b"".join(csv_lines(run, Filters(**asked))).decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text)))


def refuse(constant: str) -> None:
    raise AssertionError(constant)


def test_a_record_has_all_keys_whatever_happened(project: Project) -> None:
    run = a_judged_run(project, lambda place: [said(7), said(None), failed()][place % 3])
    assert all(" ".join(record) == KEYS for record in records(run))


def test_a_scored_record_shows_what_the_judge_was_asked_and_said(project: Project) -> None:
    record = next(records(a_judged_run(project, lambda _: said(7, reasoning="I compared."))))
    (judge,) = record["judges"]
    assert (record["value"], record["reason"], judge["verdict"], judge["name"]) == (7, None, 7, "judge")
    assert judge["request"]["messages"] == [{"role": "user", "content": "Judge this."}]
    assert judge["reply"] == {
        "content": "Because. Score: [[7]]",
        "reasoning_content": "I compared.",
        "finish_reason": "stop",
    }
    assert judge["tokens"] == {"prompt_tokens": 12, "completion_tokens": 34}
    assert (judge["calls"], judge["tries"][0]["status"]) == (1, 200)


def test_a_failed_record_says_why_and_has_no_value(project: Project) -> None:
    record = next(records(a_judged_run(project, lambda _: failed())))
    assert (record["state"], record["value"]) == ("error", None)
    assert record["reason"] == record["judges"][0]["error"] == "rate_limited: slow down"
    assert record["judges"][0]["reply"] is None


def test_scripts_results_changes_prints_and_errors_are_reported(project: Project) -> None:
    before = ScriptResult(result=1, changed={"data": {"extra": "seen"}}, printed="hello\n")
    after = ScriptResult(failure=Failure("script_exception", "KeyError: 'x' (line 3)"), line=3)
    metric = a_metric(JUDGE_URL, preprocess=BEFORE, postprocess=AFTER)
    result = said(7, scripts=(before, after))
    record = next(records(a_judged_run(project, lambda _: result, metric=metric)))
    changed = {"data": {"extra": "seen"}, "response": {}}
    assert record["preprocess"] == {"result": 1, "changed": changed, "printed": "hello\n", "error": None}
    assert record["postprocess"]["error"] == "script_exception: KeyError: 'x' (line 3)"


def test_the_steps_of_a_record_are_those_that_ran(project: Project) -> None:
    after = ScriptResult(result=7, printed="done\n")
    metric = a_metric(JUDGE_URL, postprocess=AFTER)
    record = next(records(a_judged_run(project, lambda _: said(6, scripts=(after,)), metric=metric)))
    keys = ["type", "name", "result", "changed", "printed", "error", "seconds"]
    assert [list(step) for step in record["steps"]] == [keys, keys]
    assert [[step["type"], step["name"], step["result"]] for step in record["steps"]] == [
        ["JUDGE_MODEL", "judge", 6],
        ["POSTPROCESS", None, 7],
    ]


def with_fields(run: Run, **fields: Any) -> Run:
    """The run, with these fields in all of its rows."""
    for row in Row.objects.filter(version=run.version):
        row.raw = json.dumps(json.loads(row.raw) | fields)
        row.save()
    Version.objects.filter(pk=run.version_id).update(fields_found=dict.fromkeys(fields, 3))
    return Run.objects.get(pk=run.pk)


OWN = {"id": "a-1", "category": "physics", "value": -1, "line": "=7", "question": "mine", "more": {"a": [1]}}


def test_a_record_holds_the_rows_own_fields_its_question_and_answer(project: Project) -> None:
    run = with_fields(a_judged_run(project), **OWN, ref_answer="42")
    record = json.loads(next(jsonl_lines(run)))
    assert record["row"] == OWN
    assert (record["question"], record["answer"], record["reference"], record["line"], record["value"]) == (
        "question 1",
        "alpha says 1.1",
        "42",
        1,
        1,
    )


def test_a_table_has_a_column_for_each_field_of_rows_and_none_hides_another(project: Project) -> None:
    row = table(with_fields(a_judged_run(project), **OWN, ref_answer="42"))[0]
    fields = {name: value for name, value in row.items() if name.startswith("row")}
    assert fields == {
        "row.id": "a-1",
        "row.category": "physics",
        "row.value": "-1",
        "row.line": "'=7",
        "row.question": "mine",
        "row.more": '{"a": [1]}',
    }
    assert (row["line"], row["value"], row["question"]) == ("1", "1", "question 1")


def test_fields_beyond_the_most_frequent_share_a_column(project: Project) -> None:
    fields = {f"f{number:03}": number for number in range(103)}
    row = table(with_fields(a_judged_run(project, rows=1), **fields))[0]
    assert (row["row.f099"], json.loads(row["row"])) == ("99", {"f100": 100, "f101": 101, "f102": 102})


def test_an_excel_file_begins_with_the_figures_of_the_report(project: Project) -> None:
    run = with_fields(a_judged_run(project), id="a-1")
    book = openpyxl.load_workbook(io.BytesIO(b"".join(xlsx_blocks(run))))
    report, judgements = book.worksheets
    assert (report.title, judgements.title) == ("Report", "Judgements")
    head, first, second = ([cell.value for cell in row] for row in report.iter_rows())
    figures = [dict(zip(head, row, strict=True)) for row in (first, second)]
    assert [(one["metric"], one["candidate"], one["mean"], one["scored"]) for one in figures] == [
        ("quality", "alpha", 3, 3),
        ("quality", "beta", 4, 3),
    ]
    assert judgements["I1"].value == "flags"
    assert (judgements.freeze_panes, judgements.max_row) == ("A2", 7)


def test_an_excel_file_of_a_large_run_says_if_its_figures_are_not_computed(project: Project) -> None:
    run = a_judged_run(project)
    Run.objects.filter(pk=run.pk).update(total=FEW + 1)
    run.refresh_from_db()
    report = openpyxl.load_workbook(io.BytesIO(b"".join(xlsx_blocks(run)))).worksheets[0]
    assert report["A1"].value == "The figures are being computed. Export again in a minute."


def test_records_come_in_the_order_of_rows_also_after_a_retry(project: Project) -> None:
    run = a_judged_run(project, lambda place: failed() if place == 1 else said(7))
    services.run_retry(run)
    again = judge(run, lambda _: said(8))
    found = [(one["line"], one["model"], one["attempt"]) for one in records(again)]
    assert found == [
        (1, "alpha", 1),
        (1, "beta", 2),
        (2, "alpha", 1),
        (2, "beta", 1),
        (3, "alpha", 1),
        (3, "beta", 1),
    ]


def test_every_attempt_is_reported_if_asked_for(project: Project) -> None:
    run = a_judged_run(project, lambda place: failed() if place == 1 else said(7))
    services.run_retry(run)
    again = judge(run, lambda _: said(8))
    assert [one["attempt"] for one in records(again, Filters(attempts="all", line=1))] == [1, 1, 2]


def test_a_filter_narrows_the_records(project: Project) -> None:
    run = a_judged_run(project, lambda place: said(place))
    assert [one["value"] for one in records(run, Filters(least=4.0))] == [4, 5]


def test_lines_are_strict_json_whatever_a_model_wrote(project: Project) -> None:
    reply = said(7, content="nul \0 half \ud83d [[7]]")
    run = a_judged_run(project, lambda _: reply, metric=a_metric(JUDGE_URL, preprocess=BEFORE), rows=1)
    Judgement.objects.filter(run=run).update(scripts='[{"result": NaN, "printed": "\\u0000 \\ud800 1e999"}]')
    for line in jsonl_lines(run):
        assert b"\0" not in line
        assert b"\\u0000" not in line
        assert b"\\ud8" not in line
        assert json.loads(line.decode("utf-8"), parse_constant=refuse)["preprocess"]["result"] is None


def test_no_line_is_over_two_mebibytes(project: Project) -> None:
    run = a_judged_run(project, lambda _: said(7, content="长" * 1_000_000), rows=1, models=("alpha",))
    (line,) = jsonl_lines(run)
    assert 2**18 < len(line) <= RECORD_BYTES
    assert json.loads(line)["value"] == 7


def test_big_integers_are_written_exactly(project: Project) -> None:
    run = a_judged_run(project, lambda _: said(9007199254740993), rows=1)
    assert b'"value": 9007199254740993,' in next(jsonl_lines(run))


def test_the_number_of_queries_grows_by_batches_only(project: Project) -> None:
    run = a_judged_run(project, rows=20)
    with CaptureQueriesContext(connection) as queries:
        assert len(list(records(run))) == 40
    assert len(queries) <= 9


def test_a_file_is_written_whole_and_leaves_no_draft(project: Project, tmp_path: Path) -> None:
    write_lines(jsonl_lines(a_judged_run(project)), tmp_path / "judgements.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["judgements.jsonl"]
    assert len((tmp_path / "judgements.jsonl").read_bytes().splitlines()) == 6


def test_a_table_begins_with_a_mark_for_excel(project: Project) -> None:
    assert next(csv_lines(a_judged_run(project))) == b"\xef\xbb\xbf"


def test_a_table_has_question_answer_and_the_judges_words(project: Project) -> None:
    row = table(a_judged_run(project))[0]
    assert (row["question"], row["answer"], row["reply_1"]) == (
        "question 1",
        "alpha says 1.1",
        "Because. Score: [[1]]",
    )


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1"])
def test_no_text_is_a_formula_in_a_spreadsheet(project: Project, text: str) -> None:
    run = a_judged_run(project, lambda _: said(text), rows=1)
    assert table(run)[0]["value"] == "'" + text


def test_a_negative_number_stays_a_number(project: Project) -> None:
    assert table(a_judged_run(project, lambda _: said(-2)))[0]["value"] == "-2"


def test_a_cell_is_cut_to_what_a_spreadsheet_holds(project: Project) -> None:
    run = a_judged_run(project, lambda _: said(7, content="x" * 50_000), rows=1)
    assert 30_000 < len(table(run)[0]["reply_1"]) < 32_767


def test_a_metric_that_asks_more_often_has_more_columns(project: Project) -> None:
    run = a_judged_run(project, metric=a_metric(JUDGE_URL, repeats=2), rows=1)
    assert list(table(run)[0])[-4:] == ["judge_2", "verdict_2", "reply_2", "reasoning_2"]


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_the_command_writes_what_the_page_sends(project: Project, tmp_path: Path, form: str) -> None:
    run = a_judged_run(project)
    call_command("export", run.name, format=form, out=tmp_path / "out")
    lines = jsonl_lines(run) if form == "jsonl" else csv_lines(run)
    assert (tmp_path / "out").read_bytes() == b"".join(lines)


def test_the_command_writes_an_excel_file(project: Project, tmp_path: Path) -> None:
    run = a_judged_run(project, lambda _: said("a\x01=b"))
    call_command("export", str(run.pk), format="xlsx", out=tmp_path / "out.xlsx")
    table = pd.read_excel(tmp_path / "out.xlsx", sheet_name="Judgements")
    assert list(table.columns[:3]) == ["line", "model", "response"]
    assert (len(table), table.iloc[0, 6]) == (6, "a\ufffd=b")


def test_the_command_writes_a_parquet_file_with_numbers_as_numbers(project: Project, tmp_path: Path) -> None:
    long = "x" * 40_000  # more than a spreadsheet cell can hold
    run = a_judged_run(project, lambda place: said(7, content=f"=[[7]]{long}") if place else failed())
    call_command("export", str(run.pk), format="parquet", out=tmp_path / "out.parquet")
    first, second = pd.read_parquet(tmp_path / "out.parquet").iloc[:2].to_dict("records")
    assert (first["line"], first["state"]) == (1, "error")
    assert (pd.isna(first["value"]), pd.isna(first["score"])) == (True, True)
    assert (second["value"], second["score"], second["reply_1"]) == ("7", 7.0, f"=[[7]]{long}")


def test_the_command_writes_older_attempts_if_asked(project: Project, tmp_path: Path) -> None:
    run = a_judged_run(project, lambda _: failed())
    services.run_retry(run)
    judge(run, lambda _: said(8))
    call_command("export", run.name, attempts="all", out=tmp_path / "out")
    assert len((tmp_path / "out").read_bytes().splitlines()) == 12


def test_the_command_says_if_there_is_no_such_run(db: None, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no run called nobody"):
        call_command("export", "nobody", out=tmp_path / "out")


def test_the_command_says_which_rows_the_file_does_not_hold(project: Project, tmp_path: Path) -> None:
    run = a_judged_run(project, lambda _: said(7))
    Run.objects.filter(pk=run.pk).update(bad_rows_left_out=3)
    found = io.StringIO()
    call_command("export", run.name, out=tmp_path / "out", stderr=found)
    assert found.getvalue() == "Excluded: 3 invalid rows.\n"
