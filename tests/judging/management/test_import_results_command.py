"""The `import_results` command: external verdicts as a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from datasets.models import Row, Version
from evalsite.accounts.models import Project
from judging.records.models import Judgement, JudgeReply, Run, VerdictSource
from judging.reports.services import report_document
from judging.transfer.results_import.models import ResultsImport
from tests.judging.importing import imported, imports, results_file, verdict
from tests.judging.judged import a_judged_run
from tests.make import a_version

pytestmark = pytest.mark.django_db
SHAPE = [
    *("run", "judgements", "scored", "no_score", "unparsed", "unsettled", "errors", "not_run"),
    *("people", "refused"),
]


@pytest.fixture
def version(project: Project) -> Version:
    """Three rows with ids r1 … r3, a reference in the first, and two answers each by alpha and beta."""
    made = a_version(project, rows=3, answers=2)
    for row in Row.objects.filter(version=made):
        more = {"ref_answer": "forty-two"} if row.line == 1 else {}
        row.raw = json.dumps(json.loads(row.raw) | {"id": f"r{row.line}"} | more)
        row.save()
    return made


def take(version: Version, folder: Path, *lines: dict[str, Any] | str, **options: Any) -> dict[str, Any]:
    summary, _status = imports(version, results_file(folder, lines), **options)
    return summary


def refused(summary: dict[str, Any]) -> list[tuple[int, str]]:
    return [(one["line"], one["code"]) for one in summary["refused"]]


def only(run: Run) -> Judgement:
    return run.judgements.select_related("row", "response", "candidate", "source", "other_response").get()


def test_the_document_has_the_keys_of_the_specification(version: Version, tmp_path: Path) -> None:
    summary = take(version, tmp_path, verdict(), verdict(2, rater="R1", value=3), {"line": 9})
    assert list(summary) == SHAPE
    assert list(summary["refused"][0]) == ["line", "code", "message"]


def test_every_verdict_is_counted_by_its_state(version: Version, tmp_path: Path) -> None:
    states = ["no_score", "unparsed", "error", "not_run"]
    rest = [verdict(2, value=None, state=state, repeat=n, reason="x") for n, state in enumerate(states, 1)]
    summary = take(version, tmp_path, verdict(), verdict(3, rater="R1"), *rest)
    assert [summary[name] for name in SHAPE[1:-1]] == [6, 2, 1, 1, 0, 1, 1, 1]


def test_a_verdict_is_a_judgement_of_an_imported_run(version: Version, tmp_path: Path) -> None:
    run = imported(
        version,
        tmp_path,
        verdict(2, "beta", 7.5, response=2, metric="tone", seconds=1.5, at=1_780_200_000, drawn_with=0.5),
    )
    one = only(run)
    assert (run.kind, run.state, run.rows, run.version) == ("imported", "finished", 1, version)
    assert (one.row.line, one.candidate.name, one.response.number) == (2, "beta", 2)
    assert (one.value, one.score, one.run_metric.name) == ("7.5", 7.5, "tone")
    assert (one.seconds, one.finished_at, one.drawn_with) == (1.5, 1_780_200_000, 0.5)
    assert (one.source and (one.source.kind, one.source.name)) == ("judge", "gpt")


def test_what_was_said_is_kept_as_a_reply(version: Version, tmp_path: Path) -> None:
    line = verdict(reasoning="Because.", prompt_tokens=10, completion_tokens=5, cost=0.02)
    run = imported(version, tmp_path, line)
    reply = JudgeReply.objects.get(judgement=only(run))
    assert (reply.content, reply.prompt_tokens, reply.completion_tokens) == ("Because.", 10, 5)
    assert json.loads(reply.extra) == {"cost": 0.02}
    assert (run.prompt_tokens, run.completion_tokens) == (10, 5)


def test_a_row_is_found_by_its_id(version: Version, tmp_path: Path) -> None:
    run = imported(version, tmp_path, {"id": "r3", "model": "alpha", "judge": "gpt", "value": 1})
    assert only(run).row.line == 3


def test_two_answers_are_compared(version: Version, tmp_path: Path) -> None:
    one = only(imported(version, tmp_path, verdict(value="A>>B", other_model="beta", shown_first=2)))
    assert one.other_response is not None
    assert (one.other_response.candidate.name, one.value, one.shown_first) == ("beta", '"A>>B"', 2)


def test_a_reference_is_an_answer_that_can_be_compared(version: Version, tmp_path: Path) -> None:
    one = only(imported(version, tmp_path, verdict(value="B>A", other_model="@reference")))
    assert one.other_response is not None
    assert json.loads(one.other_response.raw)["content"] == "forty-two"
    again = take(version, tmp_path, verdict(value="B>A", other_model="@reference"))
    assert (again["judgements"], again["refused"]) == (1, [])


def test_a_reference_may_come_first(version: Version, tmp_path: Path) -> None:
    one = only(imported(version, tmp_path, verdict(model="@reference", value="B>A", other_model="beta")))
    assert (one.row.line, one.candidate.name) == (1, "reference")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (verdict(9), "unknown_line"),
        ({**verdict(), "line": None, "id": "r9"}, "unknown_id"),
        (verdict(1, id="r2"), "two_rows"),
        (verdict(model="gamma"), "unknown_model"),
        (verdict(response=3), "no_such_answer"),
        (verdict(2, value="A>B", other_model="@reference"), "no_reference"),
        (verdict(value="A>B", other_model="gamma"), "unknown_model"),
    ],
)
def test_a_line_that_names_nothing_is_reported_and_left_out(
    version: Version, tmp_path: Path, line: dict[str, Any], code: str
) -> None:
    summary = take(version, tmp_path, line, verdict(3, metric="other"))
    assert refused(summary) == [(1, code)]
    assert summary["judgements"] == 1


def test_an_invalid_row_has_no_verdicts(version: Version, tmp_path: Path) -> None:
    Row.objects.filter(version=version, line=2).update(valid=False)
    assert refused(take(version, tmp_path, verdict(), verdict(2))) == [(2, "invalid_row")]


def test_an_id_that_several_rows_have_names_none(version: Version, tmp_path: Path) -> None:
    row = Row.objects.get(version=version, line=2)
    Row.objects.filter(pk=row.pk).update(raw=row.raw.replace("r2", "r1"))
    summary = take(version, tmp_path, {"id": "r1", "model": "alpha", "judge": "gpt", "value": 1}, verdict(3))
    assert refused(summary) == [(1, "id_not_unique")]


def test_a_line_said_twice_counts_once(version: Version, tmp_path: Path) -> None:
    summary = take(version, tmp_path, verdict(), verdict(value=7.0), verdict())
    assert (summary["judgements"], summary["refused"]) == (1, [])


def test_a_line_that_contradicts_another_is_refused(version: Version, tmp_path: Path) -> None:
    summary = take(version, tmp_path, verdict(), verdict(value=8), verdict(value=None, state="error"))
    assert refused(summary) == [(2, "contradicts"), (3, "contradicts")]
    assert only(Run.objects.get()).score == 7


@pytest.mark.parametrize(
    "other",
    [{"repeat": 2}, {"judge": "claude"}, {"metric": "tone"}, {"response": 2}, {"model": "beta"}, {"line": 2}],
)
def test_another_question_may_have_another_answer(
    version: Version, tmp_path: Path, other: dict[str, Any]
) -> None:
    assert take(version, tmp_path, verdict(), verdict(value=8) | other)["judgements"] == 2


def test_both_orders_of_a_comparison_are_two_questions(version: Version, tmp_path: Path) -> None:
    pair = verdict(value="A>B", other_model="beta", shown_first=1)
    assert take(version, tmp_path, pair, pair | {"shown_first": 2, "value": "B>A"})["judgements"] == 2


@pytest.mark.parametrize("other", ["beta", "@reference"])
def test_a_comparison_named_the_other_way_round_is_the_same_question(
    version: Version, tmp_path: Path, other: str
) -> None:
    pair = verdict(value="A>B", other_model=other, shown_first=1)
    mirrored = verdict(model=other, other_model="alpha", value="B>A", shown_first=2)
    against = mirrored | {"value": "A>B"}
    summary = take(version, tmp_path, pair, mirrored, against)
    assert (summary["judgements"], refused(summary)) == (1, [(3, "contradicts")])
    again = take(version, tmp_path, mirrored, against)
    assert (again["judgements"], refused(again)) == (1, [(2, "contradicts")])


def test_the_same_file_under_the_same_name_changes_nothing(version: Version, tmp_path: Path) -> None:
    lines = [verdict(), verdict(2), verdict(3, model="gamma")]
    first = take(version, tmp_path, *lines)
    before = Run.objects.values().get()
    assert take(version, tmp_path, *lines) == first
    assert Run.objects.values().get() == before


def test_another_name_is_another_run(version: Version, tmp_path: Path) -> None:
    first, second = (take(version, tmp_path, verdict(), name=name) for name in ("one", "two"))
    assert first["run"] != second["run"]
    assert Run.objects.filter(kind="imported").count() == 2


def test_a_further_file_adds_to_the_run(version: Version, tmp_path: Path) -> None:
    take(version, tmp_path, verdict())
    summary = take(version, tmp_path, verdict(2), verdict(rater="R1", value=3))
    assert (summary["judgements"], summary["people"]) == (3, 1)


def test_a_further_file_cannot_contradict_the_run(version: Version, tmp_path: Path) -> None:
    take(version, tmp_path, verdict(), verdict(2))
    summary = take(version, tmp_path, verdict(value=8), verdict(3), verdict(2, value="good"))
    assert refused(summary) == [(1, "contradicts"), (3, "other_kind_of_value")]
    assert summary["judgements"] == 3


def test_strict_imports_all_or_nothing(version: Version, tmp_path: Path) -> None:
    summary, status = imports(version, results_file(tmp_path, [verdict(), verdict(9)]), strict=True)
    assert (status, summary["run"], refused(summary)) == (1, None, [(2, "unknown_line")])
    assert not Run.objects.exists()
    assert not ResultsImport.objects.exists()


def test_strict_imports_a_file_without_refusals(version: Version, tmp_path: Path) -> None:
    summary, status = imports(version, results_file(tmp_path, [verdict()]), strict=True)
    assert (status, summary["judgements"]) == (0, 1)


def test_refused_lines_alone_are_no_failure(version: Version, tmp_path: Path) -> None:
    assert imports(version, results_file(tmp_path, [verdict(), verdict(9)]))[1] == 0


def test_a_file_of_which_nothing_fits_makes_no_run(version: Version, tmp_path: Path) -> None:
    summary, status = imports(version, results_file(tmp_path, [verdict(9)]))
    assert (status, summary["run"], summary["judgements"]) == (1, None, 0)
    assert not Run.objects.exists()


def test_a_file_that_holds_no_results_is_reported_in_a_sentence(version: Version, tmp_path: Path) -> None:
    path = results_file(tmp_path, ["question,answer"])
    with pytest.raises(CommandError, match=r"results\.jsonl: The header must name model") as error:
        call_command("import_results", version.dataset.name, path, name="x")
    assert error.value.returncode == 1


def test_a_missing_path_is_wrong_usage(version: Version, tmp_path: Path) -> None:
    assert imports(version, tmp_path / "absent.jsonl")[1] == 2
    assert imports(tmp_path / "absent.jsonl", results_file(tmp_path, [verdict()]))[1] == 2


def test_the_name_of_another_kind_of_run_is_taken(project: Project, tmp_path: Path) -> None:
    run = a_judged_run(project)
    assert imports(run.version, results_file(tmp_path, [verdict()]), run.name)[1] == 1


def test_a_data_set_file_is_uploaded_once(db: None, tmp_path: Path) -> None:
    row = {"messages": [{"role": "user", "content": "1+1?"}], "model_outputs": [
        {"model_name": "alpha", "responses": [{"content": "2"}]}]}  # fmt: skip
    data = results_file(tmp_path, [row], "data.jsonl")
    for name in ("one", "two"):
        assert imports(data, results_file(tmp_path, [verdict()]), name)[1] == 0
    assert Version.objects.count() == 1


def test_a_table_is_imported_as_lines_of_json_are(version: Version, tmp_path: Path) -> None:
    path = results_file(tmp_path, ["line,model,value,rater,reasoning", '1,alpha,4,甲,"清楚，完整"'], "r.csv")
    summary, _status = imports(version, path)
    assert (summary["judgements"], summary["people"]) == (1, 1)
    assert JudgeReply.objects.get().content == "清楚，完整"
    assert VerdictSource.objects.get().name == "甲"


def test_a_metric_without_a_declared_scale_has_no_bounds(version: Version, tmp_path: Path) -> None:
    run = imported(version, tmp_path, verdict(), verdict(2, value=None, state="unparsed", reason="odd"))
    cell = report_document(run)["candidates"]["alpha"]["score"]
    assert (cell["mean"], cell["unparsed"]) == (7, 1)
    definition = json.loads(run.metrics.get().definition)
    assert (definition["scale_declared"], definition["gives"]) == (False, "score")


def test_a_declared_scale_is_kept(version: Version, tmp_path: Path) -> None:
    run = imported(version, tmp_path, verdict(min_score=0, max_score=100))
    definition = json.loads(run.metrics.get().definition)
    assert (definition["min_score"], definition["max_score"]) == (0, 100)


def test_the_text_names_refused_lines(version: Version, tmp_path: Path, capsys: Any) -> None:
    path = results_file(tmp_path, [verdict(), verdict(9)])
    call_command("import_results", version.dataset.name, path, name="x")
    assert "line 2: The data set has no row at line 9. (unknown_line)" in capsys.readouterr().out
