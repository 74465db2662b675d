"""The `import_dataset` command, and `import_results` with a file of another tool."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from datasets.core.imports.model import SourceFile
from datasets.core.imports.registry import recognise
from datasets.importing.worker import import_or_wait
from datasets.models import Row, Version
from datasets.versions.file_import import draft_of_files, import_commit
from evalsite.accounts.models import Project, User
from evalsite.tasks import jobs
from judging.records.models import IMPORTED, Run
from judging.reports.services import report_document
from judging.transfer.results_import.models import ResultsImport, ResultsImportState
from judging.transfer.results_import.tool_files import page_of_verdicts
from tests import mtbench
from tests.conftest import ClientOf
from tests.datasets.core.imports import fastchat
from tests.datasets.core.imports.inspect_logs import archive, log, sample
from tests.datasets.core.imports.reading import lines
from tests.judging.importing import imports
from tests.real_data import real_data

pytestmark = pytest.mark.django_db
SHAPE = (
    "dataset version format source encoding rows valid_rows models answers references fields verdicts run "
    "findings left_out"
)
Summary = dict[str, Any]


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def take(*files: Path, **options: str) -> tuple[Summary, int, str]:
    """Run `import_dataset --json`; return its document, exit status and error message."""
    out = StringIO()
    try:
        call_command("import_dataset", *map(str, files), json=True, stdout=out, **options)
    except CommandError as error:
        return json.loads(out.getvalue() or "{}"), error.returncode, str(error)
    return json.loads(out.getvalue()), 0, ""


def test_another_tool_s_file_is_a_data_set_and_an_imported_run(tmp_path: Path) -> None:
    summary, status, _said = take(
        written(tmp_path, "log.eval", archive(log(sample(), sample("s2")))), name="demo"
    )
    assert (" ".join(summary), status) == (SHAPE, 0)
    told = "A key or column that is not imported, with the number of records that hold it. (events × 2)"
    assert summary["findings"] == []
    assert f"log.eval: {told}" in [one["message"] for one in summary["left_out"]]
    figures = "dataset version format source rows valid_rows models answers verdicts"
    assert [summary[one] for one in figures.split()] == [
        *("demo", 1, "judge_only", "inspect", 2, 2),
        *(["openai/gpt-x"], 2, 2),
    ]
    run = Run.objects.get(pk=summary["run"])
    assert (run.kind, run.name, run.version.origin) == (IMPORTED, "demo", "import")
    assert report_document(run)["candidates"]["openai/gpt-x"]["match"]["mean"] == 1.0


def test_the_same_file_again_is_a_further_version_with_a_run_of_its_own(tmp_path: Path) -> None:
    path = written(tmp_path, "log.json", json.dumps(log(sample())))
    (first, _, _), (second, _, _) = take(path), take(path)
    assert (second["dataset"], second["version"]) == (first["dataset"], 2)
    assert Run.objects.get(pk=second["run"]).name == "log v2"


def test_a_table_s_columns_may_be_chosen(tmp_path: Path) -> None:
    table = written(tmp_path, "table.csv", "a,b,c\nWhy?,So.,Because.\nWho?,Me.,You.\n")
    summary, status, _said = take(table, columns="question=a,reference=b,answer:gpt=c")
    assert (status, summary["source"], summary["models"], summary["verdicts"], summary["run"]) == (
        0,
        "table",
        ["gpt"],
        0,
        None,
    )
    assert json.loads(Row.objects.get(line=1).raw)["ref_answer"] == "So."


def test_a_table_without_verdicts_makes_no_run(tmp_path: Path) -> None:
    summary, status, _said = take(written(tmp_path, "table.csv", "question,answer\nWhy?,So.\n"))
    assert (status, summary["rows"], summary["run"]) == (0, 1, None)


def test_a_file_in_a_format_of_ours_is_an_ordinary_upload(tmp_path: Path) -> None:
    summary, status, _said = take(
        written(tmp_path, "own.jsonl", lines({"messages": [{"role": "user", "content": "Hi"}]}))
    )
    assert (status, summary["source"], summary["format"], summary["valid_rows"]) == (
        0,
        "native",
        "infer_and_judge",
        1,
    )


MISSPELT = {"mesages": [{"role": "user", "content": "Hi"}], "model_ouputs": {"lark": "Hello"}}
NAMED = {"messages": [{"role": "user", "content": "Hi"}], "model_outputs": {"lark": "Hello", "wren": "Hey"}}


@pytest.mark.parametrize(("row", "repair"), [(MISSPELT, "rename_key"), (NAMED, "model_outputs_to_list")])
def test_a_file_that_only_needs_a_repair_is_described_with_it(
    tmp_path: Path, row: dict[str, Any], repair: str
) -> None:
    summary, status, _said = take(written(tmp_path, "own.jsonl", lines(row, row)))
    assert (status, summary["source"], summary["rows"], summary["valid_rows"]) == (1, "native", 2, 0)
    assert repair in [one["repair"] for one in summary["findings"]]


def test_what_is_left_out_is_listed_with_its_reason(tmp_path: Path) -> None:
    failed = sample("s2", output={"choices": []}, error={"message": "timeout"}, scores=None)
    summary, _status, _said = take(written(tmp_path, "log.json", json.dumps(log(sample(), failed))))
    found = {one["code"]: one for one in summary["left_out"]}
    assert set(found) == {"no_answer", "row_without_answer", "key_unread"}
    assert list(found["no_answer"]) == ["line", "code", "message"]
    assert (found["no_answer"]["line"], "timeout" in found["no_answer"]["message"]) == (2, True)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("notes.txt", "One column of text.\nNothing else.\n"),
        ("empty.json", ""),
        ("log.eval", b"PK\x03\x04 broken"),
        ("broken.json", '{"version": 2, "status": "success", "eval": {"task": "x"}, "samples": [}'),
        ("table.xlsx", b"PK\x03\x04xl/workbook.xml"),
    ],
)
def test_a_file_that_nothing_can_be_made_of_is_refused_in_a_sentence(
    tmp_path: Path, name: str, content: str | bytes
) -> None:
    summary, status, said = take(written(tmp_path, name, content))
    assert (summary.get("valid_rows", 0), status) == (0, 1)
    assert said.strip().endswith(".")


@pytest.mark.parametrize("content", [b"\n \n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n\n", b"\xff\xfe"])
def test_a_file_of_blank_lines_or_a_byte_order_mark_is_empty(tmp_path: Path, content: bytes) -> None:
    _summary, status, said = take(written(tmp_path, "blank.csv", content))
    assert (status, "“blank.csv” is empty" in said) == (1, True)


def test_a_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    _summary, status, said = take(written(tmp_path, "table.csv", "a,b\n1,2\n"), columns="question=z")
    assert (status, "z" in said) == (1, True)


def test_a_path_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    _summary, status, said = take(tmp_path / "missing.jsonl")
    assert (status, "missing.jsonl" in said) == (2, True)


def test_verdicts_of_files_that_came_by_the_browser_wait_for_a_worker(
    project: Project, bob: User, client_of: ClientOf, tmp_path: Path
) -> None:
    path = written(tmp_path, "log.json", json.dumps(log(sample())))
    source = recognise([SourceFile.of(path)])
    assert source is not None
    with path.open("rb") as file:
        draft = draft_of_files(
            project=project, name="", named_files=[(file, path.name)], source=source, user=None
        )
    version = import_or_wait(import_commit(draft=draft, user=None).pk)
    waiting = ResultsImport.objects.get(version=version)
    assert (waiting.state, waiting.name, waiting.run) == (ResultsImportState.IMPORTING, "log", None)
    assert page_of_verdicts(version) == reverse("runs:results_import", args=[project.slug, waiting.pk])
    jobs.run("import_results", waiting.pk)
    waiting.refresh_from_db()
    assert waiting.run is not None
    assert (waiting.state, waiting.run.total) == (ResultsImportState.DONE, 1)
    page = reverse("datasets:version", args=[project.slug, version.dataset_id, version.number])
    shown = client_of(bob).get(page).content.decode()
    assert f'href="{reverse("runs:detail", args=[project.slug, waiting.run.pk])}">with 1 score</a>' in shown


def test_import_results_takes_a_file_of_another_tool(tmp_path: Path) -> None:
    """Rows are matched by their question, in any order."""
    rows = [
        {
            "messages": [{"role": "user", "content": f"Question {name}?"}],
            "model_outputs": [{"model_name": "openai/gpt-x", "responses": [{"content": "answer 1"}]}],
        }
        for name in ("s2", "s1")
    ]
    data = written(tmp_path, "rows.jsonl", lines(*rows))
    results = written(
        tmp_path, "log.eval", archive(log(sample(scores={"match": {"value": "I"}}), sample("s3")))
    )
    summary, status = imports(data, results)
    assert (status, summary["judgements"], [one["code"] for one in summary["refused"]]) == (
        0,
        1,
        ["unknown_id"],
    )
    assert Run.objects.get(pk=summary["run"]).judgements.get().row.line == 2


def test_all_or_nothing_also_of_a_file_of_another_tool(tmp_path: Path) -> None:
    path = written(tmp_path, "log.json", json.dumps(log(sample(), sample("s2", input=None))))
    summary, _status, _said = take(path, name="demo")
    refused, status = imports(Version.objects.get(number=summary["version"]), path, strict=True)
    assert (refused["run"], status, [one["code"] for one in refused["refused"]]) == (None, 1, ["no_question"])


def test_a_key_that_is_not_imported_and_a_warning_refuse_no_verdicts(tmp_path: Path) -> None:
    given = log(sample(metadata={"level": float("nan")}), sample("s2"))
    path = written(tmp_path, "log.json", json.dumps(given))
    summary, _status, _said = take(path, name="demo")
    assert {one["code"] for one in [*summary["findings"], *summary["left_out"]]} == {"nan", "key_unread"}
    summary, status = imports(Version.objects.get(number=summary["version"]), path, strict=True)
    assert (status, summary["judgements"], summary["refused"]) == (0, 2, [])


def test_judgments_alone_are_about_the_rows_whose_ids_they_name(tmp_path: Path) -> None:
    rows = {
        "id": "mtbench-81",
        "messages": [{"role": "user", "content": "1 + 1?"}],
        "model_outputs": [{"model_name": "a", "responses": [{"content": "2"}]}],
    }
    data = written(tmp_path, "rows.jsonl", lines(rows))
    judged = written(tmp_path, "j.jsonl", lines(fastchat.single("a", 1, 9), fastchat.single("a", 2, 3)))
    summary, status = imports(data, judged)
    assert (status, summary["scored"], [one["code"] for one in summary["refused"]]) == (0, 1, ["unknown_id"])
    summary, status, _said = take(data, judged)
    assert (status, summary["source"], summary["verdicts"]) == (0, "native", 1)


def fastchat_files(folder: Path) -> list[Path]:
    """Rebuild FastChat's MT-bench files from the conversations derived from them."""
    names = ["finetune_llama2_chat_7b_Attention", "finetune_llama2_chat_7b_FFNet", "finetune_llama2_chat_7b"]
    questions, made = [], []
    for name in [*names, "llama2_7b", "llama2_chat_7b"]:
        path = real_data(f"mtbench_llama2_legacy_2turn.{name}.jsonl")
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        numbers = [int(row["id"].removeprefix("mtbench-")) for row in rows]
        questions = [
            {
                "question_id": number,
                "category": row["category"],
                "turns": [one["prompt"] for one in row["conversation"]],
            }
            for number, row in zip(numbers, rows, strict=True)
        ]
        answers = [
            fastchat.answer(name, [one["response"] for one in row["conversation"]]) | {"question_id": number}
            for number, row in zip(numbers, rows, strict=True)
        ]
        made.append(written(folder, f"{name}.jsonl", lines(*answers)))
    return [*made, written(folder, "question.jsonl", lines(*questions))]


def test_released_mt_bench_files_reproduce_the_published_means(tmp_path: Path) -> None:
    judged = real_data("mtbench_llama2_gpt4_judgments.jsonl")
    summary, status, _said = take(*fastchat_files(tmp_path), judged, name="mt-bench")
    assert (status, summary["source"], summary["rows"], summary["valid_rows"], summary["verdicts"]) == (
        0,
        "mt_bench",
        160,
        160,
        800,
    )
    published: dict[str, list[float]] = {}
    for line in judged.read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        published.setdefault(one["model"], []).append(one["score"])
    found = report_document(Run.objects.get(pk=summary["run"]))["candidates"]
    means = {model: cells["score"]["mean"] for model, cells in found.items()}
    assert means == pytest.approx({model: sum(scores) / len(scores) for model, scores in published.items()})


def test_published_means_of_the_first_turn_from_rows_and_judgments(tmp_path: Path) -> None:
    given = real_data("mtbench_llama2_upload.jsonl"), real_data("mtbench_llama2_gpt4_judgments.jsonl")
    summary, status, _said = take(*given)
    assert (status, summary["verdicts"]) == (0, 400)
    found = report_document(Run.objects.get(pk=summary["run"]))["candidates"]
    means = {model: cells["score"]["mean"] for model, cells in found.items()}
    assert means == pytest.approx(mtbench.published_means(mtbench.verdicts()))


def test_files_of_which_nothing_becomes_a_row_say_why_by_their_name(tmp_path: Path) -> None:
    picture = {"id": 1, "data": {"image_url": "http://x/1.jpg"}, "annotations": []}
    _summary, status, said = take(written(tmp_path, "pictures.json", json.dumps([picture])))
    assert (status, said) == (
        1,
        "No row of “pictures.json” could be imported. First reason: The record has no question.",
    )
    empty = written(tmp_path, "empty.json", json.dumps(log()))
    assert take(empty)[1:] == (1, "“empty.json” has no rows.")
