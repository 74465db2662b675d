"""Export of a run's scores in other tools' formats, and re-import."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from datasets.core.imports.model import Imported, Options, SourceFile
from datasets.core.imports.registry import recognise
from datasets.models import Row, Version
from evalsite.accounts.models import Project, User
from judging.filters.judgement_filter import ANYTHING
from judging.records.models import Run
from judging.transfer.export.files import FORMS
from tests.conftest import ClientOf
from tests.judging.importing import imported, verdict
from tests.judging.judged import a_judged_run, failed, said
from tests.judging.review.pages import address
from tests.make import a_version

pytestmark = pytest.mark.django_db
TOOLS = ("every_eval_ever", "inspect")


@pytest.fixture
def version(project: Project) -> Version:
    """Two rows with ids, a reference and a field, and two answers each by alpha and beta."""
    made = a_version(project, rows=2, answers=2)
    for row in Row.objects.filter(version=made):
        more = {"id": f"r{row.line}", "ref_answer": "forty-two", "level": row.line}
        row.raw = json.dumps(json.loads(row.raw) | more)
        row.save()
    return made


def written(run: Run, form: str, folder: Path) -> Path:
    path = folder / f"{form}.json"
    path.write_bytes(b"".join(FORMS[form][0](run, ANYTHING)))
    return path


def read_back(path: Path, form: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]], Imported]:
    file = SourceFile.of(path)
    source = recognise([file])
    assert source is not None
    assert source.name == form
    found = source.read([file], Options())
    rows = [row.data for row in found.rows]
    return rows, list(found.verdicts), found


@pytest.mark.parametrize("form", TOOLS)
def test_what_is_written_reads_back(version: Version, tmp_path: Path, form: str) -> None:
    lines = [
        verdict(line, model, line + response, response=response, metric="depth", reasoning="Because.")
        for line in (1, 2)
        for model in ("alpha", "beta")
        for response in (1, 2)
    ]
    run = imported(version, tmp_path, *lines, verdict(1, rater="ann", value=3, metric="depth"))
    rows, verdicts, found = read_back(written(run, form, tmp_path), form)
    assert [(row["id"], row["ref_answer"], str(row["level"])) for row in rows] == [
        ("r1", "forty-two", "1"),
        ("r2", "forty-two", "2"),
    ]
    assert [len(output["responses"]) for row in rows for output in row["model_outputs"]] == [2, 2, 2, 2]
    result = [(one["line"], one["model"], one["response"], one["value"]) for one in verdicts]
    assert sorted(result) == sorted(
        [(one["line"], one["model"], one["response"], one["value"]) for one in lines] + [(1, "alpha", 1, 3)]
    )
    assert {one.get("judge") or one.get("rater") for one in verdicts} == {"gpt", "ann"}
    assert {one["reasoning"] for one in verdicts if "judge" in one} == {"Because."}
    assert found.left_out_counts.keys() <= {"key_unread"}


def test_samples_of_every_eval_ever_have_the_fields_that_its_schema_requires(
    version: Version, tmp_path: Path
) -> None:
    run = imported(version, tmp_path, verdict(1, value=True))
    (sample,) = map(json.loads, written(run, "every_eval_ever", tmp_path).read_text().splitlines())
    assert sample["input"] == {"raw": "question 1", "reference": ["forty-two"]}
    assert (sample["model_id"], sample["evaluation_name"], sample["sample_id"]) == ("alpha", "score", "r1")
    assert (sample["interaction_type"], sample["messages"]) == ("single_turn", None)
    assert (sample["evaluation"]["score"], sample["evaluation"]["is_correct"]) == (1.0, True)
    assert all(isinstance(value, str) for value in sample["metadata"].values())


def test_a_log_of_inspect_is_one_document_whose_samples_are_unique(version: Version, tmp_path: Path) -> None:
    run = imported(version, tmp_path, verdict(1), verdict(1, "beta"), verdict(2, "beta", response=2))
    log = json.loads(written(run, "inspect", tmp_path).read_bytes())
    assert (log["version"], log["status"], log["eval"]["model"]) == (2, "success", "none/none")
    assert [(one["id"], one["epoch"], one["output"]["model"]) for one in log["samples"]] == [
        ("r1", 1, "alpha"),
        ("r1", 2, "beta"),
        ("r2", 1, "beta"),
    ]


def test_a_run_s_own_scores_are_written_too(project: Project, tmp_path: Path) -> None:
    run = a_judged_run(project, lambda _: said(7))
    _rows, verdicts, _found = read_back(written(run, "inspect", tmp_path), "inspect")
    assert {one["value"] for one in verdicts} == {7}
    assert len(verdicts) == run.total


@pytest.mark.parametrize(
    ("form", "result"),
    [
        (
            "every_eval_ever",
            ["1 comparison.", "1 judgement without a value.", "1 category that is not a number."],
        ),
        ("inspect", ["1 comparison.", "1 judgement without a value."]),
        ("results", []),
    ],
)
def test_what_a_format_cannot_hold_is_reported(
    version: Version, tmp_path: Path, form: str, result: list[str]
) -> None:
    compared = verdict(1, other_model="beta", metric="better", value="A>B")
    state = verdict(1, value=None, state="unparsed")
    run = imported(version, tmp_path, compared, state, verdict(2, metric="label", value="good"), verdict(2))
    errors = StringIO()
    call_command("export", run.name, format=form, out=tmp_path / "out", stderr=errors)
    assert [line for line in errors.getvalue().splitlines() if "Excluded" in line] == [
        f"Excluded: {one}" for one in result
    ]


@pytest.mark.parametrize(
    ("form", "ending"), [("every_eval_ever", "samples.jsonl"), ("inspect", "inspect.json")]
)
def test_the_browser_has_both(
    version: Version, tmp_path: Path, bob: User, client_of: ClientOf, form: str, ending: str
) -> None:
    run = imported(version, tmp_path, verdict(1))
    answer = client_of(bob).get(address(run, "export", form))
    assert b"alpha" in b"".join(answer.streaming_content)  # type: ignore[attr-defined]
    assert f"elsewhere.{ending}" in answer.headers["Content-Disposition"]
    assert address(run, "export", form) in client_of(bob).get(address(run)).content.decode()


def test_a_run_without_any_score_is_an_empty_log(project: Project, tmp_path: Path) -> None:
    run = a_judged_run(project, lambda _: failed())
    assert json.loads(written(run, "inspect", tmp_path).read_bytes())["samples"] == []
